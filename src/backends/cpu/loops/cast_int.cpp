// Casts from bool and integers, and moves of elements of every dtype as words. See cast.h.
#include "backends/cpu/loops/cast.h"

namespace catena::host {
namespace {

// n elements; distances are in elements, not bytes. Four at a time, because the compiler does not
// unroll, and one element an iteration leaves half of the loads unused. Inlined with constant
// distances, the loop becomes vector shuffles.
template <class T>
inline __attribute__((always_inline)) void move_strided(const T* from, int64_t from_step, T* to,
                                                        int64_t to_step, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
}
template <class T>
inline __attribute__((always_inline)) void move_bytes_apart(const char* from, int64_t from_stride,
                                                            char* to, int64_t to_stride,
                                                            int64_t n) {
  const auto read = [&](int64_t k) { return *reinterpret_cast<const T*>(from + k * from_stride); };
  const auto write = [&](int64_t k, T value) { *reinterpret_cast<T*>(to + k * to_stride) = value; };
  for (; n >= 4; n -= 4, from += 4 * from_stride, to += 4 * to_stride) {
    const T a = read(0), b = read(1), c = read(2), d = read(3);
    write(0, a);
    write(1, b);
    write(2, c);
    write(3, d);
  }
  for (int64_t i = 0; i < n; ++i) write(i, read(i));
}

template <class T>
void move_loop(const char* source, int64_t source_stride, char* destination,
               int64_t destination_stride, int64_t n) {
  if (source_stride == sizeof(T) && destination_stride == sizeof(T)) {
    __builtin_memmove(destination, source, uint64_t(n) * sizeof(T));
  } else if (source_stride == 0 && destination_stride == sizeof(T)) {
    const T value = *reinterpret_cast<const T*>(source);
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(destination)[i] = value;
  } else if (destination_stride == sizeof(T) && source_stride == 2 * int64_t(sizeof(T))) {
    move_strided(reinterpret_cast<const T*>(source), 2, reinterpret_cast<T*>(destination), 1, n);
  } else if (destination_stride == sizeof(T) && source_stride == -int64_t(sizeof(T))) {
    move_strided(reinterpret_cast<const T*>(source), -1, reinterpret_cast<T*>(destination), 1, n);
  } else {
    move_bytes_apart<T>(source, source_stride, destination, destination_stride, n);
  }
}

}  // namespace

namespace CATENA_ISA {

CATENA_LOOPS(cast_int) {
  fill_casts_from<Truth>(tables, kBoolIndex);
  fill_casts_from<int8_t>(tables, kInt8Index);
  fill_casts_from<int16_t>(tables, kInt16Index);
  fill_casts_from<int32_t>(tables, kInt32Index);
  fill_casts_from<int64_t>(tables, kInt64Index);
  fill_casts_from<uint8_t>(tables, kUInt8Index);
  fill_casts_from<uint16_t>(tables, kUInt16Index);
  fill_casts_from<uint32_t>(tables, kUInt32Index);
  fill_casts_from<uint64_t>(tables, kUInt64Index);
  tables.casts[kUInt8Index][kUInt8Index] = &move_loop<uint8_t>;
  tables.casts[kUInt16Index][kUInt16Index] = &move_loop<uint16_t>;
  tables.casts[kUInt32Index][kUInt32Index] = &move_loop<uint32_t>;
  tables.casts[kUInt64Index][kUInt64Index] = &move_loop<uint64_t>;
}

}  // namespace CATENA_ISA

}  // namespace catena::host
