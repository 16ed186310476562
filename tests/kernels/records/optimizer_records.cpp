// Records of the slots of optimizers.
#include "catena/array/creation.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
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

// A parameter's number and two states after step t with gradient g.
struct Element {
  double p, a = 0, b = 0, c = 0;
};
using Step = void (*)(Element& e, double g, int t);

void sgd(Element& e, double g, int) { e.p -= 0.1 * g; }
void momentum(Element& e, double g, int) {
  e.a = 0.9 * e.a - 0.1 * g;
  e.p += e.a;
}
// The direction of Adam, with eps outside the correction of the bias.
void moments(Element& e, double g) {
  e.a += 0.1 * (g - e.a);
  e.b += 0.001 * (g * g - e.b);
}
void adam(Element& e, double g, int t) {
  moments(e, g);
  const double rate = 0.001 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
  e.p -= rate * e.a / (std::sqrt(e.b) + 1e-8);
}
void adamw(Element& e, double g, int t) {
  moments(e, g);
  const double m = e.a / (1 - std::pow(0.9, t)), v = e.b / (1 - std::pow(0.999, t));
  e.p -= 0.001 * (m / (std::sqrt(v) + 1e-8) + 0.01 * e.p);
}

void ada_grad(Element& e, double g, int) {
  e.a += g * g;
  e.p -= 0.001 * g / (std::sqrt(e.a) + 1e-8);
}
void rmsprop(Element& e, double g, int) {
  e.a = 0.99 * e.a + 0.01 * g * g;
  e.p -= 0.01 * g / (std::sqrt(e.a) + 1e-8);
}
void rmsprop_graves(Element& e, double g, int) {
  e.a = 0.95 * e.a + 0.05 * g * g;
  e.b = 0.95 * e.b + 0.05 * g;
  e.c = 0.9 * e.c - 1e-4 * g / std::sqrt(e.a - e.b * e.b + 1e-4);
  e.p += e.c;
}
void nesterov(Element& e, double g, int) {
  e.a = 0.9 * e.a - 0.01 * g;
  e.p += 0.81 * e.a - 1.9 * 0.01 * g;
}
void ada_delta(Element& e, double g, int) {
  e.a = 0.95 * e.a + 0.05 * g * g;
  const double dx = std::sqrt((e.b + 1e-6) / (e.a + 1e-6)) * g;
  e.b = 0.95 * e.b + 0.05 * dx * dx;
  e.p -= dx;
}
void smorms3(Element& e, double g, int t) {
  if (t == 1) e.a = 1;
  const double r = 1 / (e.a + 1);
  e.b += r * (g - e.b);
  e.c += r * (g * g - e.c);
  const double x = e.b * e.b / (e.c + 1e-16);
  e.p -= g * std::min(0.001, x) / (std::sqrt(e.c) + 1e-16);
  e.a = 1 + e.a * (1 - x);
}
void lion(Element& e, double g, int) {
  const double mixed = 0.9 * e.a + 0.1 * g;
  e.p -= 1e-4 * ((mixed > 0) - (mixed < 0));
  e.a = 0.99 * e.a + 0.01 * g;
}

Plain stepped(Plain parameters, const std::function<double(int64_t)>& gradient, Step step,
              int steps) {
  for (int64_t i = 0; i < parameters.size(); ++i) {
    Element e{parameters(i)};
    for (int t = 1; t <= steps; ++t) step(e, gradient(i), t);
    parameters.values[size_t(i)] = e.p;
  }
  return parameters;
}
Plains layer_after(Step step, int steps) {
  const Plain x = plain_of(input_on(cpu()));
  const auto column_sum = [&](int64_t i) {
    double total = 0;
    for (int64_t row = 0; row < 4; ++row) total += x(row, i % 5);
    return total;
  };
  return {stepped(plain_data({3, 5}), column_sum, step, steps),
          stepped(
              plain_data({3}, 2), [](int64_t) { return 4.0; }, step, steps)};
}

double norm(const Plain& a) {
  double squares = 0;
  for (const double v : a.values) squares += v * v;
  return std::sqrt(squares);
}

// LARS with momentum 0.9, which scales the rate by the norms of each array.
Plain lars(Plain parameters, const Plain& gradient, double lr, double trust) {
  std::vector<double> velocity(parameters.values.size());
  for (int t = 0; t < 2; ++t) {
    const double p = norm(parameters), g = norm(gradient);
    const double rate = lr * trust * p / (g + 1e-4 * p + 1e-9);
    for (size_t i = 0; i < velocity.size(); ++i) {
      velocity[i] = 0.9 * velocity[i] + rate * (gradient.values[i] + 1e-4 * parameters.values[i]);
      parameters.values[i] -= velocity[i];
    }
  }
  return parameters;
}
// LAMB with a rate of 0.1 and a decay of 0.01.
Plain lamb(Plain parameters, const Plain& gradient) {
  std::vector<Element> moments_of(parameters.values.size());
  for (int t = 1; t <= 2; ++t) {
    Plain directions = parameters;
    for (size_t i = 0; i < moments_of.size(); ++i) {
      Element& e = moments_of[i];
      moments(e, gradient.values[i]);
      const double m = e.a / (1 - std::pow(0.9, t)), v = e.b / (1 - std::pow(0.999, t));
      directions.values[i] = m / (std::sqrt(v) + 1e-6) + 0.01 * parameters.values[i];
    }
    const double rate = 0.1 * norm(parameters) / norm(directions);
    for (size_t i = 0; i < moments_of.size(); ++i)
      parameters.values[i] -= rate * directions.values[i];
  }
  return parameters;
}
// What both rules with norms are compared with: the gradients of W and b.
std::pair<Plain, Plain> layer_gradients() {
  const Plain x = plain_of(input_on(cpu()));
  const Plain columns = plain({3, 5}, [&](int64_t i) {
    double total = 0;
    for (int64_t row = 0; row < 4; ++row) total += x(row, i % 5);
    return total;
  });
  return {columns, plain({3}, [](int64_t) { return 4.0; })};
}
Plains layer_after_lars() {
  const auto [gW, gb] = layer_gradients();
  return {lars(plain_data({3, 5}), gW, 0.5, 0.1), lars(plain_data({3}, 2), gb, 0.5, 0.1)};
}
Plains layer_after_lamb() {
  const auto [gW, gb] = layer_gradients();
  return {lamb(plain_data({3, 5}), gW), lamb(plain_data({3}, 2), gb)};
}
Results layer_by_lamb(Device device) { return after_two_updates(device, optimizers::LAMB(0.1)); }
Results layer_by_lars(Device device) {
  return after_two_updates(device, optimizers::LARS(0.5, {.trust = 0.1}));
}

Plains skipped_update_reference() {
  Plains expected = layer_after(adam, 1);
  const optimizers::LossScaleOptions scale;
  for (const double number : {scale.initial * scale.backoff, 1.0})
    expected.push_back(plain({}, [&](int64_t) { return number; }));
  return expected;
}

template <class List>
List joined(const std::vector<List>& lists) {
  List all;
  for (const List& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

CATENA_SLOT_RECORDS(optimizer) {
  return {
      {"optimizer_update",
       [](Device d) -> Results {
         return joined<Results>({after_two_updates(d, optimizers::SGD(0.1)),
                                 after_two_updates(d, optimizers::MomentumSGD(0.1)),
                                 after_two_updates(d, optimizers::Adam()),
                                 after_two_updates(d, optimizers::AdamW()), layer_by_lars(d),
                                 after_two_updates(d, optimizers::AdaGrad()),
                                 after_two_updates(d, optimizers::RMSprop()),
                                 after_two_updates(d, optimizers::RMSpropGraves()),
                                 after_two_updates(d, optimizers::NesterovAG()),
                                 after_two_updates(d, optimizers::AdaDelta()),
                                 after_two_updates(d, optimizers::SMORMS3()),
                                 after_two_updates(d, optimizers::Lion()), layer_by_lamb(d)});
       },
       []() -> Plains {
         return joined<Plains>({layer_after(sgd, 2), layer_after(momentum, 2), layer_after(adam, 2),
                                layer_after(adamw, 2), layer_after_lars(), layer_after(ada_grad, 2),
                                layer_after(rmsprop, 2), layer_after(rmsprop_graves, 2),
                                layer_after(nesterov, 2), layer_after(ada_delta, 2),
                                layer_after(smorms3, 2), layer_after(lion, 2), layer_after_lamb()});
       }},
      {"segment_squares", layer_by_lars, layer_after_lars},
      {"step_squares", layer_by_lamb, layer_after_lamb},
      {"find_nonfinite", after_a_skipped_update, skipped_update_reference},
      {"advance_loss_scale", after_a_skipped_update, skipped_update_reference},
  };
}

}  // namespace catena
