// Host glue of the sort, order_statistics, searchsorted and run_starts slots.
#include "backends/cuda/sort/sort.h"

#include <algorithm>

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/sort.h"

namespace catena::gpu {
namespace {

Element order_code(Dtype dtype) {
  return static_cast<Element>(dtype == Dtype::kBool ? Dtype::kUInt8 : dtype);
}

void sort_values(const Array& input, const Array& values) {
  const Element order = order_code(input.dtype());
  const Launch launch = launch_for(input);
  SortKeysArgs args{input.raw_data(), values.raw_data(), input.size(), nullptr,
                    sort_keys_scratch_bytes(order, input.size())};
  // It may be released at once: later users of the memory follow the sort in the stream.
  const StoragePtr scratch = allocate(input.device(), args.scratch_bytes);
  args.scratch = scratch->data;
  CATENA_CUDA_CHECK(launch_sort_keys(order, args, launch));
  check_launch("sort");
}

void sort(const SortCall& call) {
  const Array& input = *call.input;
  const Array& output = call.values ? *call.values : *call.positions;
  const int64_t rows = input.shape()[0], columns = input.shape()[1], keep = output.shape()[1];
  const bool is_short = columns <= kShortRow;
  if (!is_short && !call.positions && !call.descending && rows == 1 && keep == columns)
    return sort_values(input, *call.values);
  const Element order = order_code(input.dtype());
  const Launch launch = launch_for(input);
  SortPairsArgs args{};
  args.input = input.raw_data();
  args.bytes = static_cast<int>(input.itemsize());
  args.rows = rows;
  args.columns = columns;
  args.keep = keep;
  args.descending = call.descending;
  if (call.values) args.values = call.values->raw_data();
  if (call.positions) args.positions = call.positions->data<int64_t>();
  if (is_short) {
    launch_sort_short(order, args, launch);
    return check_launch("sort");
  }
  args.scratch_bytes = sort_pairs_scratch_bytes(args.bytes, rows, columns);
  const StoragePtr scratch = allocate(input.device(), args.scratch_bytes);
  args.scratch = scratch->data;
  CATENA_CUDA_CHECK(launch_sort_pairs(order, args, launch));
  check_launch("sort");
}

void order_statistics(const OrderStatisticsCall& call) {
  const auto& [input, ranks, output] = call;
  const Array sorted = Array::uninitialized(input.shape(), input.dtype(), input.device());
  sort(SortCall{&input, false, &sorted, nullptr});
  const auto count = static_cast<int64_t>(ranks.size());
  for (int64_t first = 0; first < count; first += kMaxRanks) {
    PickArgs args{};
    args.table = sorted.raw_data();
    args.output = static_cast<char*>(output.raw_data()) + first * output.itemsize();
    args.rows = input.shape()[0];
    args.columns = input.shape()[1];
    args.output_columns = count;
    args.ranks = static_cast<int>(std::min<int64_t>(kMaxRanks, count - first));
    std::copy_n(ranks.begin() + first, args.ranks, args.rank);
    launch_pick(static_cast<int>(input.itemsize()), args, launch_for(output));
  }
  check_launch("order_statistics");
}

void searchsorted(const SearchSortedCall& call) {
  const auto& [sorted, values, right, output] = call;
  const SearchArgs args{sorted.raw_data(), sorted.size(), values.raw_data(),
                        values.size(),     right,         output.data<int64_t>()};
  launch_search(order_code(sorted.dtype()), args, launch_for(output));
  check_launch("searchsorted");
}

void run_starts(const RunStartsCall& call) {
  const auto& [sorted, output] = call;
  launch_run_starts(order_code(sorted.dtype()), sorted.raw_data(), sorted.size(),
                    output.data<bool>(), launch_for(output));
  check_launch("run_starts");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, sort) {
  kernels::sort.provide<&gpu::sort>(DeviceType::kCuda, "cuda");
  kernels::order_statistics.provide<&gpu::order_statistics>(DeviceType::kCuda, "cuda");
  kernels::searchsorted.provide<&gpu::searchsorted>(DeviceType::kCuda, "cuda");
  kernels::run_starts.provide<&gpu::run_starts>(DeviceType::kCuda, "cuda");
}
