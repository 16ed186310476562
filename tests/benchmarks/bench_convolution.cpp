// Convolutions with each provider, served line by line to convolution_peers.py, which times PyTorch
// in turn with it. Reads requests from standard input and answers each with one line:
//   providers cpu:0                                   names of the providers of the forward pass
//   convolution DEVICE DTYPE LAST N C H W O KERNEL STRIDE PAD PASS PROVIDER SECONDS
// with the best seconds of one call, or "-" where the provider declines. LAST is 1 for channels
// last, PASS is forward, grad_x or grad_w. CATENA_MATMUL_PRECISION chooses the precision on GPUs.
#include <iostream>
#include <string>

#include "catena/array/creation.h"
#include "catena/kernels/convolution.h"
#include "peer_requests.h"

namespace {

using namespace bench;
using namespace catena;

double convolution() {
  std::string device_name, dtype_name, pass, provider;
  bool last = false;
  int64_t n = 0, c = 0, h = 0, w = 0, o = 0, k = 0, stride = 0, pad = 0;
  double seconds = 0;
  std::cin >> device_name >> dtype_name >> last >> n >> c >> h >> w >> o >> k >> stride >> pad >>
      pass >> provider >> seconds;
  const Device device = device_named(device_name);
  const Dtype dtype = dtype_named(dtype_name);
  const Window window{{k, k}, {stride, stride}, {pad, pad}, {1, 1}};
  const int64_t oh = (h + 2 * pad - k) / stride + 1, ow = (w + 2 * pad - k) / stride + 1;
  const Array x = uniform({n, c, h, w}, dtype, device, last);
  const Array y = uniform({n, o, oh, ow}, dtype, device, last);
  const Array weights = uniform({o, c, k, k}, dtype, device, false);
  auto time = [&](const auto& slot, const auto& call) {
    const auto function = slot.provider(device.type(), provider);
    if (!function(call)) return -1.0;
    return best_of(seconds, device, [&] { function(call); });
  };
  if (pass == "forward")
    return time(kernels::convolution, ConvolutionCall{&x, &weights, nullptr, &y, window});
  if (pass == "grad_x")
    return time(kernels::convolution_grad_x, ConvolutionGradXCall{&y, &weights, &x, window});
  return time(kernels::convolution_grad_w, ConvolutionGradWCall{&x, &y, &weights, window});
}

int body(int, char**) {
  std::string request;
  while (std::cin >> request) {
    if (request == "providers") {
      std::string device;
      std::cin >> device;
      for (const ProviderInfo& p : kernels::convolution.providers(device_named(device).type()))
        std::cout << p.name << ' ';
      std::cout << std::endl;
      continue;
    }
    const double seconds = convolution();
    if (seconds < 0)
      std::cout << "-" << std::endl;
    else
      std::cout << seconds << std::endl;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
