// Bias and relu after a matrix product, in one pass. See loop.h about linkage.
#include "backends/cpu/loops/tables.h"

namespace catena::host {
namespace {

// NaN passes through relu, as in the element-wise operation.
template <class T, bool kBias, bool kRelu>
inline __attribute__((always_inline)) void pass(T* row, const T* bias, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T value = kBias ? row[i] + bias[i] : row[i];
    row[i] = kRelu && value <= T(0) ? T(0) : value;
  }
}
template <class T>
void epilogue(T* row, const T* bias, bool relu, int64_t n) {
  if (bias == nullptr)
    pass<T, false, true>(row, bias, n);
  else if (relu)
    pass<T, true, true>(row, bias, n);
  else
    pass<T, true, false>(row, bias, n);
}

// sums[j] += factor * row[j] in T, wrapping; for products of integers.
template <class T>
void add_scaled(const char* row, const void* factor, char* sums, int64_t n) {
  const T* x = reinterpret_cast<const T*>(row);
  T* acc = reinterpret_cast<T*>(sums);
  const T a = *static_cast<const T*>(factor);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) acc[i] = T(acc[i] + a * x[i]);
}
void or_scaled(const char* row, const void* factor, char* sums, int64_t n) {
  const uint8_t* x = reinterpret_cast<const uint8_t*>(row);
  uint8_t* acc = reinterpret_cast<uint8_t*>(sums);
  const uint8_t a = *static_cast<const uint8_t*>(factor);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) acc[i] = uint8_t(acc[i] | (a & x[i]));
}

}  // namespace

namespace CATENA_ISA {

CATENA_LOOPS(epilogue) {
  tables.epilogue_float = &epilogue<float>;
  tables.epilogue_double = &epilogue<double>;
  // Signed and unsigned integers wrap to the same bits.
  const AddScaled loops[4] = {&add_scaled<uint8_t>, &add_scaled<uint16_t>, &add_scaled<uint32_t>,
                              &add_scaled<uint64_t>};
  tables.add_scaled[kBoolIndex] = &or_scaled;
  for (int i = 0; i < 4; ++i)
    tables.add_scaled[kInt8Index + i] = tables.add_scaled[kUInt8Index + i] = loops[i];
}

}  // namespace CATENA_ISA

}  // namespace catena::host
