// A network that is split over two devices against the same network on one, on CPU devices and
// GPUs.
#include "catena/core/backend.h"
#include "catena/functions/array.h"
#include "cuda/gpu.h"
#include "parallel/network.h"

namespace catena {
namespace {

using namespace testing;  // the network

constexpr int kSteps = 20;

// As in the seed's manual: each layer is cut in two, both devices work, and they exchange what they
// have in the middle.
struct SplitNet : FunctionSet {
  F::Linear first0, first1, middle0, middle1, last0, last1;
  explicit SplitNet(Dtype dtype)
      : first0(layer(kInputs, 8, dtype, 1)),
        first1(layer(kInputs, 8, dtype, 2)),
        middle0(layer(8, 7, dtype, 3)),
        middle1(layer(8, 7, dtype, 4)),
        last0(layer(7, kClasses, dtype, 5)),
        last1(layer(7, kClasses, dtype, 6)) {}
  CATENA_FUNCTIONS(first0, first1, middle0, middle1, last0, last1)

  void place(Device zero, Device one) {
    device0 = zero;
    device1 = one;
    for (F::Linear* l : {&first0, &middle0, &last0}) l->to(zero);
    for (F::Linear* l : {&first1, &middle1, &last1}) l->to(one);
  }

  // x and the result are on device 0.
  Variable operator()(const Variable& x) {
    const Variable z0 = first0(x), z1 = first1(F::copy(x, device1));
    const Variable h0 = F::tanh(z0 + F::copy(z1, device0));
    const Variable h1 = F::tanh(z1 + F::copy(z0, device1));
    const Variable y0 = last0(F::tanh(middle0(h0))), y1 = last1(F::tanh(middle1(h1)));
    return y0 + F::copy(y1, device0);
  }

  Device device0, device1;
};

struct Case {
  Device zero, one;
  Dtype dtype;
  std::string rule;
  int64_t samples;
};

std::ostream& operator<<(std::ostream& os, const Case& c) {
  return os << (c.zero.is_cpu() ? "cpu_" : "gpu_") << (c.one.is_cpu() ? "cpu_" : "gpu_")
            << name(c.dtype) << "_" << c.rule << "_" << c.samples;
}

Values train(const Case& c, Device zero, Device one) {
  SplitNet net(c.dtype);
  net.place(zero, one);
  const auto optimizer = make_rule(c.rule);
  optimizer->setup(net);
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch = part(batch_of(step, c.samples, c.dtype), 0, c.samples, zero);
    optimizer->zero_grads();
    F::softmax_cross_entropy(net(batch.x), batch.t).backward();
    optimizer->update();
  }
  EXPECT_EQ(net.first0.W.data().device(), zero);
  EXPECT_EQ(net.last1.W.data().device(), one);
  return values_of(net);
}

class ModelParallel : public ::testing::TestWithParam<Case> {};

TEST_P(ModelParallel, TwoDevicesEqualOne) {
  const Case& c = GetParam();
  CATENA_NEEDS_GPUS(int(c.zero.is_cuda()) + int(c.one.is_cuda()));
  const Values split = train(c, c.zero, c.one);
  expect_equal_training(split, train(c, c.zero, c.zero), c.dtype, "on the first device");
  if (c.zero.is_cuda()) return;
  EXPECT_EQ(split, train(c, c.one, c.one)) << "CPU devices compute alike, bit for bit";
}

std::vector<Case> cases() {
  const std::pair<Device, Device> pairs[] = {
      {cpu(0), cpu(1)}, {cuda_device(0), cuda_device(1)}, {cuda_device(0), cpu(0)}};
  std::vector<Case> result;
  for (const auto& [zero, one] : pairs) {
    for (const Dtype dtype : {dtype::float32, dtype::float64}) {
      for (const char* rule : {"SGD", "Adam"}) {
        for (const int64_t samples : {12, 7}) result.push_back({zero, one, dtype, rule, samples});
      }
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Cases, ModelParallel, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return ::testing::PrintToString(info.param); });

}  // namespace
}  // namespace catena
