// Matrix products of the sizes that layers have at small batches, as catena computes them (by a
// kernel of its own or by cuBLASLt), against cuBLASLt for the same product. Decides which products
// the kernels of our own take (fits_thin_matmul, fits_tiny_matmul).
#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/core/backend.h"
#include "catena/core/config.h"
#include "catena/core/graph.h"
#include "catena/kernels/matmul.h"
#include "timing.h"

namespace {

using namespace bench;
using catena::Array;
using catena::Device;
using catena::MatmulCall;

enum class Use { kForward, kInputGradient, kWeightGradient };

// The product of a Linear layer of n outputs and k inputs at batch m.
struct Problem {
  int64_t m, n, k;
  Use use;
};

const char* name_of(Use use) {
  return use == Use::kForward         ? "forward"
         : use == Use::kInputGradient ? "input gradient"
                                      : "weight gradient";
}

struct Bench {
  Device device;
  Sampling sampling{5, 9, 5};
  Table table;

  Array uniform(int64_t rows, int64_t columns) const {
    return catena::random::default_state(device).uniform({rows, columns}, -1, 1,
                                                         {catena::dtype::float32, device});
  }

  // Device time in a graph of 20 such products, so that the host's share is out of it.
  // multiply(call) enqueues one.
  template <class Multiply>
  double time(const Problem& p, Multiply multiply) {
    const Array x = uniform(p.m, p.k), w = uniform(p.n, p.k), y = uniform(p.m, p.n);
    Array a = x, b = w.T(), out = y;
    if (p.use == Use::kInputGradient) a = y, b = w, out = x;
    if (p.use == Use::kWeightGradient) a = y.T(), b = x, out = w;
    constexpr int kProducts = 20;
    auto body = [&] {
      for (int i = 0; i < kProducts; ++i) multiply(MatmulCall{&a, &b, &out});
    };
    body();
    catena::cuda::Graph graph = catena::cuda::Graph::capture(device, body);
    return device_time(sampling, device, [&] { graph.launch(); }).median / kProducts;
  }

  void compare(const Problem& p, catena::Precision precision) {
    catena::config().matmul_precision = precision;
    const auto cublaslt = catena::kernels::matmul.provider(device.type(), "cublaslt");
    const double library = time(p, cublaslt);
    const double ours =
        time(p, [&](const MatmulCall& call) { catena::kernels::matmul(device, call); });
    table.row({.name = std::to_string(p.m) + " x " + std::to_string(p.n) + " x " +
                       std::to_string(p.k) + ", " + name_of(p.use),
               .precision = precision == catena::Precision::kTf32 ? "tf32" : "float32",
               .value = ours * 1e6,
               .unit = "us",
               .limit = library * 1e6,
               .limit_name = "cuBLASLt"});
  }
};

int body(int argc, char** argv) {
  const Arguments arguments(argc, argv, "Small matrix products on cuda:0 against cuBLASLt.");
  if (!have_gpu("bench_gpu_matmul")) return 0;
  const Device device = catena::cuda_device(0);
  Bench bench{
      device, {5, 9, 5}, Table("Small products", catena::backend(device.type()).describe(0))};
  std::vector<Problem> problems;
  const std::vector<int64_t> batches =
      arguments.quick() ? std::vector<int64_t>{100} : std::vector<int64_t>{20, 64, 100, 256, 500};
  for (const int64_t m : batches) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1000, 784},
                               {1000, 1000},
                               {10, 1000},
                               {256, 256},
                               {512, 2048},
                               {2600, 650},
                               {4096, 1024}}) {
      for (Use use : {Use::kForward, Use::kInputGradient, Use::kWeightGradient})
        problems.push_back({m, n, k, use});
    }
  }
  for (auto precision : {catena::Precision::kFloat32, catena::Precision::kTf32}) {
    for (const Problem& p : problems) bench.compare(p, precision);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
