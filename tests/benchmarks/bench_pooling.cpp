// Max pooling beside a copy of the bytes that it must move: x read and y written forward, with the
// byte of each place; gy and places read and gx written backward.
//
//   bench_pooling [device]
#include <cstdio>
#include <string>

#include "catena/array/random.h"
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
  return bench::wall_time({3, 7, 10}, device, [&] { from.copy(); }).median;
}

void row(const Variable& x, const char* what, bool last) {
  const auto pooled = [&] {
    return F::max_pooling_2d(x, 3, {.stride = F::Extent2D(2), .pad = 1, .cover_all = false});
  };
  const Variable y = pooled();
  const Array gy = catena::ones_like(y.data());
  const double item = double(x.data().itemsize()), in = double(x.size()), out = double(y.size());
  const double forward_bytes = in * item + out * (item + 1),
               backward_bytes = out * (item + 1) + in * item;
  const bench::Sampling sampling{3, 7, 10};
  const double forward = bench::wall_time(sampling, x.device(), pooled).median;
  const double both = bench::wall_time(sampling, x.device(), [&] {
                        const Variable z = pooled();
                        z.set_grad(gy);
                        z.backward();
                      }).median;
  std::printf(
      "| max pooling 3x3/2, %s, %s | %.3f ms | %.3f ms (copy) | %.3f ms | %.3f ms (copies) |\n",
      what, last ? "channels last" : "channels first", forward * 1e3,
      copy_time(x.device(), forward_bytes) * 1e3, both * 1e3,
      copy_time(x.device(), forward_bytes + backward_bytes) * 1e3);
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
      row(Variable(last ? F::channels_last(images) : images), catena::name(dtype), last);
    }
}
