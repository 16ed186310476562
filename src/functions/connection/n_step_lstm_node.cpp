#include "functions/connection/n_step_lstm_node.h"

#include <set>

#include "catena/array/creation.h"
#include "functions/common/gradient_target.h"

namespace catena::functions {
namespace {

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
Array array_of(const Variable& v) { return v.defined() ? v.data().contiguous() : Array(); }
Array like(const Array& x) { return Array::uninitialized(x.shape(), x.dtype(), x.device()); }

constexpr int kHy = 0, kCy = 1, kYs = 2;

class NStepLstmNode final : public FunctionNode {
 public:
  NStepLstmNode(const Places& places, size_t weights, Kept<LstmGradCall> kept)
      : at_(places), weights_(weights), kept_(std::move(kept)) {}
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
                      pointer(gcx), {},           &kept_};
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
  Kept<LstmGradCall> kept_;
};

}  // namespace

LstmArrays::LstmArrays(const LstmOperands& p)
    : x(array_of(p.x)), hx(array_of(p.hx)), cx(array_of(p.cx)) {
  for (const Variable& w : p.weights) weights.push_back(array_of(w));
}

std::vector<LstmWeights> LstmArrays::list() const {
  std::vector<LstmWeights> layers;
  for (size_t i = 0; i < weights.size(); i += 3)
    layers.push_back({&weights[i], &weights[i + 1], &weights[i + 2]});
  return layers;
}

Variables run_n_step_lstm(FunctionCall& call, const LstmOperands& operands) {
  const LstmArrays p(operands);
  const auto empty = [&](const Shape& shape) {
    return Array::uninitialized(shape, p.x.dtype(), p.x.device());
  };
  const Shape states = operands.states_shape();
  const Array y = empty({operands.steps(), operands.sequences(), operands.cells()});
  const Array hy = empty(states), cy = empty(states);
  Kept<LstmGradCall> kept;
  kernels::lstm(p.x.device(), {&p.x, p.h0(), p.c0(), p.list(), &y, &hy, &cy,
                               call.is_recorded() ? &kept : nullptr});
  call.note_work([&] {
    int64_t products = 0;  // of each step and sequence
    for (const Variable& w : operands.weights) products += w.ndim() == 2 ? w.size() : 0;
    return operands.steps() * operands.sequences() * products;
  });
  return call.record(Arrays{hy, cy, y}, [&] {
    auto node = make_node<NStepLstmNode>(Places(operands), operands.weights.size(), kept);
    for (size_t i = 0; i < call.size(); ++i) node->save_input(static_cast<int>(i), call[i]);
    node->save_output(kYs, y);
    return node;
  });
}

}  // namespace catena::functions
