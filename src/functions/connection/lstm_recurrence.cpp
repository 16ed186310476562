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
Variable rows_of(const Variable& x, int64_t begin, int64_t end) {
  return begin == 0 && end == x.shape()[0] ? x : get_item(x, {Slice(begin, end)});
}

// The rows of each step; nothing where there are no steps.
Variables by_steps(const LstmOperands& p, const Variable& rows) {
  Variables steps;
  int64_t begin = 0;
  for (size_t t = 0; t < static_cast<size_t>(p.steps()); ++t) {
    steps.push_back(rows_of(rows, begin, begin + p.count(t)));
    begin += p.count(t);
  }
  return steps;
}

// Parts of `columns` one below the other.
Variable joined(const Variables& parts, int64_t columns, const Variable& like) {
  if (!parts.empty()) return concat(parts, 0);
  return Variable::constant(zeros({0, columns}, {like.dtype(), like.device()}));
}

// Arrays of one shape, one after the other on a new first axis.
Variable stacked(const Variables& parts, const Shape& part) {
  Shape shape = part;
  shape.insert(shape.begin(), static_cast<int64_t>(parts.size()));
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

// States whose last rows leave as their sequences end.
class Leaving {
 public:
  explicit Leaving(State start) : now_(std::move(start)) {}
  // The states of the first `count` sequences; the others have ended.
  const State& keep_first(int64_t count) {
    const int64_t all = now_.h.shape()[0];
    if (count == all) return now_;
    h_.push_back(rows_of(now_.h, count, all));
    c_.push_back(rows_of(now_.c, count, all));
    return now_ = {rows_of(now_.h, 0, count), rows_of(now_.c, 0, count)};
  }
  void step(const State& next) { now_ = next; }
  // Those of all sequences at their ends.
  State ends() const { return {in_order(h_, now_.h), in_order(c_, now_.c)}; }

 private:
  // The longest sequences come first, and leave last.
  static Variable in_order(const Variables& left, const Variable& last) {
    Variables parts{last};
    parts.insert(parts.end(), left.rbegin(), left.rend());
    return parts.size() == 1 ? last : concat(parts, 0);
  }
  State now_;
  Variables h_, c_;
};

// Runs layer l from its states, which become those at the ends, and returns h of all steps.
Variables run_layer(const LstmOperands& p, size_t l, LstmForward& run, State& state) {
  const Variable &Wx = p.weights[3 * l], &Wh = p.weights[3 * l + 1], &b = p.weights[3 * l + 2];
  const Variables of_x = by_steps(p, linear(run.inputs[l], Wx, b));
  Variables h;
  Leaving states(state);
  for (size_t t = 0; t < of_x.size(); ++t) {
    const State before = states.keep_first(p.count(t));
    LstmStep s = step_of(of_x[t] + matmul(before.h, Wh, false, true), before);
    const Variable c = s.a * s.i + before.c * s.f;
    s.tanh_c = tanh(c);
    h.push_back(s.tanh_c * s.o);
    states.step({h.back(), c});
    run.steps[l].push_back(std::move(s));
  }
  state = states.ends();
  return h;
}

// Gradients of one layer.
struct LayerGradients {
  Variable gates;  // (rows, 4 * cells)
  State start;
};

// g, and behind its rows those of `of_ends` up to `count`.
Variable with_ended(const Variable& g, const Variable& of_ends, int64_t count) {
  const int64_t have = g.defined() ? g.shape()[0] : 0;
  if (have == count) return g;
  const Variable ended = rows_of(of_ends, have, count);
  return have == 0 ? ended : concat({g, ended}, 0);
}

// `gys`: of each step, or empty. `ends`: those of the states at the ends.
LayerGradients back_through(const std::vector<LstmStep>& steps, const Variable& Wh,
                            const Variables& gys, const State& ends, const LstmOperands& p) {
  Variables gates;
  State g;
  for (size_t t = steps.size(); t-- > 0;) {
    const LstmStep& s = steps[t];
    g = {with_ended(g.h, ends.h, p.count(t)), with_ended(g.c, ends.c, p.count(t))};
    const Variable gh = gys.empty() ? g.h : g.h + gys[t];
    const Variable gc = g.c + gh * s.o * (1 - s.tanh_c * s.tanh_c);
    gates.push_back(concat({gc * s.i * (1 - s.a * s.a), gc * s.a * s.i * (1 - s.i),
                            gc * s.c_prev * s.f * (1 - s.f), gh * s.tanh_c * s.o * (1 - s.o)},
                           1));
    g = {matmul(gates.back(), Wh), gc * s.f};
  }
  std::reverse(gates.begin(), gates.end());
  return {joined(gates, 4 * p.cells(), p.x), steps.empty() ? ends : g};
}

}  // namespace

LstmForward lstm_forward(const LstmOperands& p) {
  LstmForward run;
  run.steps.resize(p.layers());
  const Variable hx = p.hx.defined() ? p.hx : zero_states(p);
  const Variable cx = p.cx.defined() ? p.cx : zero_states(p);
  Variable x = reshape(p.x, {p.rows(), p.x.shape().back()});
  Variables hy, cy;
  for (size_t l = 0; l < p.layers(); ++l) {
    run.inputs.push_back(x);
    State state{item(hx, l), item(cx, l)};
    const Variables h = run_layer(p, l, run, state);
    x = joined(h, p.cells(), p.x);
    hy.push_back(state.h);
    cy.push_back(state.c);
  }
  run.ys = reshape(x, p.result_shape());
  run.hy = stacked(hy, {p.sequences(), p.cells()});
  run.cy = stacked(cy, {p.sequences(), p.cells()});
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
  Variable gy = gys.defined() ? reshape(gys, {p.rows(), p.cells()}) : gys;
  for (size_t l = p.layers(); l-- > 0;) {
    const auto& steps = run.steps[l];
    const Variables of_steps = gy.defined() ? by_steps(p, gy) : Variables();
    const LayerGradients g =
        back_through(steps, p.weights[3 * l + 1], of_steps, {item(gh, l), item(gc, l)}, p);
    Variables h_prev;
    for (const LstmStep& s : steps) h_prev.push_back(s.h_prev);
    to.weights[3 * l] = matmul(g.gates, run.inputs[l], true);
    to.weights[3 * l + 1] = matmul(g.gates, joined(h_prev, p.cells(), p.x), true);
    to.weights[3 * l + 2] = sum(g.gates, 0);
    gy = matmul(g.gates, p.weights[3 * l]);
    ghx.push_back(g.start.h);
    gcx.push_back(g.start.c);
  }
  to.x = reshape(gy, p.x.shape());
  std::reverse(ghx.begin(), ghx.end());
  std::reverse(gcx.begin(), gcx.end());
  to.hx = stacked(ghx, state);
  to.cx = stacked(gcx, state);
  return to;
}

}  // namespace catena::functions
