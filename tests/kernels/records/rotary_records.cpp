// Record of the slot of rotary positions.
#include "catena/array/creation.h"
#include "catena/kernels/rotary.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

// Heads behind positions in memory, with numbers behind the pairs; then pairs that are packs, and
// more pairs than the arguments of a kernel hold.
Results turned(Device device) {
  std::vector<double> frequencies;
  for (int j = 0; j < 300; ++j) frequencies.push_back(1.0 / (1 + j));
  const Array positions = integers(device, {2, 5}, 50);
  Results results;
  const auto turn = [&](const Shape& shape, size_t pairs, bool interleaved, bool inverse,
                        const Array* places) {
    const Array x = data(device, shape).transpose({0, 2, 1, 3}), y = zeros_like(x);
    kernels::rotary(device, {.x = &x,
                             .frequencies = std::span(frequencies).first(pairs),
                             .factor = 1.25,
                             .interleaved = interleaved,
                             .inverse = inverse,
                             .positions = places,
                             .start = 3,
                             .y = &y});
    results.push_back(y);
  };
  for (const bool interleaved : {false, true}) {
    turn({2, 5, 3, 11}, 3, interleaved, false, &positions);
    turn({2, 5, 3, 24}, 8, interleaved, true, &positions);
    turn({2, 2, 1, 608}, 300, interleaved, false, nullptr);
  }
  return results;
}

}  // namespace

CATENA_SLOT_RECORDS(rotary) { return {{"rotary", turned}}; }

}  // namespace catena
