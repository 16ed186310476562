// One record a slot: a call through the public routines, run with every provider that is there and
// compared with the CPU's own. No slot may be without a record or without a built-in provider.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "catena/array/creation.h"
#include "catena/array/fusion.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/array/sorting.h"
#include "catena/autograd/variable.h"
#include "catena/functions/functions.h"
#include "catena/kernels/slot.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"
#include "catena/testing.h"
#include "kernels/rule_problems.h"

namespace catena {
namespace {

namespace F = functions;
using testing::random_array;

constexpr int kCompanionPriority = 10;  // providers below it are built in

Array data(Device device, const Shape& shape, uint64_t seed = 1) {
  return random_array(shape, -2, 2, Dtype::kFloat32, device, seed);
}
Array integers(Device device, const Shape& shape, int64_t high) {
  return (random_array(shape, 0, double(high) - 0.01, Dtype::kFloat64, cpu(), 2))
      .astype(Dtype::kInt32)
      .to(device);
}

// The gradient of the input too.
std::vector<Array> with_gradient(const Array& x,
                                 const std::function<Variable(const Variable&)>& function) {
  const Variable v(x);
  const Variable y = function(v);
  y.set_grad(ones(y.shape(), {y.dtype(), y.device()}));
  y.backward();
  return {y.data(), v.grad()};
}

// A convolution in both layouts, with all its gradients.
std::vector<Array> convolution(Device device, F::ConvolutionOptions options) {
  std::vector<Array> results;
  for (const bool last : {false, true}) {
    const Array images = data(device, {3, 4, 9, 8});
    const Variable x(last ? F::channels_last(images) : images),
        W(data(device, {6, 4 / options.groups, 3, 3}, 2)), b(data(device, {6}, 3));
    const Variable y = F::convolution_2d(x, W, b, options);
    y.set_grad(data(device, y.shape(), 4));
    y.backward();
    results.insert(results.end(), {y.data(), x.grad(), W.grad(), b.grad()});
  }
  return results;
}

// By products of patches, which the companions' convolutions do without.
std::vector<Array> own_convolution(Device device, F::ConvolutionOptions options) {
  const ProviderScope own("onednn:off,cudnn:off");
  return convolution(device, options);
}

// A batch normalization in both layouts, with relu and residual, its averages and all gradients.
std::vector<Array> normalization(Device device, bool train) {
  std::vector<Array> results;
  for (const bool last : {false, true}) {
    const DeviceScope scope(device);
    const F::BatchNormalization bn(8, {.initial_gamma = data(device, {8}, 2)});
    bn.avg_var.data().fill(2);
    const Array images = data(device, {3, 8, 5, 4});
    const Variable x(last ? F::channels_last(images) : images), r(data(device, images.shape(), 3));
    const Variable y = bn.add_relu(x, r, train);
    y.set_grad(data(device, y.shape(), 4));
    y.backward();
    results.insert(results.end(), {y.data(), bn.avg_mean.data(), bn.avg_var.data(), x.grad(),
                                   r.grad(), bn.gamma.grad(), bn.beta.grad()});
  }
  return results;
}

template <class Rule>
std::vector<Array> after_two_updates(Device device, Rule rule) {
  F::Linear layer(5, 3, {.initialW = data(device, {3, 5}), .initial_bias = data(device, {3}, 2)});
  rule.setup(layer);
  for (int i = 0; i < 2; ++i) {
    layer.zero_grads();
    F::sum(layer(data(device, {4, 5}, 3))).backward();
    rule.update();
  }
  return {layer.W.data(), layer.b.data()};
}

// Parameters and loss scale after an update with gradients that are not finite and a good one.
std::vector<Array> after_a_skipped_update(Device device) {
  F::Linear layer(5, 3, {.initialW = data(device, {3, 5}), .initial_bias = data(device, {3}, 2)});
  optimizers::Adam rule;
  rule.setup(layer);
  const auto scale = optimizers::add_loss_scale(rule);
  for (const double infinite : {1e39, 1.0}) {
    layer.zero_grads();
    const Variable y = layer(Variable::constant(data(device, {4, 5}, 3)));
    scale->scaled(F::sum(y * infinite)).backward();
    rule.update();
  }
  return {layer.W.data(), layer.b.data(), full({}, scale->value()), full({}, rule.t())};
}

using Results = std::vector<Array>;

struct Record {
  const char* slot;
  Results (*run)(Device);
};

// Sums of float32 in another order differ by roundings; everything else is far closer.
constexpr double kTolerance = 1e-4;

const std::vector<Record>& records() {
  static const std::vector<Record> all{
      {"elementwise",
       [](Device d) -> Results {
         return Results{tanh(data(d, {3, 50})) * data(d, {50})};
       }},
      {"fused",
       [](Device d) -> Results {
         static auto chain = fuse([](auto x, auto y) { return x * y + exp(x); });
         return Results{chain(data(d, {40}), data(d, {40}, 2))};
       }},
      {"copy",
       [](Device d) -> Results {
         return Results{data(d, {6, 7}).T().copy()};
       }},
      {"fill",
       [](Device d) -> Results {
         return Results{full({5, 5}, 2.5, {Dtype::kFloat32, d})};
       }},
      {"arange",
       [](Device d) -> Results {
         return Results{arange(1, 9, 0.5, {Dtype::kFloat32, d})};
       }},
      {"concatenate",
       [](Device d) -> Results {
         return Results{concatenate({data(d, {3, 4}), data(d, {2, 4}, 2)}, 0)};
       }},
      {"reduce",
       [](Device d) -> Results {
         return Results{sum(data(d, {9, 40}), 1), amax(data(d, {9}))};
       }},
      {"arg_reduce",
       [](Device d) -> Results {
         return Results{argmax(data(d, {9, 40}), 1)};
       }},
      {"matmul",
       [](Device d) -> Results {
         const Array a = data(d, {33, 65}), b = data(d, {65, 17}, 2), wide = data(d, {257, 300}, 3);
         return Results{matmul(a, b), matmul(b.T(), a.T()), matmul(wide, wide.T())};
       }},
      {"take",
       [](Device d) -> Results {
         return Results{take(data(d, {9, 4}), integers(d, {6}, 9), 0)};
       }},
      {"scatter_add",
       [](Device d) -> Results {
         const Array target = data(d, {9, 4});
         scatter_add(target, integers(d, {20}, 9), data(d, {20, 4}, 3));
         return Results{target};
       }},
      {"gather",
       [](Device d) -> Results {
         return Results{index_get(data(d, {9, 8}), {integers(d, {6}, 9), integers(d, {6}, 8)})};
       }},
      {"scatter",
       [](Device d) -> Results {
         const Array target = data(d, {9, 8});
         index_put(target, {arange(0, 9, 2, {Dtype::kInt64, d}), arange(5, {Dtype::kInt64, d})},
                   data(d, {5}, 2));
         return Results{target};
       }},
      {"sort",
       [](Device d) -> Results {
         return Results{sort(data(d, {7, 50})), argsort(data(d, {90}))};
       }},
      {"order_statistics",
       [](Device d) -> Results {
         return Results{median(data(d, {7, 50}), 1)};
       }},
      {"searchsorted",
       [](Device d) -> Results {
         return Results{searchsorted(sort(data(d, {30})), data(d, {50}, 2))};
       }},
      {"run_starts",
       [](Device d) -> Results { return Results{unique(integers(d, {60}, 9)).values}; }},
      {"scan",
       [](Device d) -> Results {
         return Results{cumsum(data(d, {7, 50}), 1)};
       }},
      {"nonzero_count",
       [](Device d) -> Results {
         return nonzero(integers(d, {6, 7}, 3));
       }},
      {"nonzero",
       [](Device d) -> Results {
         return nonzero(integers(d, {6, 7}, 3));
       }},
      {"bincount", [](Device d) -> Results { return Results{bincount(integers(d, {80}, 9))}; }},
      {"histogram",
       [](Device d) -> Results { return Results{histogram(data(d, {500}), 10).first}; }},
      {"random",
       [](Device d) -> Results {
         return Results{RandomState(5).uniform({50}, 0, 1, {Dtype::kFloat32, d})};
       }},
      {"permutation",
       [](Device d) -> Results { return Results{RandomState(5).permutation(50, d)}; }},
      {"dropout",
       [](Device d) -> Results {
         random::seed(7);
         return with_gradient(data(d, {6, 50}), [](const Variable& x) { return F::dropout(x); });
       }},
      {"softmax",
       [](Device d) -> Results {
         return with_gradient(data(d, {6, 50}), [](const Variable& x) { return F::softmax(x); });
       }},
      {"softmax_grad",
       [](Device d) -> Results {
         return with_gradient(data(d, {6, 5, 4}),
                              [](const Variable& x) { return F::log_softmax(x); });
       }},
      {"softmax_cross_entropy",
       [](Device d) -> Results {
         return with_gradient(data(d, {6, 10}), [d](const Variable& x) {
           return F::softmax_cross_entropy(x, integers(d, {6}, 10));
         });
       }},
      {"softmax_cross_entropy_grad",
       [](Device d) -> Results {
         return with_gradient(data(d, {600, 3}), [d](const Variable& x) {
           return F::softmax_cross_entropy(x, integers(d, {600}, 3));
         });
       }},
      {"accuracy",
       [](Device d) -> Results {
         return Results{F::accuracy(data(d, {60, 3}), integers(d, {60}, 3)).data()};
       }},
      {"convolution", [](Device d) -> Results { return convolution(d, {.pad = 1}); }},
      {"convolution_grad_x",
       [](Device d) -> Results {
         return convolution(d, {.stride = {2, 1}, .groups = 2});
       }},
      {"convolution_grad_w",
       [](Device d) -> Results { return convolution(d, {.stride = 2, .dilation = 2}); }},
      {"patches",
       [](Device d) -> Results {
         return own_convolution(d, {.pad = {1, 2}});
       }},
      {"patch_sums",
       [](Device d) -> Results { return own_convolution(d, {.stride = 3, .cover_all = true}); }},
      {"batch_normalization", [](Device d) -> Results { return normalization(d, true); }},
      {"fixed_batch_normalization", [](Device d) -> Results { return normalization(d, false); }},
      {"batch_normalization_grad", [](Device d) -> Results { return normalization(d, true); }},
      {"optimizer_update",
       [](Device d) -> Results {
         Results results = after_two_updates(d, optimizers::SGD(0.1));
         for (const Results& more :
              {after_two_updates(d, optimizers::MomentumSGD(0.1)),
               after_two_updates(d, optimizers::Adam()), after_two_updates(d, optimizers::AdamW())})
           results.insert(results.end(), more.begin(), more.end());
         return results;
       }},
      {"find_nonfinite", [](Device d) -> Results { return after_a_skipped_update(d); }},
      {"advance_loss_scale", [](Device d) -> Results { return after_a_skipped_update(d); }},
  };
  return all;
}

SlotBase* slot_named(const std::string& name) {
  for (SlotBase* slot : all_slots())
    if (slot->name() == name) return slot;
  return nullptr;
}

std::vector<Device> devices() {
  std::vector<Device> all{cpu()};
  if (device_count(DeviceType::kCuda) > 0) all.push_back(cuda_device(0));
  return all;
}

void expect_close(const std::vector<Array>& results, const std::vector<Array>& expected) {
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(results[i].shape(), expected[i].shape());
    const auto x = results[i].astype(Dtype::kFloat64).to_cpu().to_vector<double>(),
               y = expected[i].astype(Dtype::kFloat64).to_cpu().to_vector<double>();
    for (size_t k = 0; k < x.size(); ++k)
      ASSERT_NEAR(x[k], y[k], kTolerance * (1 + std::abs(y[k]))) << "result " << i << " at " << k;
  }
}

class SlotRecords : public ::testing::TestWithParam<size_t> {
 protected:
  const Record& record() const { return records()[GetParam()]; }
};

// Without its providers the record must fail: it reaches the slot that it is of.
TEST_P(SlotRecords, ReachTheirSlot) {
  std::string off;
  for (const ProviderInfo& p : slot_named(record().slot)->providers(DeviceType::kCpu))
    off += (off.empty() ? "" : ",") + std::string(record().slot) + "/" + p.name + ":off";
  const ProviderScope none(off);
  EXPECT_THROW(record().run(cpu()), DeviceError);
}

// A companion may decline the call; what it computes must agree.
TEST_P(SlotRecords, AgreeForEachProvider) {
  const std::vector<Array> expected = record().run(cpu());
  for (const Device device : devices()) {
    for (const ProviderInfo& p : slot_named(record().slot)->providers(device.type())) {
      SCOPED_TRACE(message(record().slot, " by ", p.name, " on ", device));
      // What declines a call leaves it to the last, built-in one.
      std::string others;
      for (const ProviderInfo& o : slot_named(record().slot)->providers(device.type()))
        if (o.name != p.name && o.priority > 0)
          others += message(record().slot, "/", o.name, ":off,");
      if (!others.empty()) others.pop_back();
      const ProviderScope scope(others);
      expect_close(record().run(device), expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SlotRecords, ::testing::Range(size_t{0}, records().size()),
                         [](const auto& info) { return std::string(records()[info.param].slot); });

TEST(Slots, HaveARecord) {
  for (const SlotBase* slot : all_slots()) {
    if (std::string(slot->name()).find("slot") != std::string::npos) continue;  // of slot_test.cpp
    EXPECT_TRUE(std::any_of(records().begin(), records().end(),
                            [&](const Record& r) { return r.slot == std::string(slot->name()); }))
        << slot->name() << " has no record in tests/kernels/records_test.cpp";
  }
  for (const Record& r : records()) EXPECT_NE(slot_named(r.slot), nullptr) << r.slot;
}

void expect_builtin_providers(DeviceType type) {
  for (const SlotBase* slot : all_slots()) {
    if (std::string(slot->name()).find("slot") != std::string::npos) continue;
    const auto providers = slot->providers(type);
    EXPECT_TRUE(std::any_of(providers.begin(), providers.end(),
                            [](const ProviderInfo& p) { return p.priority < kCompanionPriority; }))
        << slot->name() << " has no built-in provider for " << name(type);
  }
}

TEST(Slots, HaveABuiltInProviderOnTheCpu) { expect_builtin_providers(DeviceType::kCpu); }

// Also where no GPU is: the plug-in's kernels are registered without its backend.
TEST(Slots, HaveABuiltInProviderOnCuda) {
  const std::string file = CATENA_TEST_CUDA_PLUGIN;  // dlopen("") would be this program
  if (file.empty()) GTEST_SKIP() << "SKIPPED: no cuda plug-in in this build";
  void* plugin = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr) << dlerror();
  if (device_count(DeviceType::kCuda) == 0) {
    const auto entry = reinterpret_cast<void (*)()>(dlsym(plugin, "catena_plugin_kernels"));
    ASSERT_NE(entry, nullptr);
    entry();
  }
  expect_builtin_providers(DeviceType::kCuda);
  for (const SlotBase* slot : all_slots())
    for (const ProviderInfo& p : slot->providers(DeviceType::kCuda))
      EXPECT_TRUE(p.priority >= kCompanionPriority ||
                  std::ranges::find(kProvidersOfCuda, p.name) != std::end(kProvidersOfCuda))
          << p.name << " is not in kProvidersOfCuda";
}

}  // namespace
}  // namespace catena
