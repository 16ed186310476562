// Records of the slots of optimizers.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "catena/array/creation.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/math/sum.h"
#include "catena/optimizers/ada_delta.h"
#include "catena/optimizers/ada_grad.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/lamb.h"
#include "catena/optimizers/lars.h"
#include "catena/optimizers/lion.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/nesterov_ag.h"
#include "catena/optimizers/rmsprop.h"
#include "catena/optimizers/rmsprop_graves.h"
#include "catena/optimizers/sgd.h"
#include "catena/optimizers/smorms3.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

namespace F = functions;

// A layer and its input; the loss is the sum of what it computes, so that gradients do not depend
// on the parameters.
F::Linear layer_on(Device device) {
  return F::Linear(5, 3, {.initialW = data(device, {3, 5}), .initial_bias = data(device, {3}, 2)});
}
Array input_on(Device device) { return data(device, {4, 5}, 3); }

template <class Rule>
Results after_two_updates(Device device, Rule rule) {
  F::Linear layer = layer_on(device);
  rule.setup(layer);
  for (int i = 0; i < 2; ++i) {
    layer.zero_grads();
    F::sum(layer(input_on(device))).backward();
    rule.update();
  }
  return {layer.W.data(), layer.b.data()};
}

// Parameters and loss scale after an update with gradients that are not finite and a good one.
Results after_a_skipped_update(Device device) {
  F::Linear layer = layer_on(device);
  optimizers::Adam rule;
  rule.setup(layer);
  const auto scale = optimizers::add_loss_scale(rule);
  for (const double infinite : {1e39, 1.0}) {
    layer.zero_grads();
    const Variable y = layer(Variable::constant(input_on(device)));
    scale->scaled(F::sum(y * infinite)).backward();
    rule.update();
  }
  return {layer.W.data(), layer.b.data(), full({}, scale->value()), full({}, rule.t())};
}

Results layer_by_lamb(Device device) { return after_two_updates(device, optimizers::LAMB(0.1)); }
Results layer_by_lars(Device device) {
  return after_two_updates(device, optimizers::LARS(0.5, {.trust = 0.1}));
}

// With momentum 0.9, decay 1e-4 and the rate scaled by the norms of each parameter.
TEST(Lars, IsByItsDefinition) {
  const Results found = layer_by_lars(cpu());
  const auto columns = input_on(cpu()).to_vector<double>();
  const F::Linear layer = layer_on(cpu());
  for (const Variable& start : {Variable(layer.W), Variable(layer.b)}) {
    auto p = start.data().to_vector<double>();
    const bool is_W = p.size() == 15;
    std::vector<double> g(p.size(), 4), velocity(p.size());
    for (size_t i = 0; is_W && i < 15; ++i)
      g[i] = columns[i % 5] + columns[5 + i % 5] + columns[10 + i % 5] + columns[15 + i % 5];
    const auto norm = [](const std::vector<double>& of) {
      return std::sqrt(std::inner_product(of.begin(), of.end(), of.begin(), 0.0));
    };
    for (int t = 0; t < 2; ++t) {
      const double rate = 0.5 * 0.1 * norm(p) / (norm(g) + 1e-4 * norm(p) + 1e-9);
      for (size_t i = 0; i < p.size(); ++i) {
        velocity[i] = 0.9 * velocity[i] + rate * (g[i] + 1e-4 * p[i]);
        p[i] -= velocity[i];
      }
    }
    const Array expected = array(p, start.shape()).astype(Dtype::kFloat32);
    EXPECT_EQ(testing::difference(found[is_W ? 0 : 1], expected, 1e-5, 1e-5), "");
  }
}

Results after_each_rule(Device device) {
  Results all;
  const auto add = [&](const Results& results) {
    all.insert(all.end(), results.begin(), results.end());
  };
  add(after_two_updates(device, optimizers::SGD(0.1)));
  add(after_two_updates(device, optimizers::MomentumSGD(0.1)));
  add(after_two_updates(device, optimizers::Adam()));
  add(after_two_updates(device, optimizers::AdamW()));
  add(layer_by_lars(device));
  add(after_two_updates(device, optimizers::AdaGrad()));
  add(after_two_updates(device, optimizers::RMSprop()));
  add(after_two_updates(device, optimizers::RMSpropGraves()));
  add(after_two_updates(device, optimizers::NesterovAG()));
  add(after_two_updates(device, optimizers::AdaDelta()));
  add(after_two_updates(device, optimizers::SMORMS3()));
  add(after_two_updates(device, optimizers::Lion()));
  add(layer_by_lamb(device));
  add(after_two_updates(device, optimizers::AdamW(0.1, {.state_dtype = Dtype::kBFloat16})));
  return all;
}

}  // namespace

CATENA_SLOT_RECORDS(optimizer) {
  return {{"optimizer_update", after_each_rule},
          {"segment_squares", layer_by_lars},
          {"step_squares", layer_by_lamb},
          {"find_nonfinite", after_a_skipped_update},
          {"advance_loss_scale", after_a_skipped_update}};
}

}  // namespace catena
