// Draws by Walker's alias method. See AliasSampleCall for the numbers.
#define CATENA_FN inline
#include "device/philox.h"

#include <algorithm>

#include "backends/common/family.h"
#include "backends/cpu/loops/tables.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/sampling.h"

namespace catena::host {

namespace {

constexpr int64_t kBlock = 1024;   // elements; even, so that each begins with a block of bits
constexpr int64_t kDrawCost = 12;  // nanoseconds, estimated

void alias_sample(const AliasSampleCall& call) {
  const uint64_t* base = call.bits.base ? call.bits.base->data<uint64_t>() : nullptr;
  const uint64_t seed = base ? base[0] : call.bits.seed;
  const uint64_t first = call.bits.offset + (base ? base[1] : 0);
  const auto slots = static_cast<uint64_t>(call.threshold.size());
  const float* threshold = call.threshold.data<float>();
  const int32_t* values = call.values.data<int32_t>();
  int32_t* out = call.output.data<int32_t>();
  const int64_t count = call.output.size();
  parallel_ranges(count, kBlock, threads_for(count * kDrawCost), [&](int64_t begin, int64_t end) {
    uint64_t bits[kBlock];
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      tables().random.halves(seed, first + uint64_t(at / 2), bits, n);
      for (int64_t i = 0; i < n; ++i) {
        const uint64_t slot = philox::scaled(bits[i], slots);
        const double u = philox::unit53(bits[i] * slots);
        out[at + i] = values[2 * slot + (u < double(threshold[slot]) ? 0 : 1)];
      }
    }
  });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, alias_sample) {
  kernels::alias_sample.provide<&host::alias_sample>(DeviceType::kCpu, "cpu");
}
