#include "core/memory_timeline.h"

#include <algorithm>
#include <span>
#include <utility>

namespace catena {
namespace {

using Change = MemoryTimeline::Change;

// Sums the changes of each caller, at the time of the last one. Writes in place: there are never
// more sums than changes.
class Joiner {
 public:
  explicit Joiner(std::vector<Change>& changes) : changes_(changes) {}

  void join(size_t first, size_t last) {
    if (first == last) return;
    const int64_t ns = changes_[last - 1].ns;
    for (const Change& change : std::span(changes_).subspan(first, last - first)) {
      if (change.caller >= sums_.size()) sums_.resize(change.caller + 1, {0, false});
      Sum& sum = sums_[change.caller];
      sum.bytes += change.bytes;
      if (!std::exchange(sum.listed, true)) callers_.push_back(change.caller);
    }
    for (const uint32_t caller : callers_) {
      const int64_t bytes = std::exchange(sums_[caller], {0, false}).bytes;
      if (bytes != 0) changes_[end_++] = {ns, bytes, caller};
    }
    callers_.clear();
  }
  void finish() { changes_.resize(end_); }

 private:
  struct Sum {
    int64_t bytes;
    bool listed;
  };
  std::vector<Change>& changes_;
  size_t end_ = 0;
  std::vector<Sum> sums_;
  std::vector<uint32_t> callers_;
};

}  // namespace

void MemoryTimeline::add(int64_t ns, uint32_t caller, int64_t bytes) {
  if (changes_.size() >= most_) thin_out();
  if (!changes_.empty()) ns = std::max(ns, changes_.back().ns + 1);
  changes_.push_back({ns, bytes, caller});
}

void MemoryTimeline::merge(int64_t width) {
  width_ = width;
  Joiner joiner(changes_);
  int64_t held = 0;
  for (size_t first = 0, last = 0; first < changes_.size(); first = last) {
    const int64_t bucket = changes_[first].ns / width;
    size_t top = first;  // behind the moment at which most was held
    for (int64_t most = -1; last < changes_.size() && changes_[last].ns / width == bucket;) {
      held += changes_[last++].bytes;
      if (last < changes_.size() && changes_[last].ns == changes_[last - 1].ns) continue;
      if (held > most) {
        most = held;
        top = last;
      }
    }
    joiner.join(first, top);
    joiner.join(top, last);
  }
  joiner.finish();
}

// To a half at least, so that it does not come to this soon again.
void MemoryTimeline::thin_out() {
  const int64_t span = changes_.back().ns;
  int64_t width = std::max<int64_t>({1, 2 * width_, span / int64_t(most_)});
  for (merge(width); changes_.size() > most_ / 2 && width <= span; merge(width)) width *= 2;
  most_ = std::max(most_, 2 * changes_.size());
}

}  // namespace catena
