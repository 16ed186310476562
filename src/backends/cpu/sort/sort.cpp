// Sorting of rows with positions: a radix sort of ordered keys, or a selection if few elements are
// wanted.
#include "catena/kernels/sort.h"

#include <cstring>

#include "backends/common/family.h"
#include "backends/cpu/sort/ordered.h"
#include "backends/cpu/sort/radix_sort.h"
#include "backends/cpu/sort/sort_rows.h"
#include "catena/array/array.h"

namespace catena::host {

namespace {

constexpr int64_t kLongIndexed = int64_t{1} << 32;  // rows from this length on have long positions

// A key with the position it came from. Few types of them, because each is compiled with all that
// sorts it: keys of up to 32 bits are as long as the position.
template <class Key, class Index>
struct Item {
  Key key;
  Index index;
  bool operator<(const Item& other) const {
    return key != other.key ? key < other.key : index < other.index;
  }
};
struct KeyOfItem {
  template <class It>
  auto operator()(const It& item) const {
    return item.key;
  }
};

// The items of a row of fewer than 2^32 elements of the order O. mask: O::kLast for the reverse
// order.
template <class O>
struct OrderedRow {
  using U = typename O::U;
  using It = Item<std::conditional_t<sizeof(U) == 8, uint64_t, uint32_t>, uint32_t>;
  static constexpr int kBytes = sizeof(U);
  const U* input;
  U mask;

  It operator()(int64_t i) const { return {U(O::rank(input[i]) ^ mask), uint32_t(i)}; }
  OrderedRow from(int64_t start) const { return {input + start, mask}; }
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
  RowOutput from(int64_t start, int64_t place) const {
    return {input + start, values ? values + place : nullptr, positions + place};
  }
  RowOutput only_positions(int64_t* target) const { return {input, nullptr, target}; }
};

// The same of longer rows, for elements of any kind: these are slower, but seldom.
template <class O>
uint64_t rank_at(const char* element) {
  return O::rank(*reinterpret_cast<const typename O::U*>(element));
}
struct LongRow {
  using It = Item<uint64_t, uint64_t>;
  static constexpr int kBytes = 8;
  const char* input;
  int64_t itemsize;
  uint64_t mask;
  uint64_t (*rank_at)(const char* element);

  It operator()(int64_t i) const { return {rank_at(input + i * itemsize) ^ mask, uint64_t(i)}; }
  LongRow from(int64_t start) const { return {input + start * itemsize, itemsize, mask, rank_at}; }
};
struct LongOutput {
  const char* input;
  char* values;  // or null
  int64_t* positions;
  int64_t itemsize;

  void put(int64_t place, int64_t index) const {
    positions[place] = index;
    if (values) std::memcpy(values + place * itemsize, input + index * itemsize, size_t(itemsize));
  }
  LongOutput from(int64_t start, int64_t place) const {
    return {input + start * itemsize, values ? values + place * itemsize : nullptr,
            positions + place, itemsize};
  }
  LongOutput only_positions(int64_t* target) const { return {input, nullptr, target, itemsize}; }
};

template <class It, class Output>
struct Stored {
  Output out;
  void operator()(int64_t place, const It& item) const { out.put(place, int64_t(item.index)); }
};

// The first `keep` of the items in order, before the others.
template <class It>
[[gnu::noinline]] void order_first(It* items, int64_t keep, int64_t count) {
  if (keep == count)
    std::sort(items, items + count);
  else
    std::partial_sort(items, items + keep, items + count);
}
// The first `keep` of the items, in any order, before the others; the last of them is at its end.
template <class It>
[[gnu::noinline]] void select_first(It* items, int64_t keep, int64_t count) {
  std::nth_element(items, items + keep - 1, items + count);
}

template <class Row, class Output>
[[gnu::noinline]] void sort_positions(int64_t n, int threads, char* memory, Row row, Output out) {
  using It = typename Row::It;
  It* items = reinterpret_cast<It*>(memory);
  if (n > kFewItems) {
    radix_sort<It, KeyOfItem, Row::kBytes>(n, threads, items, items + n, row,
                                           Stored<It, Output>{out});
    return;
  }
  for (int64_t i = 0; i < n; ++i) items[i] = row(i);
  order_first(items, n, n);
  for (int64_t i = 0; i < n; ++i) out.put(i, int64_t(items[i].index));
}

// What fits into the memory of a selection.
int64_t selection_items(int64_t n, int64_t keep) { return std::min(n, 4 * keep + 64); }

// Selects the first `keep` of n. Candidates are collected, and reduced to the best whenever the
// buffer is full.
template <class Row, class Output>
void select_positions(int64_t n, int64_t keep, char* memory, Row row, Output out) {
  using It = typename Row::It;
  It* items = reinterpret_cast<It*>(memory);
  const int64_t capacity = selection_items(n, keep);
  int64_t count = 0;
  decltype(It::key) worst = 0;  // later items must be smaller than this
  bool full = false;
  for (int64_t i = 0; i < n; ++i) {
    const It item = row(i);
    if (full && item.key >= worst) continue;
    items[count++] = item;
    if (count < capacity) continue;
    select_first(items, keep, count);
    worst = items[keep - 1].key;
    full = true;
    count = keep;
  }
  order_first(items, keep, count);
  for (int64_t i = 0; i < keep; ++i) out.put(i, int64_t(items[i].index));
}

template <class Row, class Output>
[[gnu::noinline]] void sort_row(int64_t n, int64_t keep, char* memory, int threads, Row row,
                                Output out) {
  if (keep < n / 8) return select_positions(n, keep, memory, row, out);
  if (keep == n) return sort_positions(n, threads, memory, row, out);
  // Sort the whole row, then copy what is wanted.
  std::unique_ptr<int64_t[]> all(new int64_t[size_t(n)]);
  sort_positions(n, threads, memory, row, out.only_positions(all.get()));
  for (int64_t i = 0; i < keep; ++i) out.put(i, all[size_t(i)]);
}

// Of all rows, the first of which are given.
template <class Row, class Output>
void sort_pairs(const SortCall& call, const Row& first_row, const Output& first_output) {
  const int64_t rows = call.input->shape()[0], n = call.input->shape()[1],
                keep = call.positions->shape()[1];
  const int64_t items = keep < n / 8 ? selection_items(n, keep) : 2 * n;
  for_rows(call.input->device(), rows, n, items * int64_t(sizeof(typename Row::It)),
           [&](int64_t r, char* memory, int threads) {
             sort_row(n, keep, memory, threads, first_row.from(r * n),
                      first_output.from(r * n, r * keep));
           });
}

template <class O>
void sort_with_positions(const SortCall& call) {
  using U = typename O::U;
  const U mask = call.descending ? O::kLast : U(0);
  const void* input = call.input->raw_data();
  void* values = call.values ? call.values->raw_data() : nullptr;
  int64_t* positions = call.positions->data<int64_t>();
  if (call.input->shape()[1] < kLongIndexed)
    return sort_pairs(
        call, OrderedRow<O>{static_cast<const U*>(input), mask},
        RowOutput<U>{static_cast<const U*>(input), static_cast<U*>(values), positions});
  const char* bytes = static_cast<const char*>(input);
  sort_pairs(call, LongRow{bytes, sizeof(U), mask, rank_at<O>},
             LongOutput{bytes, static_cast<char*>(values), positions, sizeof(U)});
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
