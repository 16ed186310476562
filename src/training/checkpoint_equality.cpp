#include "training/checkpoint_equality.h"

#include <algorithm>
#include <cstdio>

#include "catena/comm/transport.h"
#include "parallel/array_digest.h"

namespace catena::training {

using serializers::SharedSlice;

namespace {

constexpr size_t kDigestDigits = 16;  // of a digest in a text

}  // namespace

std::vector<SharedSlice> held_in_common(
    const std::vector<std::vector<serializers::TensorSlice>>& slices) {
  std::vector<SharedSlice> shared = serializers::shared_slices(slices);
  std::erase_if(shared, [](const SharedSlice& one) {
    return one.holders.size() < 2 || !one.slice.is_equal || one.slice.is_value;
  });
  return shared;
}

std::string digests_of(const serializers::TensorParts& parts,
                       const std::vector<SharedSlice>& common, int rank) {
  std::string text;
  for (const SharedSlice& one : common) {
    for (const SharedSlice::Holder& holder : one.holders) {
      if (holder.process != size_t(rank)) continue;
      char digits[kDigestDigits + 1];
      std::snprintf(
          digits, sizeof digits, "%016llx",
          static_cast<unsigned long long>(parallel::digest_of(parts[holder.part].flat())));
      text += digits;
    }
  }
  return text;
}

void require_equal(const char* who, const std::vector<SharedSlice>& common,
                   const std::vector<std::string>& digests) {
  std::vector<size_t> next(digests.size(), 0);  // in each text
  for (const SharedSlice& one : common) {
    std::vector<int> others;  // that differ from the first
    std::string first;
    for (const SharedSlice::Holder& holder : one.holders) {
      size_t& at = next[holder.process];
      const std::string digest = digests[holder.process].substr(at, kDigestDigits);
      at += kDigestDigits;
      if (&holder == &one.holders[0]) first = digest;
      if (digest != first) others.push_back(int(holder.process));
    }
    CATENA_CHECK(
        ValueError, others.empty(), who, ": '", one.slice.name, "' on ", comm::list_ranks(others),
        others.size() == 1 ? " differs" : " differ", " from that on rank ", one.holders[0].process,
        ", but has the same name and shape, so that they would be saved as one tensor. If each "
        "rank has a slice of a whole, call Checkpoint::declare_slice; if each has a model of its "
        "own, give each rank a CheckpointFolder with a path of its own and without a communicator. "
        "Otherwise all ranks must start from the same state and make the same updates");
  }
}

}  // namespace catena::training
