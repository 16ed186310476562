// The engine and the distributions that tests draw numbers with, optimized. Each object of a test
// has its own copies, which are not; this one is linked first, so that its copies are those used.
#include <cstdint>
#include <random>

template std::mt19937::mersenne_twister_engine(std::mt19937::result_type);
template std::mt19937::result_type std::mt19937::operator()();
template void std::mt19937::_M_gen_rand();
template double std::generate_canonical<double, 53>(std::mt19937&);
template double std::uniform_real_distribution<double>::operator()(std::mt19937&);
template double std::uniform_real_distribution<double>::operator()(
    std::mt19937&, const std::uniform_real_distribution<double>::param_type&);
template int64_t std::uniform_int_distribution<int64_t>::operator()(std::mt19937&);
template int64_t std::uniform_int_distribution<int64_t>::operator()(
    std::mt19937&, const std::uniform_int_distribution<int64_t>::param_type&);
