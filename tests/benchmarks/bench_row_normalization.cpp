// Layer, root-mean-square, group, instance and local response normalization beside a copy of the
// bytes that they must move: x read and y written forward; x and gy read and gx written backward.
//
//   bench_row_normalization [device]
#include <cstdio>
#include <functional>
#include <string>

#include "catena/array/random.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/normalization.h"
#include "timing.h"

namespace {

namespace F = catena::functions;
using catena::Array;
using catena::Dtype;
using catena::Shape;
using catena::Variable;

// Seconds that a copy takes which reads and writes so many bytes in all.
double copy_time(catena::Device device, double bytes) {
  const Array from = catena::zeros({int64_t(bytes / 2)}, {Dtype::kUInt8, device}),
              to = catena::zeros_like(from);
  return bench::call_time(device, [&] { to.assign(from); });
}

void row(const char* what, const Variable& x, const std::function<Variable(const Variable&)>& f) {
  const catena::Device device = x.device();
  const double bytes = double(x.size() * x.data().itemsize());
  const Array gy = catena::ones_like(f(x).data());
  const double forward = bench::call_time(device, [&] { f(x); });
  const double both = bench::call_time(device, [&] {
    const Variable y = f(x);
    y.set_grad(gy);
    y.backward();
  });
  std::printf("| %s, %s | %.3f ms | %.3f ms | %.3f ms | %.3f ms |\n", what, catena::name(x.dtype()),
              forward * 1e3, copy_time(device, 2 * bytes) * 1e3, both * 1e3,
              copy_time(device, 5 * bytes) * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const catena::Device device(argc > 1 ? argv[1] : "cuda:0");
  const catena::DeviceScope scope(device);
  const int64_t scale = device.is_cuda() ? 16 : 1;
  std::printf("| case | forward | copy | forward and backward | copies |\n|---|---|---|---|---|\n");
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
    const auto draw = [&](const Shape& shape) {
      return catena::random::normal(shape, 0, 1, Dtype::kFloat32).astype(dtype);
    };
    for (const int64_t size : {256, 1024, 4096}) {
      const Variable x(draw({scale * 2097152 / size, size}));
      const F::LayerNormalization layer(size);
      row(catena::message("layer, rows of ", size).c_str(), x,
          [&](const Variable& v) { return layer(v); });
      const F::RMSNormalization rms(size);
      row(catena::message("rms, rows of ", size).c_str(), x,
          [&](const Variable& v) { return rms(v); });
    }
    const Array images = draw({2 * scale, 256, 56, 56});
    const F::GroupNormalization group(32, 256);
    const F::InstanceNormalization instance(256);
    for (const bool last : {false, true}) {
      const Variable x(last ? F::channels_last(images) : images);
      const std::string order = last ? ", channels last" : "";
      row(("32 groups of 256 channels" + order).c_str(), x,
          [&](const Variable& v) { return group(v); });
      row(("instance" + order).c_str(), x, [&](const Variable& v) { return instance(v); });
      row(("local response" + order).c_str(), x,
          [](const Variable& v) { return F::local_response_normalization(v); });
    }
  }
}
