#include "round.h"

namespace catena::parallel {

void Round::begin(const std::vector<Bucket>& buckets, State how) {
  state_ = how;
  has_counted_ = has_agreed_ = false;
  remaining_.clear();
  for (const Bucket& b : buckets) remaining_.push_back(b.last - b.first);
  next_ = 0;
  named_.clear();
}

}  // namespace catena::parallel
