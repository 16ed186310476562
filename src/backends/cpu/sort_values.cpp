// Sorting of the values of rows alone; see sort.cpp.
#include "backends/cpu/ordered.h"
#include "backends/cpu/radix_sort.h"
#include "backends/cpu/sort_rows.h"

namespace catena::host {

namespace {

template <class O>
void sort_ordered(const Array& input, const Array& values) {
  using U = typename O::U;
  const int64_t rows = input.shape()[0], n = input.shape()[1];
  const U* in = static_cast<const U*>(input.raw_data());
  U* out = static_cast<U*>(values.raw_data());
  for_rows(input.device(), rows, n, n * int64_t(sizeof(U)), [&](int64_t r, char* memory, int t) {
    const U* from = in + r * n;
    U* to = out + r * n;
    if (n <= kFewItems) {
      for (int64_t i = 0; i < n; ++i) to[i] = O::encode(from[i]);
      std::sort(to, to + n);
      for (int64_t i = 0; i < n; ++i) to[i] = O::decode(to[i]);
      return;
    }
    radix_sort<U>(
        n, t, reinterpret_cast<U*>(memory), to, [&](int64_t i) { return O::encode(from[i]); },
        [](U key) { return key; }, [&](int64_t place, U key) { to[place] = O::decode(key); });
  });
}

}  // namespace

void sort_values(const Array& input, const Array& values) {
  visit_order(input.dtype(), [&](auto order) { sort_ordered<decltype(order)>(input, values); });
}

}  // namespace catena::host
