#include "start_values.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "catena/array/manipulation.h"

namespace catena::parallel {
namespace {

// Shape, dtype and a few numbers, evenly spaced, as text that ranks can compare.
struct StartSample {
  std::string type, numbers;
};

StartSample sample_of(const Array& whole) {
  constexpr int64_t kNumbers = 8;
  const int64_t step = std::max<int64_t>(1, whole.size() / kNumbers);
  const Array some = whole.reshape({-1})(Slice(none, none, step)).to_cpu().astype(Dtype::kFloat64);
  StartSample sample{message(whole.shape(), " ", whole.dtype()), {}};
  for (const double number : some.to_vector<double>()) {
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    sample.numbers.append(bytes, sizeof number);
  }
  return sample;
}

}  // namespace

CommunicatorPtr kept_communicator(const char* who, Communicator& comm) {
  CommunicatorPtr pointer = comm.weak_from_this().lock();
  CATENA_CHECK(ValueError, pointer, who, ": expected a communicator of create_communicator, ",
               "run_threads, split or a Grid, which layers can keep");
  return pointer;
}

void check_pieces(const char* who, const char* extent_name, int64_t extent,
                  const Communicator& comm) {
  CATENA_CHECK(ValueError, extent % comm.size() == 0, who, ": ", extent_name, " ", extent,
               " cannot be divided among ", comm.size(), " ranks; choose a multiple of ",
               comm.size());
}

void check_equal_start(const char* who, const Array& whole, Communicator& comm) {
  if (comm.size() == 1) return;
  const StartSample own = sample_of(whole);
  const std::vector<std::string> types = comm.all_gather_object(own.type);
  const std::vector<std::string> numbers = comm.all_gather_object(own.numbers);
  for (size_t r = 1; r < types.size(); ++r) {
    CATENA_CHECK(ValueError, types[r] == types[0], who, ": rank 0 made a layer of ", types[0],
                 ", rank ", r, " of ", types[r], "; make the same layers on all ranks");
    CATENA_CHECK(ValueError, numbers[r] == numbers[0], who, ": ranks 0 and ", r,
                 " begin with different numbers, expected slices of one array; seed all ranks of ",
                 "the communicator alike before the model is made: "
                 "random::default_state(comm.device()).seed(number)");
  }
}

Array slice_of(const Array& whole, const Communicator& comm, int axis) {
  return split(whole, comm.size(), axis)[size_t(comm.rank())].copy();
}

}  // namespace catena::parallel
