// Grid: a mesh (catena/comm/mesh.h) with the axes data, pipeline and tensor, for data parallelism
// over pipelines and tensor-parallel layers.
#pragma once

#include "catena/comm/mesh.h"

namespace catena::parallel {

// Sizes of a grid: so many replicas of the model, each a pipeline of so many stages, whose layers
// are spread over so many ranks (tensor/linear.h).
struct GridShape {
  int data = 1;
  int pipeline = 1;
  int tensor = 1;
  // All are equal.
  bool operator==(const GridShape&) const = default;
};

// Cuts a communicator into rows and columns:
//
//   Grid grid(*comm, {.data = 2, .pipeline = 3});
//
//               pipeline()          rank = replica * 3 + position in the pipeline
//            ┌─ 0 ─ 1 ─ 2           Neighbours of a pipeline are neighbours of the communicator,
//    data()  └─ 3 ─ 4 ─ 5           so that they share a host where they can.
//
// pipeline() has the ranks of this rank's replica, data() those at this rank's position in all
// replicas. With .tensor = 2 each of these places is two ranks, tensor():
//
//   rank = (replica * pipeline + position) * tensor + tensor_rank
//
// Ranks that share layers exchange most and are next to each other; pipeline() and data() then join
// ranks of one tensor_rank(). All are communicators like any other, and must not outlive the grid.
// Those of one rank know neither NCCL nor MPI.
class Grid {
 public:
  // Collective. ValueError on all ranks unless they give the same shape, and data * pipeline *
  // tensor is the size of the communicator.
  Grid(Communicator& comm, const GridShape& shape);

  // What the grid was made of, and its parts; the first must outlive the grid unless it is shared.
  Communicator& comm() const { return mesh_.comm(); }
  Communicator& data() const { return *data_; }
  Communicator& pipeline() const { return *pipeline_; }
  Communicator& tensor() const { return *tensor_; }
  const GridShape& shape() const { return shape_; }
  // This rank's row and column, and its rank among those that share the layers.
  int replica() const { return data_->rank(); }
  int position() const { return pipeline_->rank(); }
  int tensor_rank() const { return tensor_->rank(); }

 private:
  GridShape shape_;
  Mesh mesh_;
  Communicator *data_, *pipeline_, *tensor_;  // of the mesh
};

}  // namespace catena::parallel
