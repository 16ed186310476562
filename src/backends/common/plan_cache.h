// Plans that a library has made for problems, kept for the next call of the same problem.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "backends/common/plan_key.h"

namespace catena {

// The plans of all families of a provider, by the keys of their problems. A program with ever new
// shapes keeps the `most` plans that it used last. For one thread, or under the lock of the caller;
// a plan that was handed out outlives its entry in the cache.
template <class Plan>
class PlanCache {
 public:
  explicit PlanCache(size_t most) : most_(most) {}

  // The plan of this key, or null.
  std::shared_ptr<Plan> find(const PlanKey& key) {
    const auto found = places_.find(&key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->plan;
  }
  // Keeps a plan, unless the key has one already, and returns the one that is kept.
  std::shared_ptr<Plan> keep(const PlanKey& key, std::shared_ptr<Plan> plan) {
    if (auto known = find(key)) return known;
    if (entries_.size() >= most_) drop_oldest();
    entries_.push_front({key, std::move(plan)});
    places_.emplace(&entries_.front().key, entries_.begin());
    return entries_.front().plan;
  }
  size_t size() const { return entries_.size(); }
  void clear() {
    places_.clear();
    entries_.clear();
  }

 private:
  struct Entry {
    PlanKey key;
    std::shared_ptr<Plan> plan;
  };
  struct Hash {
    size_t operator()(const PlanKey* key) const { return key->hash(); }
  };
  struct Equal {
    bool operator()(const PlanKey* a, const PlanKey* b) const { return *a == *b; }
  };
  void drop_oldest() {
    places_.erase(&entries_.back().key);
    entries_.pop_back();
  }

  size_t most_;
  std::list<Entry> entries_;  // the last used first
  std::unordered_map<const PlanKey*, typename std::list<Entry>::iterator, Hash, Equal> places_;
};

}  // namespace catena
