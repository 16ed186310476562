// Mesh: the ranks of a communicator as points of a grid whose axes have names.
//
//   Mesh mesh(*comm, {{"data", 2}, {"pipeline", 2}, {"tensor", -1}});   // 8 ranks: tensor is 2
//
//   rank = (data * 2 + pipeline) * 2 + tensor     The last axis varies fastest: put ranks next to
//                                                 each other that exchange most.
//
// mesh["tensor"] has the ranks that differ from this one in "tensor" alone, and mesh.over({"data",
// "tensor"}) those that differ in these two. Any number of axes, with any names: what an axis is
// for is up to whoever uses its communicator.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/core/rank_of.h"

namespace catena::comm {

// Named axes and the communicators along them. Copies share those that were made before.
class Mesh {
 public:
  // An axis and the number of its points; one axis may have -1, which stands for what the ranks of
  // the communicator leave.
  struct Axis {
    std::string name;
    int size = 1;
    bool operator==(const Axis&) const = default;
  };

  // Collective: all ranks compare what they gave. ValueError on all of them unless it is equal, the
  // names are different, and the product of the sizes is the number of ranks. The communicator must
  // outlive the mesh unless it is shared.
  Mesh(Communicator& comm, std::vector<Axis> axes);

  // The communicator that the mesh was made over, and the axes, of which none is -1.
  Communicator& comm() const { return *comm_; }
  const std::vector<Axis>& axes() const { return axes_; }

  // The ranks that differ from this one in no other axes than these, in rank order; of none, this
  // rank alone. The first call with a set is collective over the whole mesh (Communicator::split),
  // unless the sizes of its axes are 1: then the communicator is this rank's alone, and neither
  // NCCL nor MPI know of it. So all ranks make first calls at the same point, as constructors of
  // layers do; a rank that makes one alone is named like any other that makes another call than the
  // rest. Later calls return the same communicator. It lives as long as the mesh, and longer where
  // a layer or an optimizer keeps it; its axis() says where it comes from. ValueError for a name
  // that is no axis, or is given twice.
  Communicator& over(const std::vector<std::string>& names);
  Communicator& operator[](const std::string& name) { return over({name}); }

  // The number of this rank in over(names), and how many ranks are in it; iterators take it. No
  // communication.
  RankOf rank_of(const std::vector<std::string>& names) const;
  // Of one axis. ValueError for a name that is no axis.
  int size(const std::string& name) const { return rank_of({name}).ranks; }
  int coordinate(const std::string& name) const { return rank_of({name}).rank; }

 private:
  uint32_t mask_of(const std::vector<std::string>& names) const;
  RankOf place_in(uint32_t mask, int rank) const;
  std::vector<std::string> names_of(uint32_t mask) const;
  std::string coordinates_of(int rank) const;

  Communicator* comm_;
  CommunicatorPtr keep_;
  std::vector<Axis> axes_;
  int number_ = 0;
  std::map<uint32_t, CommunicatorPtr> parts_;  // by their axes, a bit for each
};

}  // namespace catena::comm

namespace catena {
using comm::Mesh;
}  // namespace catena
