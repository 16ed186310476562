// Routines around sorting: elements of given ranks, positions in sorted arrays, starts of runs.
#include <vector>

#include "backends/common/family.h"
#include "backends/cpu/sort/ordered.h"
#include "backends/cpu/sort/sort_rows.h"
#include "catena/array/array.h"
#include "catena/kernels/sort.h"

namespace catena::host {

namespace {

// Keys of the wanted ranks. Each rank partitions the elements above the previous one.
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
                      // A binary search without a branch that could be mispredicted.
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

void order_statistics(const OrderStatisticsCall& call) {
  const auto& [input, ranks, output] = call;
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

void searchsorted(const SearchSortedCall& call) {
  const auto& [sorted, values, right, output] = call;
  visit_order(sorted.dtype(),
              [&](auto order) { search<decltype(order)>(sorted, values, right, output); });
}

void run_starts(const RunStartsCall& call) {
  const auto& [sorted, output] = call;
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

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, ranks) {
  kernels::order_statistics.provide<&host::order_statistics>(DeviceType::kCpu, "cpu");
  kernels::searchsorted.provide<&host::searchsorted>(DeviceType::kCpu, "cpu");
  kernels::run_starts.provide<&host::run_starts>(DeviceType::kCpu, "cpu");
}
