// matmul and batch_matmul: one node, whose gradients are products of the same kind.
#include "catena/functions/math/matmul.h"

#include "catena/functions/array/reshape.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

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

// "a.shape[1] (2-D array)": the extent of an operand that is summed over.
std::string inner_text(const TypeOf& operand, bool last, int axes) {
  const Array& a = *operand.array;
  const bool column = a.ndim() < axes;
  const int axis = column ? a.ndim() - 1 : a.ndim() - (last ? 1 : 2);
  const std::string where = column && last ? "1" : operand.shape(axis).str();
  return message(where, " (", a.ndim(), "-D array)");
}

// What to do about operands that have no product.
struct ProductAdvice {
  const Array &a, &b;
  int axes;
  bool transa, transb;

  std::string of_axes() const {
    if (axes == 3)
      return "batch_matmul takes stacks of matrices, (s, m, k), or of columns, (s, k); the product "
             "of two matrices is matmul.";
    return "matmul takes matrices, and vectors as columns; products of stacks of matrices are "
           "batch_matmul, products of numbers are *.";
  }
  std::string of_extents() const {
    return message(
        axes == 2 ? "matmul takes (m, k) and (k, n)" : "batch_matmul takes (s, m, k) and (s, k, n)",
        "; a is ", shown_operand(a, transa), ", b is ", shown_operand(b, transb), ".",
        transposed());
  }
  std::string of_stacks() const {
    return message("a has ", a.shape()[0], " matrices, b has ", b.shape()[0],
                   ": give as many of both.");
  }

 private:
  std::string shown_operand(const Array& m, bool transposed) const {
    return message(transposed ? "the transpose of " : "", m.shape(),
                   m.ndim() < axes ? ", a column" : "");
  }
  // How to transpose one or both of them so that they fit.
  std::string transposed() const {
    const std::pair<bool, bool> others[] = {
        {transa, !transb}, {!transa, transb}, {!transa, !transb}};
    for (const auto& [ta, tb] : others) {
      if (as_matrix(a, ta, axes).shape(-1) == as_matrix(b, tb, axes).shape(-2))
        return message(" They fit with transa = ", ta, " and transb = ", tb, ".");
    }
    return {};
  }
};

// The operands of the kernel.
struct Matrices {
  Array a, b;
};

Matrices checked_matrices(const FunctionCall& call, int axes, bool transa, bool transb) {
  const Array &a = call[0].data(), &b = call[1].data();
  const TypeOf left(a, "a"), right(b, "b");
  const Checks checks(call.named(), left, right);
  const ProductAdvice advice{a, b, axes, transa, transb};
  checks.require_float(left);
  checks.advised([&] { return dtype_advice(a, b); }).require(right.dtype() == left.dtype());
  checks.advised([&] { return advice.of_axes(); })
      .require(left.ndim() >= axes - 1, left.ndim() <= axes, right.ndim() >= axes - 1,
               right.ndim() <= axes);
  Matrices m{as_matrix(a, transa, axes), as_matrix(b, transb, axes)};
  checks.advised([&] { return advice.of_extents(); })
      .require(shown(m.a.shape(-1), [&] { return inner_text(left, !transa, axes); }) ==
               shown(m.b.shape(-2), [&] { return inner_text(right, transb, axes); }));
  if (axes == 3)
    checks.advised([&] { return advice.of_stacks(); }).require(left.shape(0) == right.shape(0));
  return m;
}

Variable apply_matmul(FunctionCall& call, int axes, bool transa, bool transb) {
  const auto [A, B] = checked_matrices(call, axes, transa, transb);
  call.require_one_device();
  const Variable &a = call[0], &b = call[1];
  Shape shape = A.shape();
  shape.back() = B.shape().back();
  const Array y = Array::uninitialized(shape, a.dtype(), a.device());
  matmul_into(A, B, y);
  call.note_work([&, &rows = A] { return y.size() * rows.shape().back(); });
  return call.record(y, [&] {
    auto node = make_node<MatmulNode>(axes, transa, transb);
    if (b.requires_grad()) node->save_input(0, a);
    if (a.requires_grad()) node->save_input(1, b);
    return node;
  });
}

}  // namespace

Variable matmul(const VariableOperand& a, const VariableOperand& b, bool transa, bool transb) {
  FunctionCall call("MatMul", Autocast::kLow, a, b);
  return apply_matmul(call, 2, transa, transb);
}

Variable batch_matmul(const VariableOperand& a, const VariableOperand& b, bool transa,
                      bool transb) {
  FunctionCall call("BatchMatMul", Autocast::kLow, a, b);
  return apply_matmul(call, 3, transa, transb);
}

}  // namespace catena::functions
