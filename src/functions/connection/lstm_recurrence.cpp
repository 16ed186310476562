#include "functions/connection/lstm_recurrence.h"

#include <algorithm>

#include "catena/array/creation.h"
#include "catena/functions/array.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"

namespace catena::functions {
namespace {

Variable zero_states(const LstmOperands& p) {
  return Variable::constant(zeros(p.states_shape(), {p.x.dtype(), p.x.device()}));
}
Variable item(const Variable& x, size_t i) { return get_item(x, {static_cast<int64_t>(i)}); }

// Arrays of one shape, one after the other on a new first axis.
Variable stacked(const Variables& parts, const Shape& part, const Variable& like) {
  Shape shape = part;
  shape.insert(shape.begin(), static_cast<int64_t>(parts.size()));
  if (parts.empty()) return Variable::constant(zeros(shape, {like.dtype(), like.device()}));
  return reshape(concat(parts, 0), shape);
}

struct State {
  Variable h, c;
};

LstmStep step_of(const Variable& gates, const State& before) {
  const Variables parts = split_axis(gates, 4, 1);
  LstmStep s{tanh(parts[0]), sigmoid(parts[1]), sigmoid(parts[2]), sigmoid(parts[3]), {},
             before.h,       before.c};
  return s;
}

// Runs layer l from its states, which become those at the end, and returns h of all steps.
Variables run_layer(const LstmOperands& p, size_t l, LstmForward& run, State& state) {
  const Variable &Wx = p.weights[3 * l], &Wh = p.weights[3 * l + 1], &b = p.weights[3 * l + 2];
  const Variable all =
      reshape(linear(run.inputs[l], Wx, b), {p.steps(), p.sequences(), 4 * p.cells()});
  Variables h;
  for (size_t t = 0; t < static_cast<size_t>(p.steps()); ++t) {
    LstmStep s = step_of(item(all, t) + matmul(state.h, Wh, false, true), state);
    state.c = s.a * s.i + state.c * s.f;
    s.tanh_c = tanh(state.c);
    state.h = s.tanh_c * s.o;
    h.push_back(state.h);
    run.steps[l].push_back(std::move(s));
  }
  return h;
}

// Gradients of one layer.
struct LayerGradients {
  Variable gates;  // (steps * n, 4 * cells)
  State start;
};

LayerGradients back_through(const std::vector<LstmStep>& steps, const Variable& Wh,
                            const Variable& gys, State g, const LstmOperands& p) {
  Variables gates;
  for (size_t t = steps.size(); t-- > 0;) {
    const LstmStep& s = steps[t];
    const Variable gh = gys.defined() ? g.h + item(gys, t) : g.h;
    const Variable gc = g.c + gh * s.o * (1 - s.tanh_c * s.tanh_c);
    gates.push_back(concat({gc * s.i * (1 - s.a * s.a), gc * s.a * s.i * (1 - s.i),
                            gc * s.c_prev * s.f * (1 - s.f), gh * s.tanh_c * s.o * (1 - s.o)},
                           1));
    g = {matmul(gates.back(), Wh), gc * s.f};
  }
  std::reverse(gates.begin(), gates.end());
  const Shape step{p.sequences(), 4 * p.cells()};
  return {reshape(stacked(gates, step, p.x), {p.steps() * p.sequences(), 4 * p.cells()}), g};
}

}  // namespace

LstmForward lstm_forward(const LstmOperands& p) {
  LstmForward run;
  run.steps.resize(p.layers());
  const Variable hx = p.hx.defined() ? p.hx : zero_states(p);
  const Variable cx = p.cx.defined() ? p.cx : zero_states(p);
  const int64_t rows = p.steps() * p.sequences();
  Variable x = reshape(p.x, {rows, p.x.shape()[2]});
  Variables hy, cy;
  for (size_t l = 0; l < p.layers(); ++l) {
    run.inputs.push_back(x);
    State state{item(hx, l), item(cx, l)};
    const Variables h = run_layer(p, l, run, state);
    run.ys = stacked(h, {p.sequences(), p.cells()}, p.x);
    x = reshape(run.ys, {rows, p.cells()});
    hy.push_back(state.h);
    cy.push_back(state.c);
  }
  run.hy = stacked(hy, {p.sequences(), p.cells()}, p.x);
  run.cy = stacked(cy, {p.sequences(), p.cells()}, p.x);
  return run;
}

LstmGradients lstm_backward(const LstmOperands& p, const LstmForward& run, const Variable& ghy,
                            const Variable& gcy, const Variable& gys) {
  const Variable gh = ghy.defined() ? ghy : zero_states(p);
  const Variable gc = gcy.defined() ? gcy : zero_states(p);
  LstmGradients to;
  to.weights.resize(p.weights.size());
  const Shape state{p.sequences(), p.cells()};
  Variables ghx, gcx;
  Variable gy = gys;
  for (size_t l = p.layers(); l-- > 0;) {
    const auto& steps = run.steps[l];
    const LayerGradients g =
        back_through(steps, p.weights[3 * l + 1], gy, {item(gh, l), item(gc, l)}, p);
    Variables h_prev;
    for (const LstmStep& s : steps) h_prev.push_back(s.h_prev);
    const Variable before =
        reshape(stacked(h_prev, state, p.x), {p.steps() * p.sequences(), p.cells()});
    to.weights[3 * l] = matmul(g.gates, run.inputs[l], true);
    to.weights[3 * l + 1] = matmul(g.gates, before, true);
    to.weights[3 * l + 2] = sum(g.gates, 0);
    gy = reshape(matmul(g.gates, p.weights[3 * l]),
                 {p.steps(), p.sequences(), run.inputs[l].shape()[1]});
    ghx.push_back(g.start.h);
    gcx.push_back(g.start.c);
  }
  to.x = gy;
  std::reverse(ghx.begin(), ghx.end());
  std::reverse(gcx.begin(), gcx.end());
  to.hx = stacked(ghx, state, p.x);
  to.cx = stacked(gcx, state, p.x);
  return to;
}

}  // namespace catena::functions
