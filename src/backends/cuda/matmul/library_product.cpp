#include "backends/cuda/matmul/library_product.h"

#include <algorithm>

#include "backends/cuda/runtime/glue.h"
#include "catena/array/array.h"
#include "catena/kernels/matmul.h"

namespace catena::gpu {
namespace {

Matrix matrix_of(const Array& a) {
  const int axis = a.ndim() - 2;
  const int64_t size = a.itemsize();
  const Strides& s = a.strides();
  return {a.raw_data(), s[size_t(axis)] / size, s[size_t(axis) + 1] / size,
          axis == 1 ? s[0] / size : 0};
}

// A row-major matrix is the column-major form of its transpose. Returns the form of an operand that
// must be `lines` x `line` with contiguous lines; empty if its layout is different.
std::optional<int64_t> leading(int64_t lines, int64_t line, int64_t line_step,
                               int64_t element_step) {
  if (element_step != 1 && line > 1) return {};
  if (lines == 1) return std::max<int64_t>(line, 1);
  if (line_step < std::max<int64_t>(line, 1)) return {};
  return line_step;
}

// rows x columns as the library sees its transpose: not transposed if it is row-major, else
// transposed.
std::optional<LibraryMatrix> library_view(const Matrix& m, int64_t rows, int64_t columns) {
  if (const auto ld = leading(rows, columns, m.row_step, m.column_step)) {
    return LibraryMatrix{m.data, *ld, m.batch_step, false};
  }
  if (const auto ld = leading(columns, rows, m.column_step, m.row_step)) {
    return LibraryMatrix{m.data, *ld, m.batch_step, true};
  }
  return {};
}

}  // namespace

Product product_of(const MatmulCall& call) {
  Product p{};
  const Array& c = *call.output;
  const int axis = c.ndim() - 2;
  p.m = c.shape()[size_t(axis)];
  p.n = c.shape()[size_t(axis) + 1];
  p.k = call.a->shape()[size_t(axis) + 1];
  p.batch = axis == 1 ? c.shape()[0] : 1;
  p.a = matrix_of(*call.a);
  p.b = matrix_of(*call.b);
  p.c = matrix_of(c);
  p.bias = data_of(call.bias);
  p.relu = call.activation == Activation::kRelu;
  p.accumulate = call.accumulate;
  p.wide = c.dtype() != call.a->dtype();
  return p;
}

// c = a b in row-major order is c' = b' a' in the library's column-major order, with the bias along
// the rows of c'.
std::optional<LibraryProduct> library_product(const Product& p) {
  const auto a = library_view(p.a, p.m, p.k), b = library_view(p.b, p.k, p.n),
             c = library_view(p.c, p.m, p.n);
  if (!a || !b || !c) return {};
  LibraryProduct result{};
  result.depth = p.k, result.batch = p.batch;
  result.c = *c;
  result.activation = p.relu ? LibraryActivation::kRelu : LibraryActivation::kNone;
  result.accumulate = p.accumulate, result.wide = p.wide;
  if (!c->transposed) {
    result.rows = p.n, result.columns = p.m;
    result.a = *b, result.b = *a;
    result.bias = p.bias;
    return result;
  }
  if (p.bias) return {};  // the library adds a bias along the other axis only
  result.rows = p.m, result.columns = p.n;
  result.a = *a, result.b = *b;
  for (LibraryMatrix* m : {&result.a, &result.b, &result.c}) m->transposed = !m->transposed;
  return result;
}

}  // namespace catena::gpu
