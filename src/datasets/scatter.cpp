#include "catena/datasets/scatter.h"

#include <utility>

#include "core/nested_share.h"

namespace catena::datasets {

Share scatter(int64_t count, RankOf who) {
  CATENA_CHECK(ValueError, who.ranks > 0 && who.rank >= 0 && who.rank < who.ranks, "scatter: rank ",
               who.rank, " of ", who.ranks, ", expected 0 <= rank < ranks");
  CATENA_CHECK(ValueError, count >= 0, "scatter: ", count, " samples, expected at least 0");
  Share share;
  share.begin = begin_of_share(count, who.rank, who.ranks);
  share.end = begin_of_share(count, int64_t(who.rank) + 1, who.ranks);
  share.weight = count == 0 ? 0 : double(share.size()) / double(count);
  return share;
}

ScatteredIterator::ScatteredIterator(PositionIterator order, RankOf who)
    : order_(std::move(order)), who_(who) {
  scatter(0, who);  // checks the ranks
}

ScatteredIterator::Part ScatteredIterator::next() {
  const std::span<const int64_t> global = order_.next();
  const auto count = static_cast<int64_t>(global.size());
  const Share share = scatter(count, who_);
  return {global.subspan(static_cast<size_t>(share.begin), static_cast<size_t>(share.size())),
          count, share.weight};
}

}  // namespace catena::datasets
