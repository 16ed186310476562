// Plans that a library has made for problems, kept for the next call of the same problem.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace catena {

// The plans of all families of a provider, by the text of their problems. A program with ever new
// shapes keeps the `most` plans that it used last. For one thread, or under the lock of the caller;
// a plan that was handed out outlives its place in the cache.
template <class Plan>
class PlanCache {
 public:
  explicit PlanCache(size_t most) : most_(most) {}

  // The plan of this key, or null.
  std::shared_ptr<Plan> find(std::string_view key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->plan;
  }
  // Keeps a plan, unless the key has one already, and returns the one that is kept.
  std::shared_ptr<Plan> keep(std::string_view key, std::shared_ptr<Plan> plan) {
    if (auto known = find(key)) return known;
    if (entries_.size() >= most_) drop_oldest();
    entries_.push_front({std::string(key), std::move(plan)});
    places_.emplace(entries_.front().key, entries_.begin());
    return entries_.front().plan;
  }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<Plan> plan;
  };
  void drop_oldest() {
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }

  size_t most_;
  std::list<Entry> entries_;  // the last used first
  std::unordered_map<std::string_view, typename std::list<Entry>::iterator> places_;
};

}  // namespace catena
