#include "catena/functions/attention/alibi.h"

#include <bit>
#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/math.h"

namespace catena::functions {
namespace {

constexpr const char* kAlibi = "alibi_bias";

void check_heads_of_alibi(int64_t heads) {
  CATENA_CHECK(ValueError, heads >= 1, kAlibi, ": expected at least one head, got ", heads);
}

}  // namespace

std::vector<double> alibi_slopes(int64_t heads) {
  check_heads_of_alibi(heads);
  const int64_t whole = int64_t(std::bit_floor(uint64_t(heads)));
  std::vector<double> slopes;
  for (int64_t h = 0; h < whole; ++h)
    slopes.push_back(std::exp2(-8.0 * double(h + 1) / double(whole)));
  for (int64_t h = 0; h < heads - whole; ++h)
    slopes.push_back(std::exp2(-8.0 * double(2 * h + 1) / double(2 * whole)));
  return slopes;
}

Array alibi_bias(int64_t heads, int64_t queries, int64_t keys, const AlibiOptions& o) {
  check_heads_of_alibi(heads);
  CATENA_CHECK(ValueError, queries >= 1 && keys >= 1, kAlibi,
               ": expected at least one query and one key, got ", queries, " and ", keys);
  CATENA_CHECK(ValueError, is_float(o.dtype), kAlibi, ": expected a floating dtype, got ", o.dtype);
  const std::vector<double> all = alibi_slopes(heads);
  // In float64 on the CPU: a bias is made once for many calls.
  const ArrayOptions wide{Dtype::kFloat64, cpu()};
  const Array slopes = array(all, {heads, 1, 1}, wide), key = arange(keys, wide);
  const Array distance =
      o.causal
          ? key - double(keys - 1)
          : -absolute((arange(queries, wide) + double(keys - queries)).reshape({queries, 1}) - key);
  return (slopes * distance).astype(o.dtype).to(o.device);
}

}  // namespace catena::functions
