// Matrix products of the sizes that layers have at small batches, as catena computes them (by a
// kernel of its own or by cuBLASLt), against cuBLASLt for the same product. Decides which products
// the kernels of our own take (fits_thin_matmul, fits_tiny_matmul). And products of odd lengths and
// leading dimensions, against those of the next lengths that are multiples of 8.
#include <algorithm>

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

// The product of a Linear layer of n outputs and k inputs at batch m, or a stack of them. Rows of
// the operands are `apart` numbers longer in memory.
struct Problem {
  int64_t m, n, k;
  Use use;
  int64_t stack = 1, apart = 0;

  double operations() const { return 2.0 * double(stack) * double(m) * double(n) * double(k); }
};

constexpr Use kUses[] = {Use::kForward, Use::kInputGradient, Use::kWeightGradient};

const char* name_of(Use use) {
  return use == Use::kForward         ? "forward"
         : use == Use::kInputGradient ? "input gradient"
                                      : "weight gradient";
}

std::string name_of(const Problem& p) {
  const std::string stack = p.stack == 1 ? "" : std::to_string(p.stack) + " of ";
  return stack + std::to_string(p.m) + " x " + std::to_string(p.n) + " x " + std::to_string(p.k);
}

// How the numbers of a product are stored and multiplied.
struct Numbers {
  const char* name;
  catena::Dtype dtype;
  catena::Precision precision;
};
constexpr Numbers kFloat32{"float32", catena::Dtype::kFloat32, catena::Precision::kFloat32},
    kTf32{"tf32", catena::Dtype::kFloat32, catena::Precision::kTf32},
    kBFloat16{"bfloat16", catena::Dtype::kBFloat16, catena::Precision::kFloat32};

struct Operands {
  Array a, b, out;
};

Operands operands_of(const Problem& p, catena::Dtype dtype) {
  const auto matrices = [&](int64_t rows, int64_t columns) {
    const Array drawn =
        catena::random::uniform({p.stack, rows, columns + p.apart}, -1, 1, catena::dtype::float32)
            .astype(dtype);
    const Array cut = drawn.at({catena::Ellipsis(), catena::Slice(0, columns)});
    return p.stack == 1 ? cut[0] : cut;
  };
  const auto transposed = [](const Array& x) { return x.swapaxes(-1, -2); };
  const Array x = matrices(p.m, p.k), w = matrices(p.n, p.k), y = matrices(p.m, p.n);
  switch (p.use) {
    case Use::kForward: return {x, transposed(w), y};
    case Use::kInputGradient: return {y, w, x};
    case Use::kWeightGradient: return {transposed(y), x, w};
  }
  return {};
}

struct Bench {
  Device device;
  Sampling sampling{5, 9, 5};

  // Device time in a graph of 20 such products, so that the host's share is out of it.
  // multiply(call) enqueues one.
  template <class Multiply>
  double time_in_graph(const Problem& p, Multiply multiply) const {
    const Operands o = operands_of(p, catena::dtype::float32);
    constexpr int kProducts = 20;
    auto body = [&] {
      for (int i = 0; i < kProducts; ++i) multiply(MatmulCall{&o.a, &o.b, &o.out});
    };
    body();
    catena::cuda::Graph graph = catena::cuda::Graph::capture(device, body);
    return device_time(sampling, device, [&] { graph.launch(); }).median / kProducts;
  }

  void compare(Table& table, const Problem& p, const Numbers& numbers) const {
    catena::config().matmul_precision = numbers.precision;
    const auto cublaslt = catena::kernels::matmul.provider(device.type(), "cublaslt");
    const double library = time_in_graph(p, cublaslt);
    const double ours =
        time_in_graph(p, [&](const MatmulCall& call) { catena::kernels::matmul(device, call); });
    table.row({.name = name_of(p) + ", " + name_of(p.use),
               .precision = numbers.name,
               .value = ours * 1e6,
               .unit = "us",
               .limit = library * 1e6,
               .limit_name = "cuBLASLt"});
  }

  // Products that take long enough for the host to be ahead.
  double time(const Problem& p, const Numbers& numbers) const {
    catena::config().matmul_precision = numbers.precision;
    const Operands o = operands_of(p, numbers.dtype);
    const int calls = std::clamp(int(1e12 / p.operations()), 2, 20);
    return device_time({2, 5, calls}, device,
                       [&] {
                         catena::kernels::matmul(device, {&o.a, &o.b, &o.out});
                       })
        .median;
  }

  void compare_to_aligned(Table& table, const Problem& p, const Numbers& numbers) const {
    const auto up = [](int64_t length) { return (length + 7) / 8 * 8; };
    const Problem aligned{up(p.m), up(p.n), up(p.k), p.use, p.stack};
    const std::string apart =
        p.apart == 0 ? "" : ", rows " + std::to_string(p.apart) + " longer in memory";
    table.row({.name = name_of(p) + apart + ", " + name_of(p.use),
               .precision = numbers.name,
               .value = time(p, numbers) * 1e6,
               .unit = "us",
               .limit = time(aligned, numbers) * 1e6,
               .limit_name = name_of(aligned),
               .goal_ratio = 1.15});
  }
};

void compare_small(const Bench& bench, bool quick) {
  Table table("Small products", catena::backend(bench.device.type()).describe(0));
  const std::vector<int64_t> batches =
      quick ? std::vector<int64_t>{100} : std::vector<int64_t>{20, 64, 100, 256, 500};
  for (const Numbers& numbers : {kFloat32, kTf32}) {
    for (const int64_t m : batches) {
      for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1000, 784},
                                 {1000, 1000},
                                 {10, 1000},
                                 {256, 256},
                                 {512, 2048},
                                 {2600, 650},
                                 {4096, 1024}}) {
        for (Use use : kUses) bench.compare(table, {m, n, k, use}, numbers);
      }
    }
  }
}

// GPT-2's head with the words that it has, patches of ViT-H/14 and scores of ViT-B/16 among them;
// lengths that are a sixteenth of these, odd as before, if quick.
void compare_odd(const Bench& bench, bool quick) {
  Table table("Products of odd lengths", catena::backend(bench.device.type()).describe(0));
  const auto part = [&](int64_t length) { return quick ? length / 16 | (length & 1) : length; };
  for (const Numbers& numbers : {kBFloat16, kTf32, kFloat32}) {
    for (Use use : kUses) {
      for (const Problem& p : {Problem{4096, 4095, 4097, use},
                               {4096, 4096, 4096, use, 1, 1},
                               {32768, 50257, 768, use},
                               {65536, 1280, 588, use},
                               {197, 197, 64, use, 3072}})
        bench.compare_to_aligned(
            table, {part(p.m), part(p.n), part(p.k), use, part(p.stack), p.apart}, numbers);
    }
  }
}

int body(int argc, char** argv) {
  const Arguments arguments(
      argc, argv, "Small matrix products against cuBLASLt, and odd ones against aligned ones.",
      {{"--odd", "the odd ones alone, which run on cpu:0 as well"}, {"--device=", "cuda:0"}});
  const Device device(arguments.value("--device=", "cuda:0"));
  if (device.is_cuda() && !have_gpu("bench_gpu_matmul")) return 0;
  const catena::DeviceScope scope(device);
  const Bench bench{device};
  if (!arguments.has("--odd")) compare_small(bench, arguments.quick());
  compare_odd(bench, arguments.quick());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
