// Sorting of rows: a radix sort of ordered keys, or for a few wanted elements a selection.
#include <vector>

#include "backends/cpu/kernels.h"
#include "backends/cpu/ordered.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/radix_sort.h"

namespace catena::host {

namespace {

constexpr int64_t kFewItems = 64;  // sorted by comparisons
// Threads share a row of this length, for which it pays that they wait for each other twice a
// byte; else they share the rows.
constexpr int64_t kLongRow = int64_t{1} << 21;

// A key with the position it came from.
template <class Key, class Index>
struct Item {
  Key key;
  Index index;
  bool operator<(const Item& other) const {
    return key != other.key ? key < other.key : index < other.index;
  }
};

// Runs f(row, scratch, threads) for all rows with `bytes` of scratch memory each.
template <class F>
void for_rows(Device device, int64_t rows, int64_t n, int64_t bytes, const F& f) {
  const bool shared = n >= kLongRow;
  const int threads = threads_for(rows * n * 8), parts = shared ? 1 : threads;
  bytes = (bytes + 63) / 64 * 64;
  const StoragePtr memory = allocate(device, size_t(bytes * std::max(parts, 1)));
  char* base = static_cast<char*>(memory->data);
  if (parts <= 1) {
    for (int64_t r = 0; r < rows; ++r) f(r, base, shared ? threads : 1);
    return;
  }
  parallel_for(parts, parts, [&](int64_t part) {
    for (int64_t r = rows * part / parts; r < rows * (part + 1) / parts; ++r)
      f(r, base + part * bytes, 1);
  });
}

template <class O>
void sort_values(const Array& input, const Array& values) {
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

// Where the elements of a row and their positions go.
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

// The first `keep` of n: candidates are collected and thinned out whenever there are enough.
template <class O, class It>
void select_positions(int64_t n, int64_t keep, char* memory, typename O::U mask,
                      const RowOutput<typename O::U>& out) {
  using U = typename O::U;
  It* items = reinterpret_cast<It*>(memory);
  const int64_t capacity = std::min(n, 4 * keep + 64);
  int64_t count = 0;
  U worst = O::kLast;  // an item that comes later must be better than this one to matter
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
             // Sorted whole, and what is wanted of it taken.
             std::unique_ptr<int64_t[]> all(new int64_t[size_t(n)]);
             sort_positions<O, It>(n, threads, memory, mask, {out.input, nullptr, all.get()});
             for (int64_t i = 0; i < keep; ++i) out.put(i, all[size_t(i)]);
           });
}

template <class O>
void sort_elements(const SortCall& call) {
  const Array& input = *call.input;
  if (call.positions) {
    constexpr bool kWide = sizeof(typename O::U) == 8;
    using Key = std::conditional_t<kWide, uint64_t, typename O::U>;
    if (input.shape()[1] < (int64_t{1} << 32)) return sort_pairs<O, Item<Key, uint32_t>>(call);
    return sort_pairs<O, Item<Key, uint64_t>>(call);
  }
  if (call.values->shape() == input.shape() && !call.descending)
    return sort_values<O>(input, *call.values);
  // Part of the order, or the reverse one: by way of positions.
  const Array positions = Array::uninitialized(call.values->shape(), Dtype::kInt64, input.device());
  sort_elements<O>(SortCall{&input, call.descending, call.values, &positions});
}

// Keys of the wanted ranks, by repeated partition of what lies above the one before.
template <class O>
void pick_ranks(const typename O::U* row, int64_t n, const std::vector<int64_t>& ranks,
                typename O::U* keys, typename O::U* out) {
  for (int64_t i = 0; i < n; ++i) keys[i] = O::encode(row[i]);
  int64_t begin = 0;
  for (size_t j = 0; j < ranks.size(); ++j) {
    std::nth_element(keys + begin, keys + ranks[j], keys + n);
    out[j] = O::decode(keys[ranks[j]]);
    begin = ranks[j] + 1;
  }
}

template <class O>
void search(const Array& sorted, const Array& values, bool right, const Array& output) {
  using U = typename O::U;
  const U *in = static_cast<const U*>(sorted.raw_data()),
          *wanted = static_cast<const U*>(values.raw_data());
  int64_t* out = output.data<int64_t>();
  const int64_t n = sorted.size();
  parallel_ranges(values.size(), 64, threads_for(values.size() * 32),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const U key = O::rank(wanted[i]);
                      const U* base = in;
                      // Halves without a branch that could be guessed wrong.
                      for (int64_t length = n; length > 0;) {
                        const int64_t half = (length + 1) / 2;
                        const U at = O::rank(base[half - 1]);
                        const bool after = right ? at <= key : at < key;
                        base += after ? half : 0;
                        length = after ? length - half : half - 1;
                      }
                      out[i] = base - in;
                    }
                  });
}

}  // namespace

void sort(const SortCall& call) {
  visit_order(call.input->dtype(), [&](auto order) { sort_elements<decltype(order)>(call); });
}

void order_statistics(const Array& input, const std::vector<int64_t>& ranks, const Array& output) {
  const int64_t rows = input.shape()[0], n = input.shape()[1], m = int64_t(ranks.size());
  visit_order(input.dtype(), [&](auto order) {
    using O = decltype(order);
    using U = typename O::U;
    for_rows(input.device(), rows, n, n * int64_t(sizeof(U)), [&](int64_t r, char* memory, int) {
      pick_ranks<O>(static_cast<const U*>(input.raw_data()) + r * n, n, ranks,
                    reinterpret_cast<U*>(memory), static_cast<U*>(output.raw_data()) + r * m);
    });
  });
}

void searchsorted(const Array& sorted, const Array& values, bool right, const Array& output) {
  visit_order(sorted.dtype(),
              [&](auto order) { search<decltype(order)>(sorted, values, right, output); });
}

void run_starts(const Array& sorted, const Array& output) {
  bool* out = output.data<bool>();
  visit_order(sorted.dtype(), [&](auto order) {
    using O = decltype(order);
    const auto* x = static_cast<const typename O::U*>(sorted.raw_data());
    out[0] = true;
    parallel_ranges(sorted.size() - 1, 4096, threads_for(sorted.size()),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i)
                        out[i + 1] = O::rank(x[i]) != O::rank(x[i + 1]);
                    });
  });
}

}  // namespace catena::host
