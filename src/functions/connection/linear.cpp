#include "catena/functions/connection.h"

#include <cmath>

#include "catena/core/memory_profile.h"
#include "catena/functions/array.h"
#include "functions/advice.h"
#include "functions/support.h"
#include "functions/weighted_layer.h"

namespace catena::functions {
namespace {

using type_check::expect;

// (n, ...) as (n, in).
int64_t flat_extent(const Shape& shape) {
  int64_t n = 1;
  for (size_t i = 1; i < shape.size(); ++i) n *= shape[i];
  return n;
}
Array flatten(const Array& x) {
  return x.ndim() == 2 ? x : x.reshape({x.shape()[0], flat_extent(x.shape())});
}

void check_linear(const Array& x, const Variable& weight, const Array* b) {
  const Array& W = weight.data();
  const bool fits = is_float(W.dtype()) && x.dtype() == W.dtype() && x.ndim() >= 2 &&
                    W.ndim() == 2 && flat_extent(x.shape()) == W.shape()[1] &&
                    (b == nullptr ||
                     (b->dtype() == W.dtype() && b->ndim() == 1 && b->shape()[0] == W.shape()[0]));
  if (fits) [[likely]]
    return;
  Arrays all{x, W};
  if (b) all.push_back(*b);
  const auto check = [&](const TypeInfoTuple& in) {
    expect(in[1].dtype().kind() == 'f');
    expect(in[0].dtype() == W.dtype());
    expect(in[0].ndim() >= 2);
    expect(in[1].ndim() == 2);
    expect(type_check::named(flat_extent(x.shape()), "prod(in_types[0].shape[1:])") ==
           type_check::named(W.shape()[1], "W.shape[1]"));
    if (!b) return;
    expect(in[2].dtype() == in[1].dtype());
    expect(in[2].ndim() == 1);
    expect(in[2].shape(0) == in[1].shape(0));
  };
  refuse(layer_label("Linear", weight).c_str(), all, check, layer_advice(x, W));
}

// y = x W^T + b, with or without bias and relu. Saves x and W (and y for relu).
class LinearNode final : public FunctionNode {
 public:
  LinearNode(const Shape& x_shape, bool bias, bool relu)
      : x_shape_(x_shape), bias_(bias), relu_(relu) {}
  std::string label() const override { return relu_ ? "LinearReLU" : "Linear"; }

  void backward(BackwardContext& context) override {
    Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (relu_) gy = relu_grad(gy, context.output());
    if (context.create_graph()) return backward_recorded(context, gy);
    const Array& g = gy.data();
    if (context.needs(0)) give_product(context, 0, g, context.input(1).data(), x_shape_);
    if (context.needs(1)) {
      const Array x = flatten(context.input(0).data());
      give_product(context, 1, g.T(), x, {g.shape()[1], x.shape()[1]});
    }
    if (bias_ && context.needs(2)) give_sum(context, 2, g, {g.shape()[1]});
  }

 private:
  void backward_recorded(BackwardContext& context, const Variable& gy) const {
    if (context.needs(0)) context.set_grad(0, reshape(matmul(gy, context.input(1)), x_shape_));
    if (context.needs(1)) {
      const Variable x = context.input(0);
      context.set_grad(1, matmul(gy, reshape(x, flatten(x.data()).shape()), true));
    }
    if (bias_ && context.needs(2)) context.set_grad(2, sum(gy, 0));
  }

  Shape x_shape_;
  bool bias_, relu_;
};

Variable apply_linear(const Variable& x, const Variable& W, const Variable* b, bool with_relu) {
  const CallScope scope("linear");
  check_linear(x.data(), W, b ? &b->data() : nullptr);
  check_layer_devices("linear", x.data(), W, b ? &b->data() : nullptr);
  const Array y = Array::uninitialized({x.shape()[0], W.shape()[0]}, x.dtype(), x.device());
  const Array bias = b ? b->data().contiguous() : Array();
  matmul_into(flatten(x.data()), W.data().T(), y, false, b ? &bias : nullptr,
              with_relu ? Activation::kRelu : Activation::kNone);
  const Variable all[3] = {x, W, b ? *b : Variable()};
  const std::span<const Variable> inputs(all, b ? 3 : 2);
  return record("linear", inputs, y, [&] {
    auto node = make_node<LinearNode>(x.shape(), b != nullptr, with_relu);
    if (W.requires_grad()) node->save_input(0, x);
    if (x.requires_grad()) node->save_input(1, W);
    if (with_relu) node->save_output(0, y);
    return node;
  });
}

// Views of a matrix operand: a vector as a column, then transposed on request.
Array as_matrix(const Array& a, bool transposed, int matrix_axes) {
  const Array m = a.ndim() < matrix_axes ? a.expand_dims(-1) : a;
  return transposed ? m.swapaxes(-1, -2) : m;
}

// Both matmul (two axes) and batch_matmul (three).
class MatmulNode final : public FunctionNode {
 public:
  MatmulNode(int axes, bool transa, bool transb) : axes_(axes), transa_(transa), transb_(transb) {}
  std::string label() const override { return axes_ == 2 ? "MatMul" : "BatchMatMul"; }

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    // y = A B with A = op(a), B = op(b): the gradient of A is gy B^T, that of B is A^T gy.
    if (context.needs(0)) {
      const Variable b = context.input(1);
      if (transa_)
        give_matmul(context, 0, b, transb_, gy, true);
      else
        give_matmul(context, 0, gy, false, b, !transb_);
    }
    if (context.needs(1)) {
      const Variable a = context.input(0);
      if (transb_)
        give_matmul(context, 1, gy, true, a, transa_);
      else
        give_matmul(context, 1, a, !transa_, gy, false);
    }
  }

 private:
  void give_matmul(BackwardContext& context, int i, const Variable& a, bool transa,
                   const Variable& b, bool transb) const {
    const Shape& shape = inputs()[size_t(i)]->shape;
    if (context.create_graph()) {
      const Variable product =
          axes_ == 2 ? matmul(a, b, transa, transb) : batch_matmul(a, b, transa, transb);
      return context.set_grad(i, reshape(product, shape));
    }
    give_product(context, i, as_matrix(a.data(), transa, axes_), as_matrix(b.data(), transb, axes_),
                 shape);
  }
  int axes_;
  bool transa_, transb_;
};

// "in_types[0].shape[1] (2-D array)": the extent of an operand that is summed over.
type_check::Variable<int64_t> inner_extent(const Array& a, int i, bool transposed, bool left,
                                           int axes) {
  const bool column = a.ndim() < axes;
  const bool last = left != transposed;
  const int64_t extent = as_matrix(a, transposed, axes).shape(left ? -1 : -2);
  const int axis = column ? a.ndim() - 1 : a.ndim() - (last ? 1 : 2);
  const std::string where = column && last ? "1" : message("in_types[", i, "].shape[", axis, "]");
  return type_check::named(extent, message(where, " (", a.ndim(), "-D array)"));
}

Variable apply_matmul(const char* label, int axes, const Variable& a, const Variable& b,
                      bool transa, bool transb) {
  const auto axes_fit = [&](const Array& m) { return m.ndim() == axes || m.ndim() == axes - 1; };
  const bool kinds_fit =
      is_float(a.dtype()) && a.dtype() == b.dtype() && axes_fit(a.data()) && axes_fit(b.data());
  const Array A = kinds_fit ? as_matrix(a.data(), transa, axes) : Array();
  const Array B = kinds_fit ? as_matrix(b.data(), transb, axes) : Array();
  if (!kinds_fit || A.shape(-1) != B.shape(-2) || (axes == 3 && A.shape()[0] != B.shape()[0]))
      [[unlikely]] {
    refuse(label, {a.data(), b.data()}, [&](const TypeInfoTuple& in) {
      expect(in[0].dtype().kind() == 'f');
      expect(in[1].dtype() == in[0].dtype());
      for (int i = 0; i < 2; ++i) {
        expect(in[i].ndim() >= axes - 1);
        expect(in[i].ndim() <= axes);
      }
      expect(inner_extent(a.data(), 0, transa, true, axes) ==
             inner_extent(b.data(), 1, transb, false, axes));
      if (axes == 3) expect(in[0].shape(0) == in[1].shape(0));
    });
  }
  const CallScope scope(label);
  check_same_device(label, a.data(), b.data());
  Shape shape = A.shape();
  shape.back() = B.shape().back();
  const Array y = Array::uninitialized(shape, a.dtype(), a.device());
  matmul_into(A, B, y);
  const Variable inputs[2] = {a, b};
  return record(label, inputs, y, [&] {
    auto node = make_node<MatmulNode>(axes, transa, transb);
    if (b.requires_grad()) node->save_input(0, a);
    if (a.requires_grad()) node->save_input(1, b);
    return node;
  });
}

Array initial_linear_weight(int64_t in, int64_t out, const LinearOptions& options) {
  CATENA_CHECK(ValueError, in > 0 && out > 0, "Linear: expected sizes of at least 1, got ", in,
               " and ", out);
  return initial_weight("Linear", {out, in}, "(out, in)", options.initialW, options.dtype,
                        options.wscale * std::sqrt(1.0 / static_cast<double>(in)));
}

}  // namespace

Variable linear(const VariableOperand& x, const VariableOperand& W) {
  return apply_linear(x.variable("linear"), W.variable("linear"), nullptr, false);
}

Variable linear(const VariableOperand& x, const VariableOperand& W, const VariableOperand& b) {
  return apply_linear(x.variable("linear"), W.variable("linear"), &b.variable("linear"), false);
}

Variable linear_relu(const VariableOperand& x, const VariableOperand& W, const VariableOperand& b) {
  return apply_linear(x.variable("linear_relu"), W.variable("linear_relu"),
                      &b.variable("linear_relu"), true);
}

Variable matmul(const VariableOperand& a, const VariableOperand& b, bool transa, bool transb) {
  return apply_matmul("MatMul", 2, a.variable("matmul"), b.variable("matmul"), transa, transb);
}

Variable batch_matmul(const VariableOperand& a, const VariableOperand& b, bool transa,
                      bool transb) {
  return apply_matmul("BatchMatMul", 3, a.variable("batch_matmul"), b.variable("batch_matmul"),
                      transa, transb);
}

Linear::Linear(int64_t in_size, int64_t out_size, const LinearOptions& options)
    : W(initial_linear_weight(in_size, out_size, options)) {
  if (!options.nobias || options.initial_bias)
    b = OwnedParameter(initial_bias("Linear", W.data(), options.initial_bias, options.bias));
}

Variable Linear::operator()(const VariableOperand& x) const {
  CATENA_CHECK(ValueError, W.defined(), "Linear: this layer has no weights; it was moved from");
  return apply_linear(x.variable("Linear"), W.variable(), b.defined() ? &b.variable() : nullptr,
                      false);
}

void Linear::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  visitor(prefix + "W", W);
  if (b.defined()) visitor(prefix + "b", b);
}

namespace {

const Array& checked_start(const Array& data) {
  CATENA_CHECK(ValueError, data.defined(), "Parameter: expected an array, got an undefined one");
  CATENA_CHECK(DtypeError, is_float(data.dtype()),
               "Parameter: expected a floating dtype, which gradients have, got ", data.dtype());
  return data;
}

}  // namespace

Parameter::Parameter(const Array& data) : W(checked_start(data)) {}

Variable Parameter::operator()(Volatile is_volatile) const {
  return is_volatile == Volatile::on ? Variable(W.data(), Volatile::on) : W.variable();
}

}  // namespace catena::functions
