// Host glue of the matmul slot: chooses between cuBLASLt and catena's own kernels.
#include "backends/cuda/matmul/matmul.h"

#include <optional>

#include "backends/common/family.h"
#include "backends/cuda/matmul/cublaslt.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/core/config.h"
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

// c = a b in row-major order is c' = b' a' in the library's column-major order, with the bias along
// the rows of c'.
std::optional<LibraryProduct> library_product(const Product& p) {
  const auto a = library_view(p.a, p.m, p.k), b = library_view(p.b, p.k, p.n),
             c = library_view(p.c, p.m, p.n);
  if (!a || !b || !c) return {};
  if (!c->transposed)
    return LibraryProduct{p.n, p.m, p.k, p.batch, *b, *a, *c, p.bias, p.relu, p.accumulate, p.wide};
  if (p.bias) return {};  // the library adds a bias along the other axis only
  LibraryMatrix left = *a, right = *b, result = *c;
  left.transposed = !left.transposed;
  right.transposed = !right.transposed;
  result.transposed = false;
  return LibraryProduct{p.m,    p.n,     p.k,    p.batch,      left,  right,
                        result, nullptr, p.relu, p.accumulate, p.wide};
}

bool run_library(const Product& p, Dtype dtype, int device, const Launch& launch) {
  const Precision precision = config().matmul_precision;
  auto library = library_product(p);
  if (!library || p.batch > INT32_MAX) return false;
  if (library_matmul(dtype, precision, *library, device, launch.stream)) return true;
  if ((!p.bias && !p.relu) || p.accumulate) return false;
  library->bias = nullptr;
  library->relu = false;
  if (!library_matmul(dtype, precision, *library, device, launch.stream)) return false;
  launch_bias_activation(float_code("matmul", dtype), p, launch);
  return true;
}

// Small products by catena's own kernels. Returns false if the library is to compute this one.
bool run_small(const Product& p, Dtype dtype, const Launch& launch) {
  const bool single = dtype == Dtype::kFloat32;
  if ((!single && dtype != Dtype::kFloat64) || p.k == 0) return false;
  if (single && fits_thin_matmul(p, launch)) {
    launch_thin_matmul(p, launch);
  } else if (fits_tiny_matmul(p, launch)) {
    launch_tiny_matmul(!single, p, launch);
  } else {
    return false;
  }
  check_launch("matmul (small)");
  return true;
}

// The providers, in the order in which they are asked. -------------------------------------------

bool is_empty(const Product& p) { return p.m == 0 || p.n == 0 || p.batch == 0; }

bool small_matmul(const MatmulCall& call) {
  const Product p = product_of(call);
  return is_empty(p) || run_small(p, call.a->dtype(), launch_for(*call.output));
}

bool cublaslt_matmul(const MatmulCall& call) {
  const Product p = product_of(call);
  const Dtype dtype = call.a->dtype();
  if (is_empty(p)) return true;
  if (!is_float(dtype) || p.k == 0) return false;
  const int device = call.output->device().index();
  return run_library(p, dtype, device, launch_for(*call.output));
}

// Any product, by simple tiles.
void simple_matmul(const MatmulCall& call) {
  Product p = product_of(call);
  const Dtype dtype = call.a->dtype();
  if (is_empty(p)) return;
  if (is_unsigned_int(dtype)) p.relu = false;  // unsigned integers are never negative
  launch_simple_matmul(static_cast<Element>(dtype), p, launch_for(*call.output));
  check_launch("matmul (simple)");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, matmul) {
  kernels::matmul.provide(DeviceType::kCuda, "small", &gpu::small_matmul, 2);
  kernels::matmul.provide(DeviceType::kCuda, "cublaslt", &gpu::cublaslt_matmul, 1);
  kernels::matmul.provide<&gpu::simple_matmul>(DeviceType::kCuda, "simple");
}
