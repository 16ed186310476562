// How arenas are cut into buckets.
#include <algorithm>

#include "bucket_reduction.h"

namespace catena::parallel {
namespace {

using optimizers::ParameterArena;

int64_t bytes_of(const ParameterArena& arena, size_t first, size_t last) {
  if (first >= last) return 0;
  return (arena.end_of(last - 1) - arena.slots()[first].offset) * int64_t(itemsize(arena.dtype()));
}

// First slot of the last bucket: as many trailing slots as fit, if they are not all.
size_t last_begins(const ParameterArena& arena, int64_t limit) {
  const size_t count = arena.slots().size();
  size_t first = count;
  while (first > 0 && bytes_of(arena, first - 1, count) <= limit) --first;
  return first;
}

void cut(const ParameterArena& arena, size_t index, const BucketOptions& options,
         std::vector<Bucket>& buckets) {
  const size_t count = arena.slots().size(), tail = last_begins(arena, options.last_bytes);
  int64_t limit = options.first_bytes;
  const auto close = [&](size_t first, size_t last) {
    buckets.push_back({index, first, last, arena.slots()[first].offset, arena.end_of(last - 1)});
    limit = options.bucket_bytes;
  };
  size_t first = 0;
  for (size_t i = 0; i < tail; ++i) {
    if (bytes_of(arena, first, i + 1) < limit) continue;
    close(first, i + 1);
    first = i + 1;
  }
  if (first < tail) close(first, tail);
  if (tail < count) close(tail, count);
}

}  // namespace

const char* name(Sharding sharding) {
  constexpr const char* kNames[] = {"auto", "none", "states", "gradients", "parameters"};
  return kNames[static_cast<size_t>(sharding)];
}

bool is_reduced_in_parts(const ParameterArena& arena, const BucketOptions& options) {
  return options.sharding != Sharding::kNone && options.slices == 0 &&
         arena.covers().size() != arena.size();
}

std::vector<Bucket> make_buckets(const std::vector<ParameterArena>& arenas,
                                 const BucketOptions& options) {
  CATENA_CHECK(ValueError,
               options.first_bytes > 0 && options.bucket_bytes > 0 && options.last_bytes >= 0,
               "make_buckets: expected positive sizes, got ", options.first_bytes, ", ",
               options.bucket_bytes, " and ", options.last_bytes);
  std::vector<Bucket> buckets;
  for (size_t i = 0; i < arenas.size(); ++i) {
    if (is_reduced_in_parts(arenas[i], options))
      buckets.push_back({i, 0, arenas[i].slots().size(), 0, arenas[i].size()});
    else
      cut(arenas[i], i, options, buckets);
  }
  // A bucket is complete with its first declared parameter: the last of its slots, unless a layer
  // has packed its parameters in the order of declaration.
  const auto completes = [&](const Bucket& b) {
    int64_t first = arenas[b.arena].slots()[b.first].index;
    for (size_t s = b.first; s < b.last; ++s)
      first = std::min(first, arenas[b.arena].slots()[s].index);
    return first;
  };
  std::stable_sort(buckets.begin(), buckets.end(),
                   [&](const Bucket& a, const Bucket& b) { return completes(a) > completes(b); });
  return buckets;
}

}  // namespace catena::parallel
