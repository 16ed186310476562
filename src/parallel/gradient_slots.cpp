#include "gradient_slots.h"

#include "catena/core/graph.h"
#include "core/part_storage.h"

namespace catena::parallel {
namespace {

// Reductions of small buckets may stand behind gathers of parameters: a third slot lets backward go
// on meanwhile.
size_t slots_for(Device device, int64_t bytes) {
  return device.is_cuda() && bytes <= (int64_t(64) << 20) ? 3 : 2;
}

}  // namespace

void GradientSlots::prepare(Device device, int64_t bytes) {
  slots_.resize(slots_for(device, bytes));
  for (Slot& slot : slots_) {
    const bool fits =
        slot.memory.defined() && slot.memory.device() == device && slot.memory.nbytes() == bytes;
    if (fits) continue;
    slot = {};
    if (bytes > 0) slot.memory = Array::uninitialized({bytes}, Dtype::kUInt8, device);
  }
}

// Launches of a graph come behind what their stream has waited for before, and what follows behind
// them: events count within one capture, or outside of all.
uint64_t GradientSlots::current_capture(const Slot& slot) const {
  return slot.memory.device().is_cuda() ? cuda::capture_id() : 0;
}

Array GradientSlots::take(size_t bucket, int64_t elements, Dtype dtype) {
  Slot& slot = slot_of(bucket);
  const auto size = static_cast<int64_t>(itemsize(dtype));
  const bool is_free = !slot.taken || slot.taken->reference_count() == 1;
  if (!slot.memory.defined() || !is_free || slot.memory.nbytes() < elements * size) return {};
  if (slot.end && slot.capture == current_capture(slot))
    current_stream(slot.memory.device()).wait(slot.end);
  slot.taken =
      part_of(slot.memory.storage(), slot.memory.raw_data(), static_cast<size_t>(elements * size));
  const Shape shape{elements};
  return Array::from_storage(slot.taken, 0, shape, contiguous_strides(shape, size), dtype);
}

void GradientSlots::is_read_until(size_t bucket, const Event& end) {
  Slot& slot = slot_of(bucket);
  if (!slot.memory.defined()) return;
  slot.end = end;
  slot.capture = current_capture(slot);
}

}  // namespace catena::parallel
