// Computes convolutions by cuDNN on cuda:0 and prints a line for each. Its plans come from, or go
// to, the folder CATENA_CACHE_DIR. The argument says what is computed, and what a line says beside
// whether cuDNN took the convolution:
//   (none)    many convolutions by deterministic engines: the hash of the result. Equal engines
//   give
//             equal lines.
//   right     convolutions in each precision and layout by any engines: whether the result is right
//   captured  the same in captured graphs, which are launched once
#include <cmath>
#include <cstdio>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "catena/array/math.h"
#include "catena/core/config.h"
#include "catena/core/graph.h"
#include "core/hash128.h"
#include "kernels/convolution_case.h"

namespace {

using namespace catena;
using testing::ConvolutionCase;
using testing::Pass;

void run(const ConvolutionCase& c, uint32_t seed) {
  const Device device = cuda_device(0);
  for (const Pass pass : {Pass::kForward, Pass::kGradX, Pass::kGradW}) {
    const testing::ConvolutionData d(c, device, seed);
    const bool taken = testing::call_provider(pass, "cudnn", device, c, d);
    const Array result = testing::result_of(pass, d).array.get().contiguous();
    const std::string_view bytes(static_cast<const char*>(result.raw_data()),
                                 static_cast<size_t>(result.nbytes()));
    std::printf("%s, pass %d: %s %s\n", c.text().c_str(), int(pass), taken ? "taken" : "declined",
                to_hex(hash128(bytes)).c_str());
  }
}

void run_deterministic_ones() {
  config().deterministic = true;
  std::mt19937 random(4);
  for (uint32_t i = 0; i < 24; ++i) {
    ConvolutionCase c = testing::random_convolution(random);
    constexpr Dtype kDtypes[] = {Dtype::kFloat32, Dtype::kBFloat16, Dtype::kFloat16};
    c.dtype = kDtypes[i % 3];
    // The larger ones are those for which cuDNN compiles kernels.
    if (i % 2 == 0) c.channels *= 8, c.filters *= 8;
    config().matmul_precision = i % 6 == 3 ? Precision::kTf32 : Precision::kFloat32;
    run(c, i);
  }
}

// Whether the result is the defined one. tf32 rounds each factor to 11 bits, and its engines may
// transform images.
bool is_right(const Array& result, const ConvolutionCase& c, const testing::Expected& e) {
  const bool tf32 = c.dtype == Dtype::kFloat32 && config().matmul_precision == Precision::kTf32;
  const double limit = tf32 ? 0x1p-9 * e.magnitude : testing::convolution_tolerance(c.dtype, e);
  const std::vector<double> got = testing::values_of(result);
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - e.values[i]) <= limit)) return false;
  return true;
}

// One pass, in a graph on request.
bool run_pass(Pass pass, const ConvolutionCase& c, const testing::ConvolutionData& d,
              bool captured) {
  const Device device = cuda_device(0);
  if (!captured) return testing::call_provider(pass, "cudnn", device, c, d);
  bool taken = false;
  cuda::Graph graph = cuda::Graph::capture(
      device, [&] { taken = testing::call_provider(pass, "cudnn", device, c, d); });
  graph.launch();
  return taken;
}

void check(const ConvolutionCase& c, bool captured) {
  for (const Pass pass : {Pass::kForward, Pass::kGradX, Pass::kGradW}) {
    const testing::ConvolutionData d(c, cuda_device(0), 3);
    const testing::Expected expected = testing::expected_convolution(pass, c, d);
    const bool taken = run_pass(pass, c, d, captured);
    const bool right = !taken || is_right(testing::result_of(pass, d).array, c, expected);
    std::printf("%s, precision %d, pass %d: %s %s \n", c.text().c_str(),
                int(config().matmul_precision), int(pass), taken ? "taken" : "declined",
                right ? "right" : "wrong");
  }
}

// A capture loads no kernels. Those that add biases and gradients where cuDNN does not are loaded
// here.
void load_additions() {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16})
    for (const bool last : {false, true}) {
      const Array y = testing::in_layout(zeros({2, 4, 3, 5}, {dtype, cuda_device(0)}), last);
      add(y, zeros({1, 4, 1, 1}, {dtype, cuda_device(0)}), Out(y));
      add(y, testing::in_layout(ones_like(y), last), Out(y));
    }
}

void check_each_precision(bool captured) {
  if (captured) load_additions();
  for (const auto& [dtype, precision] : {std::pair(Dtype::kFloat32, Precision::kFloat32),
                                         std::pair(Dtype::kFloat32, Precision::kTf32),
                                         std::pair(Dtype::kBFloat16, Precision::kFloat32)})
    for (const bool last : {false, true}) {
      config().matmul_precision = precision;
      ConvolutionCase c;
      c.dtype = dtype, c.channels_last = c.filters_last = last;
      c.bias = last;  // in the graph of cuDNN, where it can
      c.accumulate = !last;
      c.channels = 16, c.filters = 32, c.height = 14, c.width = 13;
      check(c, captured);
    }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // whole lines between those of the log
  config().use_cudnn = UseCudnn::kAlways;
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what.empty())
    run_deterministic_ones();
  else
    check_each_precision(what == "captured");
  return 0;
}
