// Host time of small eager calls, recorded and with their backward passes. The operands are so
// small that the time is what the library does around a kernel: checks, the graph, and finding a
// plan. On a GPU it is the time until the calls have returned; on the CPU the kernels are part of
// it. Beside each stand the calls of its slots alone, which launch the kernels.
//   bench_host [cpu:0|cuda:0]...    by default cpu:0, and cuda:0 where there is one
#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/core/backend.h"
#include "catena/functions/attention.h"
#include "catena/functions/connection.h"
#include "catena/functions/normalization.h"
#include "catena/kernels/attention.h"
#include "catena/kernels/convolution.h"
#include "catena/kernels/matmul.h"
#include "catena/kernels/row_normalization.h"
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

template <class Call>
double microseconds(Device device, Call call) {
  return host_time(kSampling, device, call).median * 1e6;
}

// A recorded call, and the same with its backward pass.
struct HostTimes {
  double forward, step;
};
template <class Call>
HostTimes times_of(Device device, Call call) {
  const Array gy = ones_like(call().data());
  return {microseconds(device, call), microseconds(device, [&] {
            Variable y = call();
            y.set_grad(gy);
            y.backward();
          })};
}

void measure_convolution(Device device, Table& table) {
  const Data d(device);
  const Variable x(d.x), W(d.W);
  const double slot = microseconds(device, [&] { forward_slot(device, d); });
  const double slots = microseconds(device, [&] { all_slots_of_a_step(device, d); });
  const HostTimes times =
      times_of(device, [&] { return F::convolution_2d(x, W, F::ConvolutionOptions{.pad = 1}); });
  const std::string on = ", " + device.name();
  table.row({"convolution slot" + on, "float32", slot, "us"});
  table.row({"convolution slots, forward and gradients" + on, "float32", slots, "us"});
  table.row({"convolution_2d, recorded" + on, "float32", times.forward, "us", slot, "slot"});
  table.row(
      {"convolution_2d, recorded, and backward" + on, "float32", times.step, "us", slots, "slots"});
}

// What blocks of transformers call, and its slot alone.
class TransformerCalls {
 public:
  TransformerCalls(Device device, Dtype dtype, Table& table)
      : device_(device), dtype_(dtype), table_(table) {}

  void attention() {
    const Variable q = numbers({1, 2, 8, 32}), k = numbers({1, 2, 8, 32}),
                   v = numbers({1, 2, 8, 32});
    const Array out = empty_like(q.data()), norms = floats({2, 1, 2, 8});
    const AttentionCall call{.q = &q.data(),
                             .k = &k.data(),
                             .v = &v.data(),
                             .rules = {.causal = true},
                             .out = &out,
                             .norms = &norms};
    add(
        "scaled_dot_product_attention", [&] { kernels::attention(device_, call); },
        [&] { return F::scaled_dot_product_attention(q, k, v, {.causal = true}); });
  }
  void layer_normalization() {
    const Variable x = numbers({16, 64}), b = numbers({64});
    const Array y = empty_like(x.data()), statistics = floats({3, 16});
    const RowNormalizationCall call{.layout = {16, 1, 64, 1, 1},
                                    .x = &x.data(),
                                    .gamma = &b.data(),
                                    .beta = &b.data(),
                                    .eps = 1e-5,
                                    .centred = true,
                                    .y = &y,
                                    .statistics = &statistics};
    add(
        "layer_normalization", [&] { kernels::row_normalization(device_, call); },
        [&] { return F::layer_normalization(x, b, b, 1e-5); });
  }
  void linear() {
    const Variable x = numbers({16, 64}), W = numbers({64, 64}), b = numbers({64});
    const Array y = empty_like(x.data()), transposed = W.data().T();
    const MatmulCall call{.a = &x.data(), .b = &transposed, .output = &y, .bias = &b.data()};
    add(
        "linear", [&] { kernels::matmul(device_, call); }, [&] { return F::linear(x, W, b); });
  }

 private:
  Variable numbers(const Shape& shape) const {
    return Variable(random::default_state(device_)
                        .uniform(shape, -1, 1, {dtype::float32, device_})
                        .astype(dtype_));
  }
  Array floats(const Shape& shape) const { return empty(shape, {dtype::float32, device_}); }

  template <class Slot, class Call>
  void add(const std::string& name, Slot slot, Call call) {
    const double alone = microseconds(device_, slot);
    const HostTimes times = times_of(device_, call);
    const std::string on = ", " + device_.name(), type(catena::name(dtype_));
    table_.row({name + " slot" + on, type, alone, "us"});
    table_.row({name + ", recorded" + on, type, times.forward, "us", alone, "slot"});
    table_.row({name + ", recorded, and backward" + on, type, times.step, "us"});
  }

  Device device_;
  Dtype dtype_;
  Table& table_;
};

int body(int count, char** arguments) {
  std::vector<Device> devices;
  for (int i = 1; i < count; ++i) devices.push_back(device_named(arguments[i]));
  if (devices.empty()) {
    devices.push_back(cpu(0));
    if (device_count(DeviceType::kCuda) > 0) devices.push_back(cuda_device(0));
  }
  Table table("Host time of small calls",
              "x (1, 8, 4, 4), W (8, 8, 3, 3); 2 heads of 8 x 32; rows 16 x 64");
  for (const Device device : devices) {
    measure_convolution(device, table);
    TransformerCalls calls(device, device.is_cuda() ? Dtype::kBFloat16 : Dtype::kFloat32, table);
    calls.attention();
    calls.layer_normalization();
    calls.linear();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
