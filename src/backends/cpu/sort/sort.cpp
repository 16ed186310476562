// Sorting of rows with positions: a radix sort of ordered keys, or a selection if few elements are
// wanted.
#include "catena/kernels/sort.h"
#include "backends/common/family.h"
#include "backends/cpu/sort/ordered.h"
#include "backends/cpu/sort/radix_sort.h"
#include "backends/cpu/sort/sort_rows.h"
#include "catena/array/array.h"

namespace catena::host {

namespace {

// A key with the position it came from.
template <class Key, class Index>
struct Item {
  Key key;
  Index index;
  bool operator<(const Item& other) const {
    return key != other.key ? key < other.key : index < other.index;
  }
};

// Where a row's elements and their positions are written.
template <class U>
struct RowOutput {
  const U* input;
  U* values;  // or null
  int64_t* positions;
  void put(int64_t place, int64_t index) const {
    positions[place] = index;
    if (values) values[place] = input[index];
  }
};

template <class O, class It>
void sort_positions(int64_t n, int threads, char* memory, typename O::U mask,
                    const RowOutput<typename O::U>& out) {
  using U = typename O::U;
  It* items = reinterpret_cast<It*>(memory);
  const auto load = [&](int64_t i) {
    using Key = decltype(It::key);
    return It{Key(U(O::rank(out.input[i]) ^ mask)), decltype(It::index)(i)};
  };
  const auto store = [&](int64_t place, const It& item) { out.put(place, int64_t(item.index)); };
  if (n > kFewItems) {
    radix_sort<It>(
        n, threads, items, items + n, load, [](const It& item) { return item.key; }, store);
    return;
  }
  for (int64_t i = 0; i < n; ++i) items[i] = load(i);
  std::sort(items, items + n);
  for (int64_t i = 0; i < n; ++i) store(i, items[i]);
}

// Selects the first `keep` of n. Candidates are collected, and reduced to the best whenever the
// buffer is full.
template <class O, class It>
void select_positions(int64_t n, int64_t keep, char* memory, typename O::U mask,
                      const RowOutput<typename O::U>& out) {
  using U = typename O::U;
  It* items = reinterpret_cast<It*>(memory);
  const int64_t capacity = std::min(n, 4 * keep + 64);
  int64_t count = 0;
  U worst = O::kLast;  // later items must be smaller than this
  bool full = false;
  for (int64_t i = 0; i < n; ++i) {
    const U key = U(O::rank(out.input[i]) ^ mask);
    if (full && key >= worst) continue;
    items[count++] = It{decltype(It::key)(key), decltype(It::index)(i)};
    if (count < capacity) continue;
    std::nth_element(items, items + keep - 1, items + count);
    worst = U(items[keep - 1].key);
    full = true;
    count = keep;
  }
  std::partial_sort(items, items + keep, items + count);
  for (int64_t i = 0; i < keep; ++i) out.put(i, int64_t(items[i].index));
}

template <class O, class It>
void sort_pairs(const SortCall& call) {
  using U = typename O::U;
  const Array& input = *call.input;
  const int64_t rows = input.shape()[0], n = input.shape()[1], keep = call.positions->shape()[1];
  const U mask = call.descending ? O::kLast : U(0);
  const bool few = keep < n / 8;
  const int64_t items = few ? std::min(n, 4 * keep + 64) : 2 * n;
  for_rows(input.device(), rows, n, items * int64_t(sizeof(It)),
           [&](int64_t r, char* memory, int threads) {
             RowOutput<U> out{static_cast<const U*>(input.raw_data()) + r * n, nullptr,
                              call.positions->data<int64_t>() + r * keep};
             if (call.values) out.values = static_cast<U*>(call.values->raw_data()) + r * keep;
             if (few) return select_positions<O, It>(n, keep, memory, mask, out);
             if (keep == n) return sort_positions<O, It>(n, threads, memory, mask, out);
             // Sort the whole row, then copy what is wanted.
             std::unique_ptr<int64_t[]> all(new int64_t[size_t(n)]);
             sort_positions<O, It>(n, threads, memory, mask, {out.input, nullptr, all.get()});
             for (int64_t i = 0; i < keep; ++i) out.put(i, all[size_t(i)]);
           });
}

template <class O>
void sort_with_positions(const SortCall& call) {
  constexpr bool kWide = sizeof(typename O::U) == 8;
  using Key = std::conditional_t<kWide, uint64_t, typename O::U>;
  if (call.input->shape()[1] < (int64_t{1} << 32)) return sort_pairs<O, Item<Key, uint32_t>>(call);
  sort_pairs<O, Item<Key, uint64_t>>(call);
}

void sort(const SortCall& call) {
  const Array& input = *call.input;
  if (!call.positions && !call.descending && call.values->shape() == input.shape())
    return sort_values(input, *call.values);
  // Part of the order, or the reverse order: sort with positions.
  Array positions;
  if (!call.positions)
    positions = Array::uninitialized(call.values->shape(), Dtype::kInt64, input.device());
  const SortCall whole{&input, call.descending, call.values,
                       call.positions ? call.positions : &positions};
  visit_order(input.dtype(), [&](auto order) { sort_with_positions<decltype(order)>(whole); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, sort) { kernels::sort.provide<&host::sort>(DeviceType::kCpu, "cpu"); }
