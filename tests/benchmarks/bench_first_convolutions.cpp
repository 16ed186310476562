// The first calls of the convolutions of a residual network on a device: what it takes to find or
// choose the plans of a library. Prints the milliseconds of the first and of the second round; the
// script tests/benchmarks/startup runs it with an empty and with a filled cache folder.
//   bench_first_convolutions DEVICE [float32|bfloat16|...]
#include <cstdio>
#include <vector>

#include "catena/array/creation.h"
#include "catena/functions/connection.h"
#include "peer_requests.h"
#include "timing.h"

namespace {

using namespace bench;
using namespace catena;
namespace F = catena::functions;

struct Layer {
  int64_t channels, filters, extent;
  int kernel, stride;
};

// The shapes of ResNet-50, each once.
std::vector<Layer> layers() {
  std::vector<Layer> all = {{3, 64, 224, 7, 2}};
  int64_t in = 64, extent = 56;
  for (int64_t width = 64; width <= 512; width *= 2) {
    const int stride = width == 64 ? 1 : 2;
    all.push_back({in, width, extent, 1, 1});
    all.push_back({width, width, extent, 3, stride});
    all.push_back({in, 4 * width, extent, 1, stride});
    extent /= stride;
    all.push_back({width, 4 * width, extent, 1, 1});
    all.push_back({4 * width, width, extent, 1, 1});
    if (stride == 2) all.push_back({width, width, extent, 3, 1});
    in = 4 * width;
  }
  return all;
}

struct Operands {
  Array x, W;
  F::ConvolutionOptions options;
};

std::vector<Operands> make_operands(Device device, Dtype dtype, int64_t batch) {
  std::vector<Operands> all;
  for (const Layer& l : layers()) {
    const bool last = device.is_cuda();
    all.push_back({uniform({batch, l.channels, l.extent, l.extent}, dtype, device, last),
                   uniform({l.filters, l.channels, l.kernel, l.kernel}, dtype, device, last),
                   {.stride = l.stride, .pad = l.kernel / 2}});
  }
  return all;
}

// Forward and backward of each; new variables, so that no gradient is added to an older one.
double round(Device device, const std::vector<Operands>& all) {
  synchronize(device);
  const double start = now();
  for (const Operands& o : all) {
    Variable y = F::convolution_2d(Variable(o.x), Variable(o.W), o.options);
    y.set_grad(y.data());
    y.backward();
  }
  synchronize(device);
  return (now() - start) * 1e3;
}

int body(int count, char** arguments) {
  const Device device = device_named(count > 1 ? arguments[1] : "cpu:0");
  const Dtype dtype = dtype_named(count > 2 ? arguments[2] : "float32");
  const std::vector<Operands> all = make_operands(device, dtype, device.is_cuda() ? 32 : 1);
  // Another shape: the library is loaded.
  F::convolution_2d(Variable(uniform({1, 8, 5, 5}, dtype, device, false)),
                    Variable(uniform({8, 8, 3, 3}, dtype, device, false)));
  const double first = round(device, all), second = round(device, all);
  std::printf("%.1f %.1f\n", first, second);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
