// DataAxes: along which axes of a mesh the samples of a batch are divided, and BatchRanks, the
// ranks along them.
#pragma once

#include <string>
#include <vector>

#include "catena/comm/mesh.h"

namespace catena::parallel {

// parallel::DataAxes axes{.mesh = mesh, .batch = {"data"}};
struct DataAxes {
  Mesh& mesh;  // must outlive what is made with it
  // Ranks that differ along these have other samples and the same parameters. Their gradients are
  // averaged.
  std::vector<std::string> batch = {};
  // Those of them along which arrays are spread (Sharding), such as the axis of the ranks of a
  // host: gathers stay within it, and along the others ranks keep the same parts, of which they
  // average the gradients. Empty: all.
  std::vector<std::string> shard = {};
};

// The ranks that have other samples of a batch, and those among which arrays are spread (S.
// Rajbhandari et al., ZeRO, 2020; parts within a host and copies across: S. Zhang et al., MiCS,
// 2022). Holds the communicators that are shared; others must outlive it.
class BatchRanks {
 public:
  // All ranks of a communicator, over all of which arrays are spread.
  BatchRanks(Communicator& comm);  // NOLINT: as good as the communicator
  // The same. ValueError for a null pointer.
  BatchRanks(const CommunicatorPtr& comm);  // NOLINT: likewise
  // Collective over the mesh where its communicators are made (Mesh::over). ValueError unless
  // `shard` is a part of `batch`.
  BatchRanks(const DataAxes& axes);  // NOLINT: likewise

  // All of them.
  Communicator& all() const { return *all_; }
  // Of all, those among which arrays are spread.
  Communicator& shard() const { return *shard_; }
  // Of all, those that keep the same parts as this rank; null where nobody else does.
  Communicator* across() const { return across_; }

 private:
  Communicator* all_;
  Communicator* shard_;
  Communicator* across_ = nullptr;
  std::vector<CommunicatorPtr> keep_;
};

}  // namespace catena::parallel
