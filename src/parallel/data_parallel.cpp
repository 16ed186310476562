#include "catena/parallel/data_parallel.h"

#include "catena/array/creation.h"
#include "catena/array/math.h"

namespace catena::parallel {

int64_t shard_size(int64_t n, size_t parts, size_t i) {
  CATENA_CHECK(ValueError, n >= 0 && i < parts, "shard_size: part ", i, " of ", parts, " parts of ",
               n, " samples does not exist");
  const auto count = static_cast<int64_t>(parts);
  return n / count + (static_cast<int64_t>(i) < n % count ? 1 : 0);
}

double shard_weight(int64_t n, size_t parts, size_t i) {
  CATENA_CHECK(ValueError, n > 0, "shard_weight: expected at least one sample");
  return static_cast<double>(shard_size(n, parts, i)) / static_cast<double>(n);
}

Arrays scatter_batch(const Array& batch, const std::vector<Device>& devices) {
  CATENA_CHECK(ValueError, !devices.empty(), "scatter_batch: no devices given");
  const int64_t n = batch.length();
  Arrays parts;
  int64_t begin = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    const int64_t end = begin + shard_size(n, devices.size(), i);
    parts.push_back(batch(Slice(begin, end)).to(devices[i]));
    begin = end;
  }
  return parts;
}

void backward(const Variable& loss, double weight) {
  CATENA_CHECK(ShapeError, loss.size() == 1,
               "parallel::backward: expected a scalar loss, got shape ", loss.shape());
  loss.set_grad(full_like(loss.data(), weight));
  loss.backward();
}

void ReplicaSet::add(Parameterized& replica) {
  optimizers::ArenaSet::Named named = replica.named_parameters();
  for (auto& entry : named) entry.first.insert(0, 1, '/');
  entries_.push_back({&replica, optimizers::ArenaSet(named)});
}

void ReplicaSet::zero_replicas() {
  for (const Entry& entry : entries_) entry.model->zero_grads();
}

void ReplicaSet::accumulate_into(Optimizer& optimizer) {
  for (Entry& entry : entries_) {
    if (!entry.layout.in_place()) entry.layout.rebuild();
    entry.layout.settle_gradients();
    optimizer.accumulate_grads(*entry.model);
  }
}

void ReplicaSet::copy_from(Optimizer& optimizer) {
  optimizer.settle_layout();
  const auto& source = optimizer.layout().arenas();
  for (Entry& entry : entries_) {
    if (!entry.layout.in_place()) entry.layout.rebuild();
    const auto& target = entry.layout.arenas();
    CATENA_CHECK(ValueError, entry.layout.structure_hash() == optimizer.layout().structure_hash(),
                 "copy_from: the optimizer holds another model than the replicas are copies of");
    if (source.size() == target.size()) {
      for (size_t i = 0; i < source.size(); ++i)
        target[i].data().memory.assign(source[i].data().part({0, source[i].size()}));
    } else {
      entry.model->copy_parameters_from(optimizer.parameters());
    }
  }
}

void ReplicaSet::average_persistents_with(const Parameterized& master) {
  std::vector<NamedPersistents> models{master.named_persistents()};
  for (const Entry& entry : entries_) models.push_back(entry.model->named_persistents());
  for (const NamedPersistents& one : models) {
    CATENA_CHECK(ValueError, one.size() == models[0].size(),
                 "average_persistents: the replicas are no longer copies of the master: it has ",
                 models[0].size(), " persistent arrays, one of them ", one.size());
  }
  for (size_t k = 0; k < models[0].size(); ++k) {
    const Persistent& own = models[0][k].second;
    if (own.over_ranks() != OverRanks::kMean) continue;
    const Dtype sums = itemsize(own.dtype()) < 4 ? Dtype::kFloat32 : own.dtype();
    int64_t samples = 0;
    for (const NamedPersistents& one : models) samples += one[k].second.samples();
    const Array total = zeros(own.shape(), {sums, own.device()});
    for (const NamedPersistents& one : models) {
      const Persistent& p = one[k].second;
      const double weight = samples > 0 ? double(p.samples()) / double(samples)
                                        : 1.0 / static_cast<double>(models.size());
      p.forget_samples();
      if (weight == 0) continue;
      const Array part = p.data().to(own.device()).astype(sums);
      catena::add(total, weight == 1 ? part : part * weight, total);
    }
    const Array mean = total.astype(own.dtype());
    for (const NamedPersistents& one : models) one[k].second.copy_from(mean);
  }
}

}  // namespace catena::parallel
