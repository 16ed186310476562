// Pooling and resizing beside a copy of the bytes that they must move: x read and y written
// forward, gy read and gx written backward; for max pooling also the byte of each place, written
// and read.
//
//   bench_pooling [device]
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "catena/array/random.h"
#include "catena/functions/array/resize_images.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/pooling.h"
#include "timing.h"

namespace {

namespace F = catena::functions;
using catena::Array;
using catena::Dtype;
using catena::Variable;

// Seconds that a copy of so many bytes, counted read and written, takes.
double copy_time(catena::Device device, double bytes) {
  const Array from = catena::zeros({int64_t(bytes / 2)}, {Dtype::kUInt8, device});
  return bench::call_time(device, [&] { from.copy(); });
}

using Call = std::function<Variable(const Variable&)>;
struct Case {
  const char* name;
  double place_bytes;  // for each element of y
  Call call;
};
std::vector<Case> cases() {
  return {
      {"max pooling 3x3/2", 1,
       [](const Variable& x) {
         return F::max_pooling_2d(x, 3, {.stride = 2, .pad = 1, .cover_all = false});
       }},
      {"average pooling 3x3/2", 0,
       [](const Variable& x) { return F::average_pooling_2d(x, 3, {.stride = 2, .pad = 1}); }},
      {"average pooling 2x2/2", 0, [](const Variable& x) { return F::average_pooling_2d(x, 2); }},
      {"average pooling 3x3/1", 0,
       [](const Variable& x) { return F::average_pooling_2d(x, 3, {.stride = 1, .pad = 1}); }},
      {"global average pooling", 0,
       [](const Variable& x) { return F::global_average_pooling_2d(x); }},
      {"adaptive average pooling to 7x7", 0,
       [](const Variable& x) { return F::adaptive_average_pooling_2d(x, 7); }},
      {"bilinear resizing to 224x224", 0,
       [](const Variable& x) { return F::resize_images(x, 224); }},
      {"nearest upsampling by 2", 0,
       [](const Variable& x) { return F::upsampling_nearest(x, 2); }}};
}

void row(const Case& c, const Variable& x, const char* what, bool last) {
  const Variable y = c.call(x);
  const Array gy = catena::ones_like(y.data());
  const double item = double(x.data().itemsize()), in = double(x.size()), out = double(y.size());
  const double bytes = in * item + out * (item + c.place_bytes);
  const double forward = bench::call_time(x.device(), [&] { c.call(x); });
  const double both = bench::call_time(x.device(), [&] {
    const Variable z = c.call(x);
    z.set_grad(gy);
    z.backward();
  });
  std::printf("| %s, %s, %s | %.3f ms | %.3f ms (copy) | %.3f ms | %.3f ms (copies) |\n", c.name,
              what, last ? "channels last" : "channels first", forward * 1e3,
              copy_time(x.device(), bytes) * 1e3, both * 1e3,
              copy_time(x.device(), 2 * bytes) * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const catena::Device device(argc > 1 ? argv[1] : "cuda:0");
  const int64_t batch = device.is_cuda() ? 64 : 4;
  std::printf("| case | forward | limit | forward and backward | limit |\n|---|---|---|---|---|\n");
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16})
    for (const bool last : {false, true}) {
      const Array images = catena::random::normal({batch, 64, 112, 112}, 0, 1, Dtype::kFloat32)
                               .astype(dtype)
                               .to(device);
      for (const Case& c : cases())
        row(c, Variable(last ? F::channels_last(images) : images), catena::name(dtype), last);
    }
}
