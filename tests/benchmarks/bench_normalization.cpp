// Batch normalization, served line by line to normalization_peers.py, which times PyTorch in turn
// with it. Reads requests from standard input and answers each with the best seconds of one call:
//   normalization DEVICE DTYPE LAST N C H W FORM PASS SECONDS
//   cudnn DEVICE DTYPE LAST N C H W FORM PASS SECONDS
//   copy DEVICE DTYPE LAST N C H W FORM PASS SECONDS
// LAST is 1 for channels last, FORM is plain, relu or add_relu, PASS is forward (training,
// recorded) or both (and backward). "cudnn" times cuDNN without the framework, in its faster mode;
// the answer is inf where there is none. "copy" times a copy of x, the limit of the machine; it
// reads neither FORM nor PASS.
#include <algorithm>
#include <iostream>
#include <limits>
#include <string>

#include "catena/array/creation.h"
#include "catena/functions/normalization.h"
#include "peer_requests.h"
#ifdef BENCH_CUDNN
#include "catena/core/backend.h"
#include "raw_cudnn.h"
#endif

namespace {

using namespace bench;
using namespace catena;
namespace F = catena::functions;

struct Request {
  Device device;
  Shape shape;
  Dtype dtype;
  bool last;
  std::string form, pass;
  double seconds;
};

Request read_request() {
  std::string device, dtype;
  int64_t n = 0, c = 0, h = 0, w = 0;
  Request r{};
  std::cin >> device >> dtype >> r.last >> n >> c >> h >> w >> r.form >> r.pass >> r.seconds;
  r.device = device_named(device);
  r.dtype = dtype_named(dtype);
  r.shape = {n, c, h, w};
  return r;
}

double normalization(const Request& r) {
  const DeviceScope scope(r.device);
  const F::BatchNormalization bn(r.shape[1]);
  const Variable x(uniform(r.shape, r.dtype, r.device, r.last)),
      residual(uniform(r.shape, r.dtype, r.device, r.last));
  const Array gy = uniform(r.shape, r.dtype, r.device, r.last);
  return best_of(r.seconds, r.device, [&] {
    const Variable y = r.form == "plain"  ? bn(x)
                       : r.form == "relu" ? bn.relu(x)
                                          : bn.add_relu(x, residual);
    if (r.pass == "forward") return;
    y.set_grad(gy);
    y.backward();
  });
}

#ifdef BENCH_CUDNN
double cudnn(const Request& r) {
  double best = std::numeric_limits<double>::infinity();
  if (r.device.is_cpu()) return best;
  const DeviceScope scope(r.device);
  const Array x = uniform(r.shape, r.dtype, r.device, r.last),
              residual = uniform(r.shape, r.dtype, r.device, r.last),
              gy = uniform(r.shape, r.dtype, r.device, r.last);
  synchronize(r.device);
  backend(r.device.type()).make_current(r.device.index());
  const auto extent = [&](size_t axis) { return static_cast<int>(r.shape[axis]); };
  raw::CudnnNormalization step({{extent(0), extent(1), extent(2), extent(3)},
                                to_string(r.dtype),
                                r.last,
                                r.form,
                                x.raw_data(),
                                residual.raw_data(),
                                gy.raw_data()});
  void* stream = current_stream(r.device).native();
  for (int mode = 0; mode < step.modes(); ++mode)
    best = std::min(best, best_of(r.seconds / step.modes(), r.device, [&] {
                      step.forward(mode, stream);
                      if (r.pass == "both") step.backward(mode, stream);
                    }));
  return best;
}
#else
double cudnn(const Request&) { return std::numeric_limits<double>::infinity(); }
#endif

double copy_of_x(const Request& r) {
  const Array from = uniform(r.shape, r.dtype, r.device, false), to = from.copy();
  return best_of(r.seconds, r.device, [&] { to.assign(from); });
}

double answer(const std::string& request, const Request& r) {
  if (request == "cudnn") return cudnn(r);
  return request == "copy" ? copy_of_x(r) : normalization(r);
}

int body(int, char**) {
  std::string request;
  while (std::cin >> request) {
    std::cout << answer(request, read_request()) << std::endl;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
