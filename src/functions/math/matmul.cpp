// matmul and batch_matmul: nodes whose gradients are products of the same kind.
#include "catena/functions/math/matmul.h"

#include "catena/array/linalg.h"
#include "catena/array/reduction.h"
#include "catena/autograd/kept_results.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/math/sum.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// Views of a matrix operand: a vector as a column, then transposed on request.
Array as_matrix(const Array& a, bool transposed, int matrix_axes) {
  const Array m = a.ndim() < matrix_axes ? a.expand_dims(-1) : a;
  return transposed ? m.swapaxes(-1, -2) : m;
}

// Both matmul of matrices (two axes) and batch_matmul (three).
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

// Stacks of matrices ------------------------------------------------------------------------------

// Whether a stack is one matrix: products with it are one product of all rows.
// Whether a vector, a matrix or a stack of matrices holds no more than one matrix.
bool is_one_matrix(const Shape& m) {
  return m.ndim() <= 2 || element_count(Shape(m.begin(), m.end() - 2)) == 1;
}
Array one_matrix(const Array& m) { return m.reshape({m.shape(-2), m.shape(-1)}); }
Array all_rows(const Array& m) {
  return m.reshape({element_count(Shape(m.shape().begin(), m.shape().end() - 1)), m.shape(-1)});
}

Shape stack_shape(const Array& a, const Array& b) {
  for (int k = 3; k <= std::min(a.ndim(), b.ndim()); ++k) {
    const int64_t m = a.shape(-k), n = b.shape(-k);
    CATENA_CHECK(ShapeError, m == n || m == 1 || n == 1, "MatMul: stacks of matrices ", a.shape(),
                 " and ", b.shape(), " do not broadcast: axis ", -k, " has ", m, " and ", n);
  }
  Shape shape = broadcast_shapes(Shape(a.shape().begin(), a.shape().end() - 2),
                                 Shape(b.shape().begin(), b.shape().end() - 2));
  shape.push_back(a.shape(-2));
  shape.push_back(b.shape(-1));
  return shape;
}

Array stack_product(const Array& a, const Array& b) {
  const Shape shape = stack_shape(a, b);
  if (!is_one_matrix(b.shape()) || shape.size() != size_t(a.ndim())) return catena::matmul(a, b);
  const Array y = Array::uninitialized(shape, a.dtype(), a.device());
  matmul_into(all_rows(a), one_matrix(b), all_rows(y));
  return y;
}

// y = A B with A = op(a), B = op(b), whose leading axes are broadcast.
class StackMatmulNode final : public FunctionNode {
 public:
  StackMatmulNode(bool transa, bool transb) : transa_(transa), transb_(transb) {}
  std::string label() const override { return "MatMul"; }

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (context.needs(0)) {
      const Variable b = context.input(1);
      transa_ ? give_stack(context, 0, b, transb_, gy, true)
              : give_stack(context, 0, gy, false, b, !transb_);
    }
    if (!context.needs(1)) return;
    const Variable a = context.input(0);
    if (is_sum_over_rows(context, a, gy)) return give_sum_over_rows(context, a.data(), gy.data());
    transb_ ? give_stack(context, 1, gy, true, a, transa_)
            : give_stack(context, 1, a, !transa_, gy, false);
  }

 private:
  // Whether the gradient of b is one product over all rows, which rounds once.
  bool is_sum_over_rows(BackwardContext& context, const Variable& a, const Variable& gy) const {
    return !context.create_graph() && !transa_ && is_one_matrix(inputs()[1]->shape) &&
           a.ndim() == gy.ndim();
  }
  void give_sum_over_rows(BackwardContext& context, const Array& a, const Array& gy) const {
    const Array x = all_rows(a), g = all_rows(gy);
    const Shape& shape = inputs()[1]->shape;
    transb_ ? give_product(context, 1, g.T(), x, shape) : give_product(context, 1, x.T(), g, shape);
  }
  void give_stack(BackwardContext& context, int i, const Variable& a, bool transa,
                  const Variable& b, bool transb) const {
    const Shape& shape = inputs()[size_t(i)]->shape;
    Shape matrix = shape;  // of a vector: that of its column
    if (matrix.ndim() == 1) matrix.push_back(1);
    if (context.create_graph()) {
      const Variable product = sum_to(matmul(a, b, transa, transb), matrix);
      return context.set_grad(i, reshape(product, shape));
    }
    const Array product =
        stack_product(as_matrix(a.data(), transa, 2), as_matrix(b.data(), transb, 2));
    context.set_grad(i, Variable::constant(catena::sum_to(product, matrix).reshape(shape)));
  }
  bool transa_, transb_;
};

// Checks ------------------------------------------------------------------------------------------

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
    return "matmul takes matrices, stacks of matrices, and vectors as columns; products of numbers "
           "are *.";
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
      .require(left.ndim() >= axes - 1, right.ndim() >= axes - 1);
  if (axes == 3)
    checks.advised([&] { return advice.of_axes(); }).require(left.ndim() <= 3, right.ndim() <= 3);
  Matrices m{as_matrix(a, transa, axes), as_matrix(b, transb, axes)};
  checks.advised([&] { return advice.of_extents(); })
      .require(shown(m.a.shape(-1), [&] { return inner_text(left, !transa, axes); }) ==
               shown(m.b.shape(-2), [&] { return inner_text(right, transb, axes); }));
  if (axes == 3)
    checks.advised([&] { return advice.of_stacks(); }).require(left.shape(0) == right.shape(0));
  return m;
}

Variable apply_matmul(FunctionCall& call, int axes, bool transa, bool transb) {
  const Matrices m = checked_matrices(call, axes, transa, transb);
  call.require_one_device();
  const Variable &a = call[0], &b = call[1];
  const Array y = make_once(call, Keep::kProducts, [&] {
    Shape shape = m.a.shape();
    shape.back() = m.b.shape().back();
    const Array product = Array::uninitialized(shape, a.dtype(), a.device());
    matmul_into(m.a, m.b, product);
    call.note_work([&] { return product.size() * m.a.shape().back(); });
    return product;
  });
  return call.record(y, [&] {
    auto node = make_node<MatmulNode>(axes, transa, transb);
    if (b.requires_grad()) node->save_input(0, a);
    if (a.requires_grad()) node->save_input(1, b);
    return node;
  });
}

Variable apply_stacks(FunctionCall& call, bool transa, bool transb) {
  const Matrices m = checked_matrices(call, 2, transa, transb);
  call.require_one_device();
  const Variable &a = call[0], &b = call[1];
  const Array y = make_once(call, Keep::kProducts, [&] {
    const Array product = stack_product(m.a, m.b);
    call.note_work([&] { return product.size() * m.a.shape().back(); });
    return product;
  });
  return call.record(y, [&] {
    auto node = make_node<StackMatmulNode>(transa, transb);
    if (b.requires_grad()) node->save_input(0, a);
    if (a.requires_grad()) node->save_input(1, b);
    return node;
  });
}

}  // namespace

Variable matmul(const VariableOperand& a, const VariableOperand& b, bool transa, bool transb) {
  FunctionCall call("MatMul", Autocast::kLow, a, b);
  if (call[0].ndim() > 2 || call[1].ndim() > 2) return apply_stacks(call, transa, transb);
  return apply_matmul(call, 2, transa, transb);
}

Variable batch_matmul(const VariableOperand& a, const VariableOperand& b, bool transa,
                      bool transb) {
  FunctionCall call("BatchMatMul", Autocast::kLow, a, b);
  return apply_matmul(call, 3, transa, transb);
}

}  // namespace catena::functions
