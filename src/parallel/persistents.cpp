#include "catena/parallel/persistents.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "catena/comm/internals.h"
#include "slice_persistents.h"

namespace catena::parallel {
namespace {

void check_device(const std::string& path, const Persistent& p, const Communicator& comm) {
  CATENA_CHECK(DeviceError, p.device() == comm.device(), "persistent array '", path, "' is on ",
               p.device(), ", this rank's communicator on ", comm.device(),
               "; move the model with model.to(comm.device())");
}

// How this rank's array k counts, when counts[r][k] samples went into that of rank r.
comm::Reduce mean_of(const std::vector<std::vector<int64_t>>& counts, size_t k,
                     const Communicator& comm) {
  int64_t all = 0;
  bool equal = true;
  for (const std::vector<int64_t>& one : counts) {
    CATENA_CHECK(ValueError, one.size() == counts[0].size(), "average_persistents: rank 0 has ",
                 counts[0].size(), " arrays to average, another rank ", one.size(),
                 "; all ranks must give equal models");
    all += one[k];
    equal &= one[k] == counts[0][k];
  }
  if (equal) return comm::Reduction::kMean;
  return comm::weighted(double(counts[size_t(comm.rank())][k]) / double(all));
}

// Averages those of which an optimizer keeps one for each slice of a batch, and returns the others.
NamedPersistents without_sliced(const NamedPersistents& persistents, Communicator& comm) {
  NamedPersistents others;
  std::vector<std::pair<std::shared_ptr<SlicePersistents>, std::vector<Persistent>>> sliced;
  for (const auto& [path, p] : persistents) {
    const auto slices = SlicePersistents::of(p, comm);
    if (!slices) {
      others.emplace_back(path, p);
      continue;
    }
    if (p.over_ranks() != OverRanks::kMean || p.size() == 0) continue;
    check_device(path, p, comm);
    const auto found = std::find_if(sliced.begin(), sliced.end(),
                                    [&](const auto& one) { return one.first == slices; });
    if (found == sliced.end())
      sliced.push_back({slices, {p}});
    else
      found->second.push_back(p);
  }
  for (const auto& [slices, averaged] : sliced) slices->average(averaged);
  return others;
}

}  // namespace

void average_persistents(const NamedPersistents& persistents, Communicator* comm) {
  if (comm == nullptr) return;
  const NamedPersistents others = without_sliced(persistents, *comm);
  if (comm->size() == 1) return;
  std::vector<Persistent> averaged;
  std::vector<int64_t> samples;
  for (const auto& [path, p] : others) {
    if (p.over_ranks() != OverRanks::kMean) continue;
    check_device(path, p, *comm);
    if (p.size() == 0) continue;
    averaged.push_back(p);
    samples.push_back(p.samples());
    p.forget_samples();
  }
  if (averaged.empty()) return;
  const comm::PurposeScope purpose(comm, "average_persistents");
  const auto counts = comm->all_gather_object(samples);
  std::vector<comm::Reduce> means;
  for (size_t k = 0; k < averaged.size(); ++k) means.push_back(mean_of(counts, k, *comm));
  for (size_t k = 0; k < averaged.size(); ++k)  // what it holds may be no number
    if (means[k].kind == comm::Reduction::kWeighted && samples[k] == 0) averaged[k].data().fill(0);
  comm->group([&] {  // most are small: issued together
    for (size_t k = 0; k < averaged.size(); ++k)
      comm->all_reduce(averaged[k].data(), means[k], averaged[k].data());
  });
}

void broadcast_persistents(const NamedPersistents& persistents, Communicator& comm, int root) {
  for (const auto& [path, p] : persistents) check_device(path, p, comm);
  for (const auto& [path, p] : persistents) {
    p.forget_samples();
    if (p.size() > 0) comm.broadcast(p.data(), root);
  }
}

}  // namespace catena::parallel
