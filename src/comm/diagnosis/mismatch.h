// Calls that differ between ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "status/call_record.h"

namespace catena::comm {

// The last calls of a rank, oldest first, and those of several ranks.
using Ring = std::vector<CallRecord>;
using Rings = std::vector<Ring>;

// The first difference between rings[own] and the others in the calls of communicator `id`, which
// has `size` ranks, and in the messages of that rank; "" when there is none. ranks[i] is the rank
// of rings[i]. `culprit`, unless null, becomes the only rank whose call differs from the others,
// or -1; it is left alone when there is no difference.
std::string difference_between(const Rings& rings, size_t own, const std::vector<int>& ranks,
                               uint64_t id, size_t size, int* culprit);
// The same over the rings of all ranks; rings[rank] is this rank's.
std::string difference_of(const Rings& rings, int rank, uint64_t id);
// Whether the other ranks have made all calls on communicator `id`, and sent all messages, that
// rings[own] holds as made and received. The rings hold the last `depth` calls of each rank, of any
// communicator; a rank whose calls in question may be older than that has made them.
bool all_came(const Rings& rings, size_t own, const std::vector<int>& ranks, uint64_t id,
              size_t depth);
// Of rings whose calls do not differ: the first that some ranks have made and others have not.
std::string missing_call_of(const Rings& rings, uint64_t id);
// The number of the last call on a communicator among these; 0: none.
uint64_t last_call(const std::vector<CallRecord>& ring, uint64_t id);
// That of a ring of the last `depth` calls of a rank; nothing where it may be older than these.
std::optional<uint64_t> last_known_call(const Ring& ring, uint64_t id, size_t depth);

}  // namespace catena::comm
