// Gather and scatter of elements chosen by several lists of positions.
#include <cstring>

#include "array/iteration.h"
#include "backends/common/family.h"
#include "backends/cpu/index/positions.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/index.h"

namespace catena::host {
namespace {

constexpr int kFirstList = 2;  // operands of the plan: values, base, lists of positions

LoopPlan plan_select(const SelectCall& call) {
  LoopOperand operands[kFirstList + kMaxPositionLists];
  operands[0] = {&call.values->shape(), &call.values->strides()};
  operands[1] = {&call.base->shape(), &call.base->strides()};
  for (int k = 0; k < call.count; ++k) {
    operands[kFirstList + k] = {&call.positions[k]->shape(), &call.positions[k]->strides()};
  }
  return plan_loop({operands, size_t(kFirstList + call.count)});
}

// The distance in bytes from the base element to the chosen one.
template <class I>
int64_t displacement(const SelectCall& call, const char* const* lists) {
  int64_t offset = 0;
  for (int k = 0; k < call.count; ++k) {
    int64_t p = *reinterpret_cast<const I*>(lists[k]);
    if (call.extents[k] > 0) p = resolve(p, call.extents[k], static_cast<OutOfRange>(call.mode));
    offset += p * call.strides[k];
  }
  return offset;
}

template <bool kScatter, class Item>
void move_item(char* values, char* base) {
  if constexpr (kScatter)
    *reinterpret_cast<Item*>(base) = *reinterpret_cast<const Item*>(values);
  else
    *reinterpret_cast<Item*>(values) = *reinterpret_cast<const Item*>(base);
}

// One run along the innermost dimension in which no position changes.
template <bool kScatter, class Item>
void move_run(char* values, int64_t value_stride, char* base, int64_t base_stride, int64_t n) {
  constexpr int64_t kItem = sizeof(Item);
  if (value_stride == kItem && base_stride == kItem) {
    std::memcpy(kScatter ? base : values, kScatter ? values : base, size_t(n * kItem));
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    move_item<kScatter, Item>(values + i * value_stride, base + i * base_stride);
}

// n elements of one contiguous list of positions, `stride` bytes apart in the base. They are copied
// to or from contiguous values.
template <bool kScatter, class Item, class I>
void move_listed(const SelectCall& call, char* values, char* base, const I* positions, int64_t n) {
  const int64_t stride = call.strides[0], extent = call.extents[0];
  Item* v = reinterpret_cast<Item*>(values);
  int64_t block[kPositionPiece];
  for (int64_t first = 0; first < n; first += kPositionPiece, v += kPositionPiece) {
    const int64_t count = std::min(n - first, kPositionPiece);
    const int64_t* places = block;
    if (extent > 0)
      places =
          resolve_all(positions + first, count, extent, static_cast<OutOfRange>(call.mode), block);
    else  // in range: no wrapping needed
      std::copy_n(positions + first, count, block);
    const auto at = [&](int64_t j) {
      return reinterpret_cast<Item*>(
          base + places[j] * (stride == sizeof(Item) ? int64_t(sizeof(Item)) : stride));
    };
    for (int64_t j = 0; j < count; ++j) {
      if constexpr (kScatter)
        *at(j) = v[j];
      else
        v[j] = *at(j);
    }
  }
}

// Elements [begin, end) of the cursor's row.
template <bool kScatter, class Item, class I>
void move_row_part(const SelectCall& call, const LoopPlan& plan, const LoopCursor& cursor,
                   int64_t begin, int64_t end) {
  const int64_t value_stride = plan.inner_stride(0), base_stride = plan.inner_stride(1);
  char* v = static_cast<char*>(call.values->raw_data()) + cursor.offset(0) + begin * value_stride;
  char* b = static_cast<char*>(call.base->raw_data()) + cursor.offset(1) + begin * base_stride;
  const char* lists[kMaxPositionLists] = {};
  bool fixed = true;  // positions do not change along the row
  for (int k = 0; k < call.count; ++k) {
    const int64_t step = plan.inner_stride(kFirstList + k);
    lists[k] = static_cast<const char*>(call.positions[k]->raw_data()) +
               cursor.offset(kFirstList + k) + begin * step;
    fixed = fixed && step == 0;
  }
  if (fixed) {
    move_run<kScatter, Item>(v, value_stride, b + displacement<I>(call, lists), base_stride,
                             end - begin);
    return;
  }
  if (call.count == 1 && plan.inner_stride(kFirstList) == sizeof(I) &&
      value_stride == sizeof(Item) && base_stride == 0) {
    move_listed<kScatter, Item>(call, v, b, reinterpret_cast<const I*>(lists[0]), end - begin);
    return;
  }
  for (int64_t i = begin; i < end; ++i, v += value_stride, b += base_stride) {
    move_item<kScatter, Item>(v, b + displacement<I>(call, lists));
    for (int k = 0; k < call.count; ++k) lists[k] += plan.inner_stride(kFirstList + k);
  }
}

// Rows [first, last) of the plan.
template <bool kScatter, class Item, class I>
void move_rows(const SelectCall& call, const LoopPlan& plan, int64_t first, int64_t last) {
  LoopCursor cursor(plan, first);
  for (int64_t row = first; row < last; ++row, cursor.next_row())
    move_row_part<kScatter, Item, I>(call, plan, cursor, 0, plan.inner());
}

// Whether different indices of the outermost dimension write different elements, so that threads
// may share it.
bool outermost_is_base(const SelectCall& call, const LoopPlan& plan) {
  if (plan.ndim < 2 || plan.strides[1][0] == 0) return false;
  for (int k = 0; k < call.count; ++k) {
    if (plan.strides[kFirstList + k][0] != 0) return false;
  }
  return true;
}

template <bool kScatter, class Item, class I>
void run(const SelectCall& call) {
  const LoopPlan plan = plan_select(call);
  const int64_t rows = plan.size / plan.inner();
  int threads = threads_for(plan.size * (1 + call.count));
  if (!kScatter && plan.ndim == 1) {  // threads share the elements of one long list
    parallel_ranges(plan.inner(), 256, threads, [&](int64_t begin, int64_t end) {
      move_row_part<kScatter, Item, I>(call, plan, LoopCursor(plan, 0), begin, end);
    });
    return;
  }
  int64_t unit = 1;
  if (kScatter) {
    // One thread writes repeated positions, in their order.
    if (outermost_is_base(call, plan))
      unit = rows / plan.shape[0];
    else
      threads = 1;
  }
  parallel_ranges(rows, unit, threads, [&](int64_t begin, int64_t end) {
    move_rows<kScatter, Item, I>(call, plan, begin, end);
  });
}

template <bool kScatter, class Item>
void run_positions(const SelectCall& call) {
  if (call.positions[0]->dtype() == Dtype::kInt32)
    run<kScatter, Item, int32_t>(call);
  else
    run<kScatter, Item, int64_t>(call);
}

template <bool kScatter>
void run_items(const SelectCall& call) {
  switch (call.values->itemsize()) {
    case 1: return run_positions<kScatter, uint8_t>(call);
    case 2: return run_positions<kScatter, uint16_t>(call);
    case 4: return run_positions<kScatter, uint32_t>(call);
    default: return run_positions<kScatter, uint64_t>(call);
  }
}

void gather(const SelectCall& call) { run_items<false>(call); }
void scatter(const SelectCall& call) { run_items<true>(call); }

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, select) {
  kernels::gather.provide<&host::gather>(DeviceType::kCpu, "cpu");
  kernels::scatter.provide<&host::scatter>(DeviceType::kCpu, "cpu");
}
