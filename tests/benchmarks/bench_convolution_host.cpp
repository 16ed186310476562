// Host time of a small eager convolution, recorded and with its backward pass, beside the calls of
// its slots alone. The images are so small that the time is what the library does around a kernel:
// checks, the graph, and finding the provider's plan. On a GPU it is the time until the calls have
// returned; on the CPU the kernels are part of it.
//   bench_convolution_host [cpu:0|cuda:0]...    by default cpu:0, and cuda:0 where there is one
#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/core/backend.h"
#include "catena/functions/connection.h"
#include "catena/kernels/convolution.h"
#include "peer_requests.h"
#include "timing.h"

namespace {

using namespace bench;
using namespace catena;
namespace F = catena::functions;

constexpr Sampling kSampling{.warm_up = 200, .runs = 31, .calls = 200};
constexpr Window kWindow{{3, 3}, {1, 1}, {1, 1}, {1, 1}};

// The arrays of one convolution.
struct Data {
  explicit Data(Device device)
      : x(uniform({1, 8, 4, 4}, Dtype::kFloat32, device, false)),
        W(uniform({8, 8, 3, 3}, Dtype::kFloat32, device, false)),
        y(uniform({1, 8, 4, 4}, Dtype::kFloat32, device, false)),
        gx(empty_like(x)),
        gW(empty_like(W)) {}
  Array x, W, y, gx, gW;
};

void forward_slot(Device device, const Data& d) {
  kernels::convolution(device, {.x = &d.x, .W = &d.W, .b = nullptr, .y = &d.y, .window = kWindow});
}
void all_slots_of_a_step(Device device, const Data& d) {
  forward_slot(device, d);
  kernels::convolution_grad_x(device, {.gy = &d.y, .W = &d.W, .gx = &d.gx, .window = kWindow});
  kernels::convolution_grad_w(device, {.x = &d.x, .gy = &d.y, .gW = &d.gW, .window = kWindow});
}

void measure(Device device, Table& table) {
  const Data d(device);
  const Variable x(d.x), W(d.W);
  const F::ConvolutionOptions options{.pad = 1};
  const auto microseconds = [&](auto&& call) {
    return host_time(kSampling, device, call).median * 1e6;
  };
  const double slot = microseconds([&] { forward_slot(device, d); });
  const double slots = microseconds([&] { all_slots_of_a_step(device, d); });
  const double forward = microseconds([&] { F::convolution_2d(x, W, options); });
  const double step = microseconds([&] {
    Variable y = F::convolution_2d(x, W, options);
    y.set_grad(d.y);
    y.backward();
  });
  const std::string on = ", " + device.name();
  table.row({"convolution slot" + on, "float32", slot, "us"});
  table.row({"convolution slots, forward and gradients" + on, "float32", slots, "us"});
  table.row({"convolution_2d, recorded" + on, "float32", forward, "us", slot, "slot"});
  table.row({"convolution_2d, recorded, and backward" + on, "float32", step, "us", slots, "slots"});
}

int body(int count, char** arguments) {
  std::vector<Device> devices;
  for (int i = 1; i < count; ++i) devices.push_back(device_named(arguments[i]));
  if (devices.empty()) {
    devices.push_back(cpu(0));
    if (device_count(DeviceType::kCuda) > 0) devices.push_back(cuda_device(0));
  }
  Table table("Host time of a small convolution", "x (1, 8, 4, 4), W (8, 8, 3, 3)");
  for (const Device device : devices) measure(device, table);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
