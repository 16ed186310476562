// The matmul slot: gemm.h for floats (16-bit ones through float buffers), rows for integers and
// bool.
#include <memory>

#include "backends/common/family.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/matmul/gemm.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/matmul.h"

namespace catena::host {

namespace {

// One matrix of a batch; strides in bytes.
struct Matrix {
  char* data;
  int64_t rows, columns, row_stride, column_stride;
};
Matrix matrix_of(const Array& a, int64_t batch) {
  const int d = a.ndim() - 2;
  const Strides& s = a.strides();
  char* data = static_cast<char*>(a.raw_data()) + (d > 0 ? batch * s[0] : 0);
  return {data, a.shape()[size_t(d)], a.shape()[size_t(d + 1)], s[size_t(d)], s[size_t(d + 1)]};
}

struct Product {
  Matrix a, b, c;
  const char* bias;  // contiguous, or null
  bool relu, accumulate;
  Dtype dtype;  // of a, b and the bias
  bool wide;    // c is float32, a and b are 16-bit floats
};

// The rows of m in order, converted.
template <class T>
std::unique_ptr<T[]> packed(const Matrix& m, Dtype from, Dtype to) {
  std::unique_ptr<T[]> result(new T[size_t(m.rows * m.columns)]);
  const CastLoop loop = cast_of(from, to);
  parallel_ranges(m.rows, 1, threads_for(m.rows * m.columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      loop(m.data + i * m.row_stride, m.column_stride,
           reinterpret_cast<char*>(result.get() + i * m.columns), int64_t(sizeof(T)), m.columns);
    }
  });
  return result;
}

void run_epilogue(float* row, const float* bias, bool relu, int64_t n) {
  tables().epilogue_float(row, bias, relu, n);
}
void run_epilogue(double* row, const double* bias, bool relu, int64_t n) {
  tables().epilogue_double(row, bias, relu, n);
}

// Bias and relu over a result whose rows or columns are contiguous.
template <class T>
void finish(T* c, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
            const T* bias, bool relu) {
  if (bias == nullptr && !relu) return;
  parallel_ranges(rows, 1, threads_for(rows * columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* row = c + i * row_stride;
      if (column_stride == 1 || columns == 1) {
        run_epilogue(row, bias, relu, columns);
        continue;
      }
      for (int64_t j = 0; j < columns; ++j) {
        const T value = row[j * column_stride] + (bias ? bias[j] : T(0));
        row[j * column_stride] = relu && value <= T(0) ? T(0) : value;
      }
    }
  });
}

template <class T>
void clear(const Matrix& c) {
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.columns; ++j) {
      *reinterpret_cast<T*>(c.data + i * c.row_stride + j * c.column_stride) = T{};
    }
  }
}

template <class T>
void multiply_float(const Product& p) {
  constexpr int64_t item = sizeof(T);
  T* c = reinterpret_cast<T*>(p.c.data);
  const int64_t c_row = p.c.row_stride / item, c_column = p.c.column_stride / item;
  if (p.a.columns > 0) {
    gemm(Gemm<T>{p.c.rows, p.c.columns, p.a.columns, reinterpret_cast<const T*>(p.a.data),
                 p.a.row_stride / item, p.a.column_stride / item,
                 reinterpret_cast<const T*>(p.b.data), p.b.row_stride / item,
                 p.b.column_stride / item, c, c_row, c_column, p.accumulate});
  } else if (!p.accumulate) {
    clear<T>(p.c);
  }
  finish<T>(c, p.c.rows, p.c.columns, c_row, c_column, reinterpret_cast<const T*>(p.bias), p.relu);
}

// Computes in float and rounds once at the end.
void multiply_half(const Product& p) {
  const auto a = packed<float>(p.a, p.dtype, Dtype::kFloat32),
             b = packed<float>(p.b, p.dtype, Dtype::kFloat32);
  const auto wide = [](float* data, const Matrix& m) {
    return Matrix{reinterpret_cast<char*>(data), m.rows, m.columns, m.columns * 4, 4};
  };
  if (p.wide)
    return multiply_float<float>({wide(a.get(), p.a), wide(b.get(), p.b), p.c, nullptr, false,
                                  p.accumulate, Dtype::kFloat32, false});
  std::unique_ptr<float[]> c;
  if (p.accumulate)
    c = packed<float>(p.c, p.dtype, Dtype::kFloat32);
  else
    c.reset(new float[size_t(p.c.rows * p.c.columns)]);
  std::unique_ptr<float[]> bias;
  if (p.bias != nullptr) {
    const Matrix row{const_cast<char*>(p.bias), 1, p.c.columns, 0, int64_t(itemsize(p.dtype))};
    bias = packed<float>(row, p.dtype, Dtype::kFloat32);
  }
  multiply_float<float>({wide(a.get(), p.a), wide(b.get(), p.b), wide(c.get(), p.c),
                         reinterpret_cast<const char*>(bias.get()), p.relu, p.accumulate,
                         Dtype::kFloat32, false});
  const CastLoop loop = cast_of(Dtype::kFloat32, p.dtype);
  for (int64_t i = 0; i < p.c.rows; ++i) {
    loop(reinterpret_cast<const char*>(c.get() + i * p.c.columns), 4, p.c.data + i * p.c.row_stride,
         p.c.column_stride, p.c.columns);
  }
}

// Integers and bool: row i of the result is the sum of rows of b scaled by elements of a.
template <class T>
void multiply_integer(const Product& p) {
  const int64_t n = p.c.columns, k = p.a.columns, item = int64_t(sizeof(T));
  const auto b = packed<T>(p.b, p.dtype, p.dtype);
  const AddScaled add = tables().add_scaled[static_cast<int>(p.dtype)];
  const CastLoop move = cast_of(p.dtype, p.dtype);
  parallel_ranges(p.c.rows, 1, threads_for(p.c.rows * n * std::max<int64_t>(k, 1)),
                  [&](int64_t begin, int64_t end) {
                    std::unique_ptr<T[]> sums(new T[size_t(n)]);
                    char* const row = reinterpret_cast<char*>(sums.get());
                    for (int64_t i = begin; i < end; ++i) {
                      char* out = p.c.data + i * p.c.row_stride;
                      if (p.accumulate)
                        move(out, p.c.column_stride, row, item, n);
                      else if (p.bias != nullptr)
                        move(p.bias, item, row, item, n);
                      else
                        std::fill_n(sums.get(), n, T{});
                      for (int64_t l = 0; l < k; ++l) {
                        add(reinterpret_cast<const char*>(b.get() + l * n),
                            p.a.data + i * p.a.row_stride + l * p.a.column_stride, row, n);
                      }
                      const T one = T(1);
                      if (p.accumulate && p.bias != nullptr) add(p.bias, &one, row, n);
                      if (p.relu) {
                        for (int64_t j = 0; j < n; ++j)
                          sums[size_t(j)] = sums[size_t(j)] <= T(0) ? T(0) : sums[size_t(j)];
                      }
                      move(row, item, out, p.c.column_stride, n);
                    }
                  });
}

void multiply(const Product& p) {
  visit_dtype(p.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_floating_point_v<T>)
      multiply_float<T>(p);
    else if constexpr (std::is_integral_v<T>)
      multiply_integer<T>(p);
    else
      multiply_half(p);
  });
}

void matmul(const MatmulCall& call) {
  if (call.output->size() == 0) return;
  const Array bias = call.bias ? call.bias->contiguous() : Array();
  const int64_t batch = call.output->ndim() == 3 ? call.output->shape()[0] : 1;
  const auto product = [&](int64_t i) {
    return Product{matrix_of(*call.a, i),
                   matrix_of(*call.b, i),
                   matrix_of(*call.output, i),
                   bias.defined() ? static_cast<const char*>(bias.raw_data()) : nullptr,
                   call.activation == Activation::kRelu,
                   call.accumulate,
                   call.a->dtype(),
                   call.output->dtype() != call.a->dtype()};
  };
  const Product first = product(0);
  const int64_t work = first.c.rows * first.c.columns * std::max<int64_t>(first.a.columns, 1) / 8;
  // Each small matrix of a batch is computed by one thread; all threads share a large one.
  const int threads = batch > 1 && work < 2 * kParallelWork ? threads_for(batch * work) : 1;
  parallel_for(batch, threads, [&](int64_t i) { multiply(product(i)); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, matmul) { kernels::matmul.provide<&host::matmul>(DeviceType::kCpu, "cpu"); }
