// Products, the MNIST step and a step of LeNet on the CPU, served line by line to cpu_peers.py,
// which times other libraries in turn with it. Reads requests from standard input and answers each
// with the best seconds of one call:
//   product float32|float64|float16|bfloat16 m n k ta tb seconds
//   step seconds
//   lenet seconds
#include <iostream>
#include <string>

#include "catena/array/creation.h"
#include "catena/array/linalg.h"
#include "catena/array/random.h"
#include "timing.h"
#include "workloads.h"

namespace {

using namespace bench;
using catena::Array;

Array uniform(const catena::Shape& shape, catena::Dtype dtype) {
  return catena::random::default_state(catena::cpu())
      .uniform(shape, -1, 1, {catena::dtype::float32, catena::cpu()})
      .astype(dtype);
}

// The best of as many calls as fit into `seconds`, at least three runs.
template <class Call>
double best_of(double seconds, int calls, Call&& call) {
  call();
  double best = 1e30;
  const double end = now() + seconds;
  for (int run = 0; run < 3 || now() < end; ++run) {
    const double start = now();
    for (int i = 0; i < calls; ++i) call();
    best = std::min(best, (now() - start) / calls);
  }
  return best;
}

double product() {
  std::string name;
  int64_t m = 0, n = 0, k = 0;
  int ta = 0, tb = 0;
  double seconds = 0;
  std::cin >> name >> m >> n >> k >> ta >> tb >> seconds;
  const catena::Dtype dtype = name == "float64"    ? catena::dtype::float64
                              : name == "float16"  ? catena::dtype::float16
                              : name == "bfloat16" ? catena::dtype::bfloat16
                                                   : catena::dtype::float32;
  const Array a = ta ? uniform({k, m}, dtype).T() : uniform({m, k}, dtype);
  const Array b = tb ? uniform({n, k}, dtype).T() : uniform({k, n}, dtype);
  const Array c = catena::empty({m, n}, dtype);
  const int calls = std::max<int>(1, int(2e6 / (2.0 * double(m * n * k))));
  return best_of(seconds, calls, [&] { catena::matmul(a, b, c); });
}

double step() {
  double seconds = 0;
  std::cin >> seconds;
  constexpr int64_t kBatch = 100;
  static MnistStep mnist(catena::cpu(), kBatch, 6000);
  static const auto optimizer = [] {
    auto rule = make_rule("SGD");
    rule->setup(mnist.model());
    return rule;
  }();
  static const Array x = uniform({kBatch, 784}, catena::dtype::float32);
  static const Array t = catena::random::default_state(catena::cpu())
                             .integers({kBatch}, 0, 10, {catena::dtype::int32, catena::cpu()});
  return best_of(seconds, 1, [&] { mnist.train_on(x, t, *optimizer); });
}

double lenet() {
  double seconds = 0;
  std::cin >> seconds;
  static NetworkStep network("lenet", catena::cpu(), 64, catena::dtype::float32);
  static const auto optimizer = [] {
    auto rule = make_rule("SGD");
    rule->setup(network.model());
    return rule;
  }();
  return best_of(seconds, 1, [&] { network.step(*optimizer); });
}

int body(int, char**) {
  std::string request;
  while (std::cin >> request) {
    if (request == "product")
      std::cout << product() << std::endl;
    else if (request == "step")
      std::cout << step() << std::endl;
    else if (request == "lenet")
      std::cout << lenet() << std::endl;
    else
      catena::fail<catena::ValueError>("bench_products: unknown request '", request,
                                       "', expected product, step or lenet");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
