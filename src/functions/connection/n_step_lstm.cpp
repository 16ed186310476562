// n_step_lstm and the layer NStepLSTM: checks, dropout between layers, parameters.
#include "catena/functions/connection/n_step_lstm.h"

#include <cmath>
#include <set>

#include "catena/array/creation.h"
#include "catena/autograd/function_call.h"
#include "catena/functions/array.h"
#include "catena/functions/noise/dropout.h"
#include "catena/kernels/rnn.h"
#include "functions/common/advice.h"
#include "functions/common/gradient_target.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"
#include "functions/connection/lstm_recurrence.h"
#include "functions/connection/n_step_numbers.h"

namespace catena::functions {
namespace {

constexpr const char* kNStepLstm = "NStepLSTM";

Array array_of(const Variable& v) { return v.defined() ? v.data().contiguous() : Array(); }

// The kernels' view of operands: contiguous arrays, and what refers to them.
struct LstmArrays {
  explicit LstmArrays(const LstmOperands& p)
      : x(array_of(p.x)), hx(array_of(p.hx)), cx(array_of(p.cx)) {
    for (const Variable& w : p.weights) weights.push_back(array_of(w));
  }
  std::vector<LstmWeights> list() const {
    std::vector<LstmWeights> layers;
    for (size_t i = 0; i < weights.size(); i += 3)
      layers.push_back({&weights[i], &weights[i + 1], &weights[i + 2]});
    return layers;
  }
  const Array* h0() const { return hx.defined() ? &hx : nullptr; }
  const Array* c0() const { return cx.defined() ? &cx : nullptr; }
  Array x, hx, cx;
  std::vector<Array> weights;
};

// Where operands are among those of the call; -1: there is none.
struct Places {
  explicit Places(const LstmOperands& p) {
    int next = 1;
    if (p.hx.defined()) hx = next++;
    if (p.cx.defined()) cx = next++;
    weights = next;
  }
  int hx = -1, cx = -1, weights;
};

const Array* pointer(const Array& a) { return a.defined() ? &a : nullptr; }
Array like(const Array& x) { return Array::uninitialized(x.shape(), x.dtype(), x.device()); }

constexpr int kHy = 0, kCy = 1, kYs = 2;

class NStepLstmNode final : public FunctionNode {
 public:
  NStepLstmNode(const LstmOperands& p, Kept<LstmGradCall> kept)
      : at_(p), weights_(p.weights.size()), counts_(p.counts), kept_(std::move(kept)) {}
  std::string label() const override { return kNStepLstm; }
  // Providers compute the gradients of the weights from those of the data.
  bool splits() const override { return false; }

  void backward(BackwardContext& context) override {
    const Variable ghy = context.grad_output(kHy), gcy = context.grad_output(kCy),
                   gys = context.grad_output(kYs);
    if (!ghy.defined() && !gcy.defined() && !gys.defined()) return;
    const LstmOperands operands = saved(context);
    if (context.create_graph()) return backward_recorded(context, operands, ghy, gcy, gys);
    backward_by_kernel(context, LstmArrays(operands), array_of(ghy), array_of(gcy), array_of(gys));
  }

 private:
  LstmOperands saved(BackwardContext& context) const {
    LstmOperands p;
    p.x = context.input(0);
    if (at_.hx >= 0) p.hx = context.input(at_.hx);
    if (at_.cx >= 0) p.cx = context.input(at_.cx);
    for (size_t i = 0; i < weights_; ++i) p.weights.push_back(context.input(place(i)));
    p.counts = counts_;
    return p;
  }
  int place(size_t weight) const { return at_.weights + static_cast<int>(weight); }
  // Whether a parameter stands at several places: its gradient is then a sum, for which each needs
  // memory.
  bool shares_weights() const {
    std::set<const VariableNode*> seen;
    for (size_t i = 0; i < weights_; ++i)
      if (!seen.insert(inputs()[static_cast<size_t>(place(i))].get()).second) return true;
    return false;
  }

  void backward_by_kernel(BackwardContext& context, const LstmArrays& p, const Array& ghy,
                          const Array& gcy, const Array& gys) const {
    const bool shared = shares_weights();
    std::vector<GradientTarget> targets;
    for (size_t i = 0; i < weights_; ++i) {
      const Array& w = p.weights[i];
      targets.push_back(
          gradient_target(context, place(i), w.shape(), w.dtype(), w.device(), shared));
    }
    const auto target = [&](size_t i) {
      return LstmTarget{targets[i].pointer(), targets[i].accumulate};
    };
    const Array gx = context.needs(0) ? like(p.x) : Array();
    const Array ghx = wants(context, at_.hx) ? like(p.hx) : Array();
    const Array gcx = wants(context, at_.cx) ? like(p.cx) : Array();
    const Array y = context.output(kYs).data();
    LstmGradCall call{&p.x,         p.h0(),       p.c0(),       p.list(),    &y,
                      pointer(gys), pointer(ghy), pointer(gcy), pointer(gx), pointer(ghx),
                      pointer(gcx), {},           &kept_,       counts_};
    for (size_t i = 0; i < weights_; i += 3)
      call.targets.push_back({target(i), target(i + 1), target(i + 2)});
    kernels::lstm_grad(p.x.device(), call);
    give(context, 0, gx);
    give(context, at_.hx, ghx);
    give(context, at_.cx, gcx);
    for (size_t i = 0; i < weights_; ++i) targets[i].give(context, place(i));
  }
  static void give(BackwardContext& context, int place, const Array& g) {
    if (g.defined()) context.set_grad(place, Variable::constant(g));
  }

  // The same on variables, after the forward pass has been computed on them again.
  void backward_recorded(BackwardContext& context, const LstmOperands& p, const Variable& ghy,
                         const Variable& gcy, const Variable& gys) const {
    const LstmGradients g = lstm_backward(p, lstm_forward(p), ghy, gcy, gys);
    const auto give_to = [&](int to, const Variable& value) {
      if (wants(context, to)) context.set_grad(to, value);
    };
    give_to(0, g.x);
    give_to(at_.hx, g.hx);
    give_to(at_.cx, g.cx);
    for (size_t i = 0; i < weights_; ++i) give_to(place(i), g.weights[i]);
  }

  Places at_;
  size_t weights_;
  std::vector<int64_t> counts_;
  Kept<LstmGradCall> kept_;
};

// Runs the call by the slot and records it: hy, cy, ys. The operands of the call are x, hx and cx
// if there are any, and the weights. Nothing is empty.
Variables run_n_step_lstm(FunctionCall& call, const LstmOperands& operands) {
  const LstmArrays p(operands);
  const auto empty = [&](const Shape& shape) {
    return Array::uninitialized(shape, p.x.dtype(), p.x.device());
  };
  const Shape states = operands.states_shape();
  const Array y = empty(operands.result_shape());
  const Array hy = empty(states), cy = empty(states);
  Kept<LstmGradCall> kept;
  kernels::lstm(p.x.device(), {&p.x, p.h0(), p.c0(), p.list(), &y, &hy, &cy,
                               call.is_recorded() ? &kept : nullptr, operands.counts});
  call.note_work([&] {
    int64_t products = 0;  // of each row
    for (const Variable& w : operands.weights) products += w.ndim() == 2 ? w.size() : 0;
    return operands.rows() * products;
  });
  return call.record(Arrays{hy, cy, y}, [&] {
    auto node = make_node<NStepLstmNode>(operands, kept);
    for (size_t i = 0; i < call.size(); ++i) node->save_input(static_cast<int>(i), call[i]);
    node->save_output(kYs, y);
    return node;
  });
}

// Checks ----------------------------------------------------------------------------------------

std::string sequence_advice(const Array& x, const Array& Wx, bool packed) {
  if (x.dtype() != Wx.dtype()) return layer_dtype_advice(x, Wx);
  if (Wx.ndim() != 2) return "The weights Wx are expected as (4 * out, in), a matrix.";
  const int64_t in = Wx.shape()[1];
  if (packed)
    return message("The layer takes packed sequences of ", in,
                   " numbers at each step; their rows have shape ", x.shape(), ".");
  const std::string takes = message("The layer takes (steps, n, ", in, "), n sequences of ", in,
                                    " numbers at each step; the input has shape ", x.shape());
  if (x.ndim() == 2 && x.shape()[1] == in)
    return takes + ": one sequence is x.expand_dims(1), one step is x.expand_dims(0).";
  return takes + ".";
}

std::string weight_advice(int64_t in, int64_t out) {
  return message("A layer of ", out, " cells has Wx (", 4 * out, ", ", in, "), Wh (", 4 * out, ", ",
                 out, ") and b (", 4 * out,
                 ",): four blocks of rows, a, i, f, o. The second layer's in is out.");
}

std::string state_advice(const char* name, const Array& state, const Shape& expected) {
  return message("The state ", name, " is expected as (n_layers, n, out) = ", expected,
                 ", of the dtype of the weights; it is ", state.dtype(), " ", state.shape(), ".");
}

// Of layer l; `in` is the extent of its input, `out` that of the first layer's states.
void check_layer(const FunctionCall& call, const LstmOperands& p, size_t l, int64_t in,
                 int64_t out) {
  const int index = static_cast<int>(l);
  const TypeOf x(p.x.data(), "xs"), Wx(p.weights[3 * l].data(), "Wx", index),
      Wh(p.weights[3 * l + 1].data(), "Wh", index), b(p.weights[3 * l + 2].data(), "b", index);
  const Checks checks(call.named(), x, Wx, Wh, b);
  if (l == 0) {
    const bool packed = !p.counts.empty();
    const int axes = packed ? 2 : 3;
    checks.require_float(Wx);
    checks.advised([&] { return sequence_advice(p.x.data(), p.weights[0].data(), packed); })
        .require(x.dtype() == Wx.dtype(), x.ndim() == axes, Wx.ndim() == 2,
                 x.shape(axes - 1) == Wx.shape(1));
  }
  checks.advised([&] { return weight_advice(in, out); })
      .require(Wx.dtype() == x.dtype(), Wh.dtype() == x.dtype(), b.dtype() == x.dtype(),
               Wx.ndim() == 2, Wh.ndim() == 2, b.ndim() == 1, Wh.shape(1) == shown(out, "out"),
               Wh.shape(0) == Wh.shape(1) * 4, Wx.shape(0) == Wh.shape(0),
               Wx.shape(1) == shown(in, "in"), b.shape(0) == Wh.shape(0));
}

void check_state(const FunctionCall& call, const LstmOperands& p, const Variable& state,
                 const char* name) {
  if (!state.defined()) return;
  const TypeOf x(p.x.data(), "xs"), s(state.data(), name);
  const Shape expected = p.states_shape();
  const auto checks = Checks(call.named(), x, s).advised([&] {
    return state_advice(name, state.data(), expected);
  });
  checks.require(s.dtype() == x.dtype(), s.ndim() == 3,
                 s.shape(0) == shown(expected[0], "n_layers"),
                 s.shape(2) == shown(expected[2], "out"));
  // PackedSequences have checked those of theirs.
  if (p.counts.empty()) checks.require(s.shape(1) == x.shape(1));
}

void check_n_step_lstm(const FunctionCall& call, const LstmOperands& p) {
  const Shape& Wh = p.weights[1].shape();
  const int64_t out = Wh.ndim() == 2 ? Wh[1] : 0;
  const Shape& x = p.x.shape();
  for (size_t l = 0; l < p.layers(); ++l)
    check_layer(call, p, l, l == 0 && x.ndim() >= 2 ? x.back() : out, out);
  check_state(call, p, p.hx, "hx");
  check_state(call, p, p.cx, "cx");
  call.require_one_device();
}

// Calls -----------------------------------------------------------------------------------------

// The operands after casts, in the order in which the call has them.
LstmOperands operands_of(const FunctionCall& call, const LstmOperands& given) {
  LstmOperands p;
  p.counts = given.counts;
  size_t next = 0;
  p.x = call[next++];
  if (given.hx.defined()) p.hx = call[next++];
  if (given.cx.defined()) p.cx = call[next++];
  while (next < call.size()) p.weights.push_back(call[next++]);
  return p;
}

std::vector<const Variable*> listed(const LstmOperands& p) {
  std::vector<const Variable*> all{&p.x};
  if (p.hx.defined()) all.push_back(&p.hx);
  if (p.cx.defined()) all.push_back(&p.cx);
  for (const Variable& w : p.weights) all.push_back(&w);
  return all;
}

// Checks the operands and runs all layers in one call, unless there is nothing to compute.
LstmResult run_layers(const LstmOperands& given) {
  const std::vector<const Variable*> all = listed(given);
  FunctionCall call(kNStepLstm, Autocast::kLow, std::span<const Variable* const>(all));
  const LstmOperands p = operands_of(call, given);
  check_n_step_lstm(call, p);
  if (p.x.size() == 0 || p.cells() == 0) {
    const LstmForward run = lstm_forward(p);
    return {run.hy, run.cy, run.ys};
  }
  const Variables results = run_n_step_lstm(call, p);
  return {results[0], results[1], results[2]};
}

Variable layer_of(const Variable& states, size_t l) {
  const auto first = static_cast<int64_t>(l);
  return states.defined() ? get_item(states, {Slice(first, first + 1)}) : Variable();
}

// A call for each layer, with dropout between them. States of a wrong shape are found before.
LstmResult run_with_dropout(const LstmOperands& p, double ratio) {
  Variables hy, cy;
  Variable x = p.x;
  for (size_t l = 0; l < p.layers(); ++l) {
    if (l > 0) x = dropout(x, ratio);
    const auto first = p.weights.begin() + static_cast<int64_t>(3 * l);
    const LstmResult r = run_layers(
        {x, layer_of(p.hx, l), layer_of(p.cx, l), Variables(first, first + 3), p.counts});
    hy.push_back(r.hy);
    cy.push_back(r.cy);
    x = r.ys;
  }
  return {concat(hy, 0), concat(cy, 0), x};
}

// Of a state that is cut into those of the layers.
void check_layer_count(const Variable& state, const char* name, int64_t n_layers) {
  CATENA_CHECK(ShapeError,
               !state.defined() || (state.shape().ndim() == 3 && state.shape()[0] == n_layers),
               kNStepLstm, ": the state ", name, " has shape ", state.shape(),
               ", expected (n_layers, n, out) with n_layers = ", n_layers);
}

// Of checked numbers; ratio: of what is dropped.
LstmResult run(const LstmOperands& p, double ratio) {
  if (ratio == 0 || p.layers() == 1) return run_layers(p);
  const auto n_layers = static_cast<int64_t>(p.layers());
  check_layer_count(p.hx, "hx", n_layers);
  check_layer_count(p.cx, "cx", n_layers);
  return run_with_dropout(p, ratio);
}

// The layer ------------------------------------------------------------------------------------

OwnedParameter packed(const Array& start) {
  OwnedParameter parameter(start);
  parameter.pack();
  return parameter;
}

NStepLSTM::Weights initial_weights(int64_t in, int64_t out, const NStepLSTMOptions& o) {
  const Dtype dtype = start_dtype(kNStepLstm, o.dtype, o.upward_init);
  const auto weight = [&](const char* option, const char* axes, int64_t inputs,
                          const InitialValue& given) {
    return packed(initial_gate_weight({kNStepLstm, option, axes}, out, inputs, given, dtype,
                                      o.wscale * std::sqrt(1.0 / static_cast<double>(inputs))));
  };
  NStepLSTM::Weights w;
  w.Wx = weight("upward_init", "(out, in)", in, o.upward_init);
  w.Wh = weight("lateral_init", "(out, out)", out, o.lateral_init);
  w.b = packed(initial_gate_bias(kNStepLstm, out, o.bias_init, o.forget_bias_init, dtype));
  return w;
}

}  // namespace

LstmResult n_step_lstm(int64_t n_layers, double dropout_ratio, const OptionalVariable& hx,
                       const OptionalVariable& cx, const Variables& weights,
                       const VariableOperand& xs, YesNo train) {
  check_n_step_numbers(kNStepLstm, n_layers, dropout_ratio, weights, 3, "Wx, Wh and b");
  LstmOperands p{xs.variable(kNStepLstm), {}, {}, weights};
  if (const Variable* h = hx.get(kNStepLstm)) p.hx = *h;
  if (const Variable* c = cx.get(kNStepLstm)) p.cx = *c;
  return run(p, train ? dropout_ratio : 0);
}

PackedLstmResult n_step_lstm(int64_t n_layers, double dropout_ratio, const OptionalVariable& hx,
                             const OptionalVariable& cx, const Variables& weights,
                             const PackedSequences& xs, YesNo train) {
  check_n_step_numbers(kNStepLstm, n_layers, dropout_ratio, weights, 3, "Wx, Wh and b");
  LstmOperands p{xs.rows(), {}, {}, weights};
  if (const Variable* h = hx.get(kNStepLstm)) p.hx = xs.longest_first(*h);
  if (const Variable* c = cx.get(kNStepLstm)) p.cx = xs.longest_first(*c);
  // Where no sequence leaves the batch, the call is one that all providers take.
  if (xs.equally_long() && p.x.ndim() == 2)
    p.x = reshape(p.x, {xs.longest(), xs.size(), p.x.shape()[1]});
  else
    p.counts = xs.counts();
  const LstmResult r = run(p, train ? dropout_ratio : 0);
  const Variable rows = reshape(r.ys, {xs.rows().shape()[0], p.cells()});
  return {xs.as_given(r.hy), xs.as_given(r.cy), xs.with_rows(rows)};
}

NStepLSTM::NStepLSTM(int64_t n_layers, int64_t in_size, int64_t out_size,
                     const NStepLSTMOptions& options)
    : dropout_(options.dropout) {
  CATENA_CHECK(ValueError, n_layers > 0 && in_size > 0 && out_size > 0,
               "NStepLSTM: expected n_layers, in_size and out_size of at least 1, got ", n_layers,
               ", ", in_size, " and ", out_size);
  CATENA_CHECK(ValueError, dropout_ >= 0 && dropout_ < 1,
               "NStepLSTM: expected a dropout of [0, 1), got ", dropout_);
  for (int64_t l = 0; l < n_layers; ++l)
    layers.push_back(initial_weights(l == 0 ? in_size : out_size, out_size, options));
}

Variables NStepLSTM::weights() const {
  CATENA_CHECK(ValueError, !layers.empty(),
               "NStepLSTM: this layer has no weights; it was moved from");
  Variables all;
  for (const Weights& w : layers)
    all.insert(all.end(), {w.Wx.variable(), w.Wh.variable(), w.b.variable()});
  return all;
}

LstmResult NStepLSTM::operator()(const OptionalVariable& hx, const OptionalVariable& cx,
                                 const VariableOperand& xs, std::optional<YesNo> train) const {
  const Variables all = weights();
  return n_step_lstm(n_layers(), dropout_, hx, cx, all, xs, train.value_or(training()));
}

PackedLstmResult NStepLSTM::operator()(const OptionalVariable& hx, const OptionalVariable& cx,
                                       const PackedSequences& xs,
                                       std::optional<YesNo> train) const {
  const Variables all = weights();
  return n_step_lstm(n_layers(), dropout_, hx, cx, all, xs, train.value_or(training()));
}

LstmResult NStepLSTM::operator()(const VariableOperand& xs, std::optional<YesNo> train) const {
  return (*this)({}, {}, xs, train);
}

PackedLstmResult NStepLSTM::operator()(const PackedSequences& xs,
                                       std::optional<YesNo> train) const {
  return (*this)({}, {}, xs, train);
}

void NStepLSTM::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  for (size_t l = 0; l < layers.size(); ++l) {
    const std::string layer = message(prefix, l, "/");
    visitor(layer + "Wx", layers[l].Wx);
    visitor(layer + "Wh", layers[l].Wh);
    visitor(layer + "b", layers[l].b);
  }
}

}  // namespace catena::functions
