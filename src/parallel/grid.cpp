#include "catena/parallel/grid.h"

#include "catena/core/entry_scope.h"

namespace catena::parallel {
namespace {

// As it was written: a grid of two sizes has no tensor axis.
std::vector<Mesh::Axis> mesh_axes(const GridShape& shape) {
  std::vector<Mesh::Axis> axes{{"data", shape.data}, {"pipeline", shape.pipeline}};
  if (shape.tensor != 1) axes.push_back({"tensor", shape.tensor});
  return axes;
}

Mesh mesh_of(Communicator& comm, const GridShape& shape) {
  const EntryScope call("Grid");
  return Mesh(comm, mesh_axes(shape));
}

}  // namespace

Grid::Grid(Communicator& comm, const GridShape& shape)
    : shape_(shape),
      mesh_(mesh_of(comm, shape)),
      data_(&mesh_["data"]),
      pipeline_(&mesh_["pipeline"]),
      tensor_(shape.tensor == 1 ? &mesh_.over({}) : &mesh_["tensor"]) {
  shape_ = {data_->size(), pipeline_->size(), tensor_->size()};
}

}  // namespace catena::parallel
