// Grid: ranks in rows and columns, for data parallelism over pipelines.
#pragma once

#include "catena/comm/communicator.h"

namespace catena::parallel {

// Sizes of a grid: so many replicas of the model, each a pipeline over so many ranks.
struct GridShape {
  int data = 1;
  int pipeline = 1;
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
// replicas. Both are communicators like any other, and must not outlive the grid.
class Grid {
 public:
  // Collective. ValueError on all ranks unless they give the same shape, and data * pipeline is the
  // size of the communicator.
  Grid(Communicator& comm, const GridShape& shape);

  // What the grid was made of, and its parts; the first must outlive the grid unless it is shared.
  Communicator& comm() const { return *comm_; }
  Communicator& data() const { return *data_; }
  Communicator& pipeline() const { return *pipeline_; }
  const GridShape& shape() const { return shape_; }
  // This rank's row and column.
  int replica() const { return data_->rank(); }
  int position() const { return pipeline_->rank(); }

 private:
  Communicator* comm_;
  CommunicatorPtr keep_;
  GridShape shape_;
  CommunicatorPtr data_, pipeline_;
};

}  // namespace catena::parallel
