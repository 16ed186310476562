#include "functions/loss/sampled_logistic.h"

#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/math/sum.h"
#include "functions/common/lookup.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

constexpr int kX = 0, kRows = 1, kW = 2;  // operands

// Saves x and W, keeps the rows and the derivative of each term by its product.
class SampledLogisticNode final : public FunctionNode {
 public:
  SampledLogisticNode(const char* name, const Array& rows, const Array& coefficients, bool watched)
      : name_(name), rows_(rows), coefficients_(coefficients), watched_(watched) {}
  std::string label() const override { return name_; }

  void backward(BackwardContext& context) override {
    const Variable gloss = context.grad_output();
    if (!gloss.defined() || !(context.needs(kX) || context.needs(kW))) return;
    if (watched_) context.input(kRows);  // GradientError if it was overwritten
    if (context.create_graph()) return composed(context, gloss);
    const Variable x = context.input(kX), W = context.input(kW);
    const Array xs = x.data().contiguous(), Ws = W.data().contiguous();
    Array values;
    if (context.needs(kW)) {
      Shape shape = rows_.shape();
      shape.push_back(x.shape()[1]);
      values = Array::uninitialized(shape, x.dtype(), x.device());
    }
    const auto write = [&](const Array* gx) {
      if (xs.size() == 0) return;
      kernels::sampled_logistic_grad(xs.device(), {&xs, &Ws, &rows_, &coefficients_, &gloss.data(),
                                                   gx, values.defined() ? &values : nullptr});
    };
    if (context.needs(kX))
      give(context, kX, x.shape(), x.data(), [&](const Array& gx) { write(&gx); });
    else
      write(nullptr);
    if (context.needs(kW)) give_rows(context, Variable::constant(values));
  }

 private:
  Lookup lookup() const { return {rows_, {true, -1}}; }
  // The sums of the terms' gradients, straight into the table of gradients.
  void give_rows(BackwardContext& context, const Variable& values) const {
    give_linear<true>(context, kW, *inputs()[kW], lookup(), values);
  }

  // The same from functions, which have gradients.
  void composed(BackwardContext& context, const Variable& gloss) const {
    const Variable x = context.input(kX), W = context.input(kW);
    const int64_t batch = x.shape()[0], size = x.shape()[1], terms = rows_.shape()[1];
    FunctionCall call(Lookup::kName, Autocast::kNone, W);
    const Variable rows = linear_map(call, lookup());
    const Variable each = reshape(x, {batch, 1, size});
    const Array sign = where(signbit(coefficients_), 1.0, -1.0).astype(x.dtype());
    const Array weight = where(less(rows_, 0), 0.0, -1.0).astype(x.dtype()) * sign;
    const Variable product = sum(each * rows, 2);
    const Variable g = reshape(sigmoid(-(product * sign)) * weight * gloss, {batch, terms, 1});
    if (context.needs(kX)) context.set_grad(kX, sum(g * rows, 1));
    if (context.needs(kW)) give_rows(context, g * each);
  }

  const char* name_;
  Array rows_, coefficients_;
  bool watched_;
};

}  // namespace

Variable apply_sampled_logistic(FunctionCall& call, const Array& rows, const TreePaths* paths,
                                bool watched) {
  const Variable &x = call[kX], &W = call[kW];
  const Array loss = Array::uninitialized({}, x.dtype(), x.device());
  const Array coefficients =
      Array::uninitialized(rows.shape(), compute_dtype(x.dtype()), x.device());
  if (rows.size() > 0) {
    const Array xs = x.data().contiguous(), Ws = W.data().contiguous();
    kernels::sampled_logistic(x.device(), {&xs, &Ws, &rows, &coefficients, &loss, paths});
  } else {
    loss.fill(0.0);
  }
  return call.record(loss, [&] {
    auto node = make_node<SampledLogisticNode>(call.name(), rows, coefficients, watched);
    node->save_input(kX, x);
    node->save_input(kW, W);
    if (watched) node->save_input(kRows, call[kRows]);
    return node;
  });
}

}  // namespace catena::functions
