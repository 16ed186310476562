#include "core/memory_shares.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace catena {
namespace {

using Change = MemoryTimeline::Change;

// A caller as pictures tell them apart.
struct Folded {
  std::string name;
  int64_t held = 0, most = 0, at_peak = 0;
};

// Calls `moment(ns)` after the changes of each moment.
template <class Apply, class Moment>
void replay(const std::vector<Change>& changes, const Apply& apply, const Moment& moment) {
  for (size_t i = 0; i < changes.size(); ++i) {
    apply(changes[i]);
    if (i + 1 == changes.size() || changes[i + 1].ns != changes[i].ns) moment(changes[i].ns);
  }
}

// Of each caller the number of the folded one.
std::vector<size_t> fold(const std::vector<std::string>& paths, int levels,
                         std::vector<Folded>* all) {
  std::map<std::string, size_t> numbers;
  std::vector<size_t> folded;
  for (const std::string& path : paths) {
    const auto [at, is_new] = numbers.emplace(outermost(path, levels), all->size());
    if (is_new) all->push_back({at->first});
    folded.push_back(at->second);
  }
  return folded;
}

// What each folded caller held at the peak, and at most.
void find_peak(const std::vector<Change>& changes, const std::vector<size_t>& folded,
               std::vector<Folded>& all, MemoryShares* result) {
  int64_t held = 0;
  std::vector<size_t> since_peak;  // whose bytes have changed
  replay(
      changes,
      [&](const Change& change) {
        Folded& caller = all[folded[change.caller]];
        caller.held += change.bytes;
        caller.most = std::max(caller.most, caller.held);
        held += change.bytes;
        since_peak.push_back(folded[change.caller]);
      },
      [&](int64_t ns) {
        if (held <= result->peak) return;
        result->peak = held;
        result->peak_ns = ns;
        for (const size_t i : since_peak) all[i].at_peak = all[i].held;
        since_peak.clear();
      });
}

// Numbers of those that ever held something, what held most at the peak first.
std::vector<size_t> ranking(const std::vector<Folded>& all) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return all[i].most == 0; });
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    return std::tie(all[j].at_peak, all[j].most, all[i].name) <
           std::tie(all[i].at_peak, all[i].most, all[j].name);
  });
  return order;
}

}  // namespace

std::string outermost(const std::string& path, int levels) {
  size_t end = 0;
  for (int i = 0; i < levels; ++i) {
    end = path.find('/', i == 0 ? 0 : end + 1);
    if (end == std::string::npos) return path;
  }
  return levels == 0 ? path : path.substr(0, end);
}

MemoryShares shares_of(const MemoryTimeline& timeline, const std::vector<std::string>& paths,
                       int levels, int most, int64_t bucket_ns) {
  MemoryShares result;
  std::vector<Folded> all;
  std::vector<size_t> share_of = fold(paths, levels, &all);
  find_peak(timeline.changes(), share_of, all, &result);
  const std::vector<size_t> order = ranking(all);
  const size_t named = std::min(order.size(), size_t(most));
  std::vector<size_t> place(all.size(), named);
  for (size_t i = 0; i < order.size(); ++i) {
    const Folded& caller = all[order[i]];
    place[order[i]] = std::min(i, named);
    if (i <= named) result.shares.emplace_back();
    MemoryShares::Share& share = result.shares[std::min(i, named)];
    share.at_peak += caller.at_peak;
    if (i < named)
      share.name = caller.name;
    else
      ++share.others;
  }
  // Callers have numbers by their first allocation: what a program keeps from its start comes
  // first.
  for (const size_t share : place)
    if (share < named) result.stacked.push_back(share);
  if (order.size() > named) result.stacked.push_back(named);
  for (size_t& number : share_of) number = place[number];

  MemoryTimeline coarse = timeline;
  if (bucket_ns > timeline.bucket_width()) coarse.merge(bucket_ns);
  std::vector<int64_t> held(result.shares.size(), 0);
  replay(
      coarse.changes(),
      [&](const Change& change) { held[share_of[change.caller]] += change.bytes; },
      [&](int64_t ns) {
        result.moments.push_back({ns, held});
      });
  return result;
}

}  // namespace catena
