// OpenBLAS calls. See blas.h.
#include "backends/cpu/blas.h"

#include <cblas.h>

#include <algorithm>

#include "catena/core/config.h"
#include "catena/core/log.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace catena::host {

namespace {

constexpr int kOpenMpBuild = 2;  // value of openblas_get_parallel()

bool check_build() {
#ifdef _OPENMP
  const int parallel = openblas_get_parallel();
  if (parallel == kOpenMpBuild || parallel == 0) return true;
  logging::warning(
      "the loaded OpenBLAS brings its own threads, which get in the way of OpenMP's: it is limited "
      "to "
      "one thread. Install its OpenMP build (Debian, Ubuntu: libopenblas0-openmp)");
#endif
  openblas_set_num_threads(1);
  return true;
}

// How BLAS sees a matrix: the fast axis along rows (no transposition) or along columns.
struct Layout {
  bool transposed;
  blasint leading;
};
// An extent of 1 leaves the layout open: the one whose leading dimension is valid is taken.
Layout layout(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  const bool by_rows = (column_stride == 1 || columns == 1) && (rows == 1 || row_stride >= columns);
  if (by_rows)
    return {false, static_cast<blasint>(rows == 1 ? std::max<int64_t>(columns, 1) : row_stride)};
  return {true, static_cast<blasint>(columns == 1 ? std::max<int64_t>(rows, 1) : column_stride)};
}
CBLAS_TRANSPOSE flag(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

void call_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const Gemm<float>& g, blasint la, blasint lb,
               blasint lc) {
  cblas_sgemm(CblasRowMajor, ta, tb, blasint(g.m), blasint(g.n), blasint(g.k), 1.0f, g.a, la, g.b,
              lb, g.beta, g.c, lc);
}
void call_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const Gemm<double>& g, blasint la,
               blasint lb, blasint lc) {
  cblas_dgemm(CblasRowMajor, ta, tb, blasint(g.m), blasint(g.n), blasint(g.k), 1.0, g.a, la, g.b,
              lb, g.beta, g.c, lc);
}
void call_gemv(CBLAS_TRANSPOSE ta, int64_t rows, int64_t columns, const float* a, blasint la,
               const float* x, int64_t step_x, float beta, float* y, int64_t step_y) {
  cblas_sgemv(CblasRowMajor, ta, blasint(rows), blasint(columns), 1.0f, a, la, x, blasint(step_x),
              beta, y, blasint(step_y));
}
void call_gemv(CBLAS_TRANSPOSE ta, int64_t rows, int64_t columns, const double* a, blasint la,
               const double* x, int64_t step_x, double beta, double* y, int64_t step_y) {
  cblas_dgemv(CblasRowMajor, ta, blasint(rows), blasint(columns), 1.0, a, la, x, blasint(step_x),
              beta, y, blasint(step_y));
}

// The same product as c^T = b^T a^T.
template <class T>
Gemm<T> transposed(const Gemm<T>& g) {
  return {g.n,        g.m,     g.k, g.b,        g.b_column, g.b_row, g.a,
          g.a_column, g.a_row, g.c, g.c_column, g.c_row,    g.beta};
}

template <class T>
void run(const Gemm<T>& g) {
  if (g.n == 1 && g.m > 1) {  // one result column: matrix times vector
    const Layout a = layout(g.m, g.k, g.a_row, g.a_column);
    call_gemv(flag(a.transposed), a.transposed ? g.k : g.m, a.transposed ? g.m : g.k, g.a,
              a.leading, g.b, g.k == 1 ? 1 : g.b_row, g.beta, g.c, g.c_row);
    return;
  }
  const Layout c = layout(g.m, g.n, g.c_row, g.c_column);
  if (c.transposed || (g.m == 1 && g.n > 1)) {
    run(transposed(g));
    return;
  }
  const Layout a = layout(g.m, g.k, g.a_row, g.a_column), b = layout(g.k, g.n, g.b_row, g.b_column);
  call_gemm(flag(a.transposed), flag(b.transposed), g, a.leading, b.leading, c.leading);
}

}  // namespace

void prepare_blas() {
  static const bool checked = check_build();
  (void)checked;
#ifdef _OPENMP
  // OpenBLAS takes the calling thread's OpenMP setting.
  thread_local int threads = 0;
  if (threads != cpu_threads() && !omp_in_parallel()) {
    threads = cpu_threads();
    omp_set_num_threads(threads);
  }
#endif
}

void gemm(const Gemm<float>& g) { run(g); }
void gemm(const Gemm<double>& g) { run(g); }

}  // namespace catena::host
