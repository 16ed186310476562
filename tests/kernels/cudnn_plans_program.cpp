// Computes convolutions by cuDNN on cuda:0 and prints a line for each: whether cuDNN took it, and
// the hash of the result. Its plans come from, or go to, the folder CATENA_CACHE_DIR. The engines
// are deterministic ones, so equal engines give equal lines.
#include <cstdio>
#include <random>
#include <string_view>

#include "catena/core/config.h"
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

}  // namespace

int main() {
  config().deterministic = true;
  config().use_cudnn = UseCudnn::kAlways;
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
  return 0;
}
