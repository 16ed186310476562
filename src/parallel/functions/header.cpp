#include "header.h"

#include <algorithm>

#include "catena/core/dtype_info.h"

namespace catena::parallel {

// recorded, dtype, extents.
std::vector<int64_t> pack_header(const TypeHeader& header) {
  std::vector<int64_t> words{header.recorded, static_cast<int64_t>(header.type.dtype)};
  words.insert(words.end(), header.type.shape.begin(), header.type.shape.end());
  return words;
}

TypeHeader unpack_header(const std::vector<int64_t>& words, const char* who) {
  const auto is_extent = [](int64_t n) { return n >= 0; };
  CATENA_CHECK(CommError,
               words.size() >= 2 && words[1] >= 0 && words[1] < int64_t(kDtypeCount) &&
                   std::all_of(words.begin() + 2, words.end(), is_extent),
               who,
               ": got a message that is not the header of an array; the other rank must call "
               "the function of the same kind, with a header");
  return {{Shape(words.begin() + 2, words.end()), static_cast<Dtype>(words[1])}, words[0] != 0};
}

}  // namespace catena::parallel
