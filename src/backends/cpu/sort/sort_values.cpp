// Sorting of rows without positions; see sort.cpp.
#include "backends/cpu/loops/tables.h"
#include "backends/cpu/sort/ordered.h"
#include "backends/cpu/sort/radix_sort.h"
#include "backends/cpu/sort/sort_rows.h"
#include "catena/kernels/sort.h"

namespace catena::host {

namespace {

constexpr int64_t kSeveralRows = 4;

struct OwnKey {
  template <class U>
  U operator()(U key) const {
    return key;
  }
};
template <class O>
struct Encoded {
  const typename O::U* row;
  auto operator()(int64_t i) const { return O::encode(row[i]); }
};
template <class O>
struct Decoded {
  typename O::U* row;
  void operator()(int64_t place, typename O::U key) const { row[place] = O::decode(key); }
};

template <class O>
void sort_ordered(const Array& input, const Array& values) {
  using U = typename O::U;
  const int64_t rows = input.shape()[0], n = input.shape()[1];
  const U* in = static_cast<const U*>(input.raw_data());
  U* out = static_cast<U*>(values.raw_data());
  for_rows(input.device(), rows, n, n * int64_t(sizeof(U)), [&](int64_t r, char* memory, int t) {
    U* to = out + r * n;
    radix_sort<U, OwnKey, sizeof(U)>(n, t, reinterpret_cast<U*>(memory), to, Encoded<O>{in + r * n},
                                     Decoded<O>{to});
  });
}

// Whether to sort several rows together in the lanes of vectors, which takes as long as one row. It
// pays for short rows, or if there are several rows.
bool worth_network(int64_t rows, int64_t n) {
  return n <= kFewItems || (n <= kShortSortRow && rows >= kSeveralRows);
}
void sort_by_network(const Array& input, const Array& values) {
  const int64_t rows = input.shape()[0], n = input.shape()[1], row_bytes = n * input.itemsize();
  const SortRows sort_rows = tables().sort_rows[static_cast<int>(input.dtype())];
  CATENA_CHECK(DtypeError, sort_rows != nullptr, "sort: no kernel for ", input.dtype());
  const char* from = static_cast<const char*>(input.raw_data());
  char* to = static_cast<char*>(values.raw_data());
  parallel_ranges(rows, 64, threads_for(rows * n * 4), [&](int64_t begin, int64_t end) {
    alignas(64) char scratch[kSortScratch];
    sort_rows(from + begin * row_bytes, end - begin, n, to + begin * row_bytes, scratch);
  });
}

}  // namespace

void sort_values(const Array& input, const Array& values) {
  if (worth_network(input.shape()[0], input.shape()[1])) return sort_by_network(input, values);
  visit_order(input.dtype(), [&](auto order) { sort_ordered<decltype(order)>(input, values); });
}

}  // namespace catena::host
