#include "slice_persistents.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/comm/internals.h"
#include "catena/core/graph.h"
#include "tree_reduction.h"

namespace catena::parallel {
namespace {

// average_persistents(model, comm) finds the slices by the communicator.
struct SlicedModels {
  std::mutex mutex;
  std::multimap<const Communicator*, std::weak_ptr<SlicePersistents>> of;
};
SlicedModels& sliced_models() {
  static SlicedModels* models = new SlicedModels;
  return *models;
}

uint64_t writes_of(const Persistent& p) {
  return p.data().storage()->version.load(std::memory_order_relaxed);
}

}  // namespace

std::shared_ptr<SlicePersistents> SlicePersistents::of(const Persistent& persistent,
                                                       const Communicator& comm) {
  SlicedModels& models = sliced_models();
  const std::lock_guard lock(models.mutex);
  const auto [first, last] = models.of.equal_range(&comm);
  for (auto it = first; it != last; ++it)
    if (auto one = it->second.lock(); one && one->holds(persistent)) return one;
  return nullptr;
}

void SlicePersistents::after_setup(const NamedPersistents& persistents) {
  entries_.clear();
  for (const auto& [path, p] : persistents) {
    Entry entry{p, {}, std::vector<int64_t>(size_t(local_), 0)};
    if (local_ > 1)
      for (int k = 0; k < local_; ++k) entry.own.push_back(p.data().copy());
    entry.writes = writes_of(p);
    entries_.push_back(std::move(entry));
  }
  SlicedModels& models = sliced_models();
  const std::lock_guard lock(models.mutex);
  std::erase_if(models.of, [&](const auto& one) {
    const auto other = one.second.lock();
    return !other || other.get() == this;
  });
  models.of.emplace(&comm_, weak_from_this());
}

// Steps ---------------------------------------------------------------------------------------

void SlicePersistents::follow_writes() {
  for (Entry& entry : entries_) {
    const Array& array = entry.persistent.data();
    const uint64_t writes = writes_of(entry.persistent);
    const bool has_left = !entry.own.empty() && entry.own[0].device() != array.device();
    if (writes == entry.writes && !has_left) continue;
    entry.writes = writes;
    for (Array& own : entry.own) {
      if (has_left) own = array.copy();
      own.assign(array);
    }
  }
}

void SlicePersistents::begin_step() {
  for (Entry& entry : entries_) entry.persistent.forget_samples();
  if (!comm_.device().is_cuda() || !cuda::is_capturing(comm_.device())) return follow_writes();
  cuda::add_launch_hook([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->follow_writes();
  });
}

void SlicePersistents::begin_slice(int local) {
  for (Entry& entry : entries_) {
    if (entry.moves && !entry.own.empty()) entry.persistent.data().assign(entry.own[size_t(local)]);
    entry.writes_before = writes_of(entry.persistent);
  }
}

void SlicePersistents::end_slice(int local) {
  for (Entry& entry : entries_) {
    const Persistent& p = entry.persistent;
    entry.samples[size_t(local)] += p.samples();
    p.forget_samples();
    if (writes_of(p) != entry.writes_before) {
      entry.moves = true;
      if (!entry.own.empty()) entry.own[size_t(local)].assign(p.data());
    }
    entry.writes = writes_of(p);
  }
}

// Means ---------------------------------------------------------------------------------------

SlicePersistents::Entry& SlicePersistents::entry_of(const Persistent& persistent) {
  return *std::find_if(entries_.begin(), entries_.end(),
                       [&](const Entry& entry) { return entry.persistent == persistent; });
}

bool SlicePersistents::holds(const Persistent& persistent) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.persistent == persistent; });
}

// Of each array, the samples of all slices.
std::vector<std::vector<int64_t>> SlicePersistents::gather_samples(
    const std::vector<Entry*>& averaged) const {
  std::vector<int64_t> mine;
  for (const Entry* entry : averaged)
    mine.insert(mine.end(), entry->samples.begin(), entry->samples.end());
  std::vector<std::vector<int64_t>> all(averaged.size());
  for (const std::vector<int64_t>& ranks : comm_.all_gather_object(mine)) {
    CATENA_CHECK(ValueError, ranks.size() == mine.size(), "average_persistents: the ranks have ",
                 mine.size(), " and ", ranks.size(),
                 " arrays of slices to average; all ranks must give equal models");
    for (size_t k = 0; k < all.size(); ++k)
      all[k].insert(all[k].end(), ranks.begin() + int64_t(k) * local_,
                    ranks.begin() + int64_t(k + 1) * local_);
  }
  return all;
}

// The tree over this rank's slices; a slice's weight is relative to the mean one.
Array SlicePersistents::local_sum(const Entry& entry, const std::vector<int64_t>& samples) const {
  const Array& array = entry.persistent.data();
  const int64_t total = std::accumulate(samples.begin(), samples.end(), int64_t(0));
  const Array rows = zeros({local_, array.size()}, {array.dtype(), array.device()});
  for (int k = 0; k < local_; ++k) {
    const Array value = (entry.own.empty() ? array : entry.own[size_t(k)]).reshape({array.size()});
    const int64_t count = samples[size_t(comm_.rank() * local_ + k)];
    const double weight = total == 0 ? 1 : double(count) * slices_ / double(total);
    if (weight == 1)
      rows(k).assign(value);
    else if (weight != 0)  // what a slice without samples holds may be no number
      multiply(value, weight, rows(k));
  }
  return tree_sum(rows);
}

void SlicePersistents::average(const std::vector<Persistent>& persistents) {
  const comm::PurposeScope purpose(&comm_, "average_persistents");
  std::vector<Entry*> averaged;
  for (const Persistent& p : persistents) averaged.push_back(&entry_of(p));
  const auto samples = gather_samples(averaged);
  std::map<Dtype, std::vector<size_t>> by_dtype;
  for (size_t k = 0; k < averaged.size(); ++k)
    by_dtype[averaged[k]->persistent.dtype()].push_back(k);
  for (const auto& [dtype, entries] : by_dtype) {
    Arrays sums;
    for (const size_t k : entries) sums.push_back(local_sum(*averaged[k], samples[k]));
    const Array means = concatenate(sums, 0);
    tree_all_reduce(comm_, means, 1.0 / slices_);
    int64_t next = 0;
    for (const size_t k : entries) {
      Entry& entry = *averaged[k];
      const Array& array = entry.persistent.data();
      array.assign(means(Slice(next, next + array.size())).reshape(array.shape()));
      next += array.size();
      for (const Array& own : entry.own) own.assign(array);
      entry.writes = writes_of(entry.persistent);
      std::fill(entry.samples.begin(), entry.samples.end(), 0);
    }
  }
}

}  // namespace catena::parallel
