// How many slots a function and its first-order backward ask, counted by providers put before the
// others in every slot. What a provider calls on its part does not count.
#include "functions/function_record.h"

#include <set>
#include <string>

#include "catena/autograd/function_set.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/normalization.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"

// The headers of all slots.
#define CATENA_ITEM(slot)
#include "lists/slots.inc"
#undef CATENA_ITEM

namespace catena {
namespace {

int g_launches = 0;
bool g_counting = false;

void count_run(const std::function<void()>& run) {
  ++g_launches;
  g_counting = false;
  run();
  g_counting = true;
}

// Backward calls go to the provider that kept something in the forward call, and are counted on
// their way. The tests keep one at a time for each kind of call.
template <class Call>
struct CountedMaker {
  static inline SlotFunction<Call> maker;
  static bool count(const Call& call) {
    bool taken = true;
    g_counting ? count_run([&] { taken = maker(call); }) : void(taken = maker(call));
    return taken;
  }
};
template <class Call>
void count_maker(Kept<Call>* kept) {
  if (kept == nullptr || kept->maker() == nullptr) return;
  CountedMaker<Call>::maker = kept->maker();
  kept->redirect(&CountedMaker<Call>::count);
}

// A provider that is asked first. While kernels are counted it counts the call, and has the others
// run it without counting.
template <auto& kSlot, DeviceType kType, class Call>
bool count_call(const Call& call) {
  if (!g_counting) return false;
  count_run([&] { kSlot(Device(kType, 0), call); });
  if constexpr (requires { count_maker(call.kept); }) count_maker(call.kept);
  return true;
}
template <auto& kSlot, DeviceType kType, class Call>
void count(Slot<Call>& slot) {
  slot.providers(kType);  // loads them, so that this one comes before all
  slot.provide(kType, "counting", &count_call<kSlot, kType, Call>, 1000);
}
template <DeviceType kType>
void count_all() {
  static bool done = false;
  if (std::exchange(done, true)) return;
#define CATENA_ITEM(slot) count<kernels::slot, kType>(kernels::slot);
#include "lists/slots.inc"
#undef CATENA_ITEM
}

int launches_of(const std::function<void()>& f) {
  g_launches = 0;
  g_counting = true;
  f();
  g_counting = false;
  return g_launches;
}

class Launches : public OnDevice {
 protected:
  void SetUp() override {
    device().is_cuda() ? count_all<DeviceType::kCuda>() : count_all<DeviceType::kCpu>();
  }
  // Kernels of the forward call, and of backward from a given gradient.
  struct Count {
    int forward, backward;
    bool operator==(const Count&) const = default;
  };
  static Count count(const std::function<Variable()>& f) {
    Variable y;
    const int forward = launches_of([&] { y = f(); });
    y.set_grad(random_array(y.shape(), 1, 2, y.dtype(), y.device(), 3));
    return {forward, launches_of([&] { y.backward(); })};
  }
  Variable variable(const Shape& shape, uint64_t seed = 1) const {
    return Variable(draw(shape, 0.5, 0.9, seed));
  }
};

#define EXPECT_LAUNCHES(forward_count, backward_count, expression)       \
  do {                                                                   \
    const Count c = count([&] { return expression; });                   \
    EXPECT_EQ(c.forward, forward_count) << "forward of " #expression;    \
    EXPECT_EQ(c.backward, backward_count) << "backward of " #expression; \
  } while (false)

TEST(LaunchCounts, CoverEverySlot) {
  const std::set<std::string> counted = {
#define CATENA_ITEM(slot) #slot,
#include "lists/slots.inc"
#undef CATENA_ITEM
  };
  for (const SlotBase* slot : all_slots())
    EXPECT_TRUE(counted.contains(slot->name())) << slot->name();
  EXPECT_EQ(counted.size(), all_slots().size());
}

TEST_P(Launches, EveryUnaryRowRunsOneKernelEachWay) {
  const Variable x = variable({2, 3});
  [[maybe_unused]] constexpr const char* ND = nullptr;
#define CATENA_G(saves, ...) #__VA_ARGS__
#define CATENA_EW1(functor, name, caption, types, form, cost, low, high, g0)    \
  if (const char* const gradient = g0) {                                        \
    const Count c = count([&] { return F::name(x); });                          \
    EXPECT_EQ(c.forward, 1) << #name;                                           \
    EXPECT_EQ(c.backward, std::string_view(gradient) == "gy" ? 0 : 1) << #name; \
  }
#define CATENA_EW2(...)
#define CATENA_EW3(...)
#include "catena/kernels/detail/elementwise_math.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
#undef CATENA_G
}

TEST_P(Launches, AreThoseOfTheRecords) {
  for (const FunctionRecord& record : all_function_records()) {
    SCOPED_TRACE(record.name());
    Variables inputs;
    for (const Array& a : record.inputs(record.shapes[0], Draw(device())))
      inputs.push_back(is_float(a.dtype()) ? Variable(a) : Variable::constant(a));
    if (record.backward_launches) {
      const Count c = count([&] { return record.call(inputs)[0]; });
      EXPECT_EQ(c.forward, record.forward_launches.value_or(c.forward));
      EXPECT_EQ(c.backward, *record.backward_launches);
    } else if (record.forward_launches) {
      EXPECT_EQ(launches_of([&] { record.call(inputs); }), *record.forward_launches);
    }
  }
}

// However many parameters there are, and where the device counts the updates as well.
TEST_P(Launches, AnUpdateIsOneKernel) {
  struct Three : FunctionSet {
    F::Linear l1{4, 5}, l2{5, 6}, l3{6, 3};
    CATENA_FUNCTIONS(l1, l2, l3)
  };
  const auto check = [&](Optimizer&& rule, const char* name) {
    Three net;
    net.to(device());
    rule.setup(net);
    rule.prepare_for_capture();
    for (int step = 0; step < 3; ++step) {
      rule.zero_grads();
      const Array x = random_array({2, 4}, -1, 1, dtype::float32, device(), 3);
      F::sum(net.l3(F::tanh(net.l2(F::tanh(net.l1(x)))))).backward();
      EXPECT_EQ(launches_of([&] { rule.update(); }), 1) << name << ", step " << step;
    }
  };
  check(optimizers::SGD(0.1), "SGD");
  check(optimizers::MomentumSGD(0.1, 0.9), "MomentumSGD");
  check(optimizers::Adam(0.001), "Adam");
  check(optimizers::AdamW(0.001), "AdamW");
}

TEST_P(Launches, BinaryRowsRunOneKernelAnInput) {
  const Variable a = variable({2, 3}, 1), b = variable({2, 3}, 2), row = variable({3}, 3);
  EXPECT_LAUNCHES(1, 0, a + b);
  EXPECT_LAUNCHES(1, 1, a - b);
  EXPECT_LAUNCHES(1, 2, a * b);
  EXPECT_LAUNCHES(1, 2, a / b);
  EXPECT_LAUNCHES(1, 2, F::power(a, b));
  EXPECT_LAUNCHES(1, 2, F::maximum(a, b));
  EXPECT_LAUNCHES(1, 2, F::arctan2(a, b));
  EXPECT_LAUNCHES(1, 2, F::hypot(a, b));
  EXPECT_LAUNCHES(1, 2, F::logaddexp(a, b));
  EXPECT_LAUNCHES(1, 1, a * 2.0);
  EXPECT_LAUNCHES(1, 1, F::power(a, 2.0));
  EXPECT_LAUNCHES(1, 1, F::clip(a, 0.6, 0.8));
  EXPECT_LAUNCHES(1, 1, a * b.data());
  EXPECT_LAUNCHES(1, 1, a + row);  // the sum over the broadcast axis
  EXPECT_LAUNCHES(1, 3, a * row);
}

TEST_P(Launches, LinearWritesStraightIntoTheGradients) {
  DeviceScope scope(device());
  F::Linear l(3, 5, {.dtype = Dtype::kFloat64});
  const Variable x = variable({4, 3});
  l.zero_grads();
  EXPECT_LAUNCHES(1, 3, l(x));         // gx, gW, gb
  EXPECT_LAUNCHES(1, 3, l(x));         // accumulated in the kernels
  EXPECT_LAUNCHES(1, 2, l(x.data()));  // no gx
}

TEST_P(Launches, ConvolutionWritesStraightIntoTheGradients) {
  DeviceScope scope(device());
  F::Convolution2D conv(3, 5, 2, {.dtype = Dtype::kFloat64});
  const Variable x = variable({2, 3, 4, 4});
  conv.zero_grads();
  EXPECT_LAUNCHES(1, 3, conv(x));         // gx, gW, gb
  EXPECT_LAUNCHES(1, 3, conv(x));         // accumulated in the kernels
  EXPECT_LAUNCHES(1, 2, conv(x.data()));  // no gx
}

// The averages, relu and the residual cost no further call, and gradients go where they belong.
TEST_P(Launches, BatchNormalizationIsOneCallEachWay) {
  DeviceScope scope(device());
  F::BatchNormalization bn(3, {.dtype = Dtype::kFloat64});
  const Variable x = variable({4, 3, 2, 2}), r = variable({4, 3, 2, 2}, 2);
  bn.zero_grads();
  EXPECT_LAUNCHES(1, 1, bn(x));
  EXPECT_LAUNCHES(1, 1, bn.relu(x));
  EXPECT_LAUNCHES(1, 1, bn.add_relu(x, r));
  EXPECT_LAUNCHES(1, 4, bn(x, false));  // and 1 / sqrt(var + eps)
}

CATENA_ON_DEVICES(Launches);

}  // namespace
}  // namespace catena
