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
    const Operands operands{x.data().contiguous(), W.data().contiguous(), gloss.data()};
    const Table table = table_of(context, W.data());
    const auto write_with = [&](const Array* gx) { write(operands, gx, table); };
    if (context.needs(kX))
      give(context, kX, x.shape(), x.data(), [&](const Array& gx) { write_with(&gx); });
    else
      write_with(nullptr);
    if (table.is_destination)
      context.written(kW);
    else if (context.needs(kW))
      context.set_grad(kW, Variable::constant(table.gW));
  }

 private:
  struct Operands {
    Array x, W, gloss;
  };
  // Where the gradients of W's rows go; undefined: nowhere.
  struct Table {
    Array gW;
    bool accumulate, is_destination;
  };
  Table table_of(BackwardContext& context, const Array& W) const {
    if (!context.needs(kW)) return {Array(), false, false};
    const BackwardContext::Destination to = context.destination(kW);
    // One parameter may be x and W: one call of the kernel makes both gradients.
    const bool is_shared = inputs()[kX] == inputs()[kW];
    if (to && !is_shared && to.array->is_contiguous() && to.array->dtype() == W.dtype())
      return {*to.array, to.accumulate, true};
    return {Array::uninitialized(W.shape(), W.dtype(), W.device()), false, false};
  }
  void write(const Operands& o, const Array* gx, const Table& table) const {
    const Array* const gW = table.gW.defined() ? &table.gW : nullptr;
    if (o.x.size() > 0)
      kernels::sampled_logistic_grad(
          o.x.device(), {&o.x, &o.W, &rows_, &coefficients_, &o.gloss, gx, gW, table.accumulate});
    else if (gW != nullptr && !table.accumulate)
      gW->fill(0.0);
  }

  // The same from functions, which have gradients.
  void composed(BackwardContext& context, const Variable& gloss) const {
    const Variable x = context.input(kX), W = context.input(kW);
    const int64_t batch = x.shape()[0], size = x.shape()[1], terms = rows_.shape()[1];
    const Lookup lookup{rows_, {true, -1}};
    FunctionCall call(Lookup::kName, Autocast::kNone, W);
    const Variable rows = linear_map(call, lookup);
    const Variable each = reshape(x, {batch, 1, size});
    const Array sign = where(signbit(coefficients_), 1.0, -1.0).astype(x.dtype());
    const Array weight = where(less(rows_, 0), 0.0, -1.0).astype(x.dtype()) * sign;
    const Variable product = sum(each * rows, 2);
    const Variable g = reshape(sigmoid(-(product * sign)) * weight * gloss, {batch, terms, 1});
    if (context.needs(kX)) context.set_grad(kX, sum(g * rows, 1));
    if (context.needs(kW)) give_linear<true>(context, kW, *inputs()[kW], lookup, g * each);
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
