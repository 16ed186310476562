// Host glue of the slot of rotary positions.
#include "backends/cuda/attention/rotary.h"

#include <algorithm>

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/rotary.h"

namespace catena::gpu {
namespace {

RotaryArray array_of(const Array& a) {
  RotaryArray result{a.raw_data(), {}};
  for (int i = 0; i < 4; ++i) result.strides[i] = a.strides()[size_t(i)] / a.itemsize();
  return result;
}

// Whether all rows begin at a multiple of 16 bytes and have no gaps.
bool has_packs(const RotaryArray& a, const Shape& shape, int64_t pack) {
  for (size_t i = 0; i < 3; ++i)
    if (shape[i] > 1 && a.strides[i] % pack != 0) return false;
  return aligned16(a.data) && (shape[3] == 1 || a.strides[3] == 1);
}

void rotary(const RotaryCall& call) {
  const Float type = float_code("rotary", call.x->dtype());
  const Shape& shape = call.x->shape();
  const int64_t pack = 16 / call.x->itemsize(), pairs = int64_t(call.frequencies.size());
  RotaryArgs args{};
  args.x = array_of(*call.x), args.y = array_of(*call.y);
  args.batch = shape[0], args.heads = shape[1], args.positions = shape[2];
  args.all_pairs = int(pairs);
  if (call.positions != nullptr) {
    args.places = static_cast<const int32_t*>(call.positions->raw_data());
    for (int i = 0; i < 2; ++i)
      args.place_strides[i] = call.positions->strides()[size_t(i)] / call.positions->itemsize();
  }
  args.start = call.start;
  args.cos_factor = call.factor;
  args.sin_factor = call.inverse ? -call.factor : call.factor;
  args.interleaved = call.interleaved;
  args.packed = has_packs(args.x, shape, pack) && has_packs(args.y, shape, pack) &&
                pairs % pack == 0 && shape[3] % pack == 0;
  const Launch launch = launch_for(*call.x);
  for (int64_t first = 0; first < pairs; first += kMostRotaryPairs) {
    args.first_pair = int(first);
    args.pairs = int(std::min<int64_t>(kMostRotaryPairs, pairs - first));
    args.rest = first == 0 ? int(shape[3] - 2 * pairs) : 0;
    std::copy_n(call.frequencies.begin() + first, args.pairs, args.frequencies);
    launch_rotary(type, args, launch);
  }
  check_launch("rotary");
}

}  // namespace
}  // namespace catena::gpu

CATENA_FAMILY(cuda, rotary) { kernels::rotary.provide<&gpu::rotary>(DeviceType::kCuda, "cuda"); }
