// Placement: how a parameter, or an array beside parameters, lies over the ranks that share one
// model.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string>

#include "catena/core/shape.h"

namespace catena {

// Plain data, which the layer that makes the array sets (Parameter::place, Persistent::place), and
// which norms, files, pipelines and summaries read. An array without one is whole on every rank.
// Its gradient and the states that optimizers keep for it lie as it does. Copies of a layer keep
// the placement.
//
// Ranks are addressed by named axes: each rank has a coordinate on each of them. On axes that are
// not named here the array is replicated.
struct Placement {
  enum class Kind : uint8_t {
    kCut,   // each coordinate has other elements of the whole
    kHeld,  // one coordinate alone has it, such as a stage of a pipeline
  };
  // How it lies along one axis of ranks.
  struct Over {
    std::string mesh_axis;  // "tensor"; empty where the communicator does not know its name
    Kind kind = Kind::kCut;
    int axis = -1;             // of the array, along which it is cut; -1: not known
    int index = 0, count = 1;  // this rank's coordinate, and how many there are
    int holder = 0;            // of kHeld: the coordinate that has it
    bool operator==(const Over&) const = default;
  };

  // The box of the whole array that is here: its first corner; its extent is the array's shape.
  // Both are empty where the whole is here, or where nobody knows the box.
  Shape whole, begin;
  boost::container::small_vector<Over, 2> over;
  // Of a weight that several units of a model share, each with a copy of its own: the path of the
  // first copy, which names the weight in files and counts for all in norms. Empty for that one.
  std::string tied_to;

  // Whether the box is known.
  bool has_box() const { return !whole.empty(); }
  // Whether ranks have different elements.
  bool is_cut() const;
  // Into how many boxes the whole is cut; 1 where there is no box.
  int64_t boxes() const;
  // "12 of 24 rows, tensor 1/2": the box, and the coordinates, which begin at 0; empty where the
  // whole is here.
  std::string text(const Shape& local) const;
  // Whether it belongs to another coordinate of a kHeld axis.
  bool is_elsewhere() const;
};

// The box that an array of shape `local` is along `axis` of an array that has `extent` elements
// there, from element `begin` on. `over` is completed with the axis. ShapeError unless the box is
// inside.
Placement cut_along(const Shape& local, int axis, int64_t begin, int64_t extent,
                    Placement::Over over);

// ShapeError of `who` unless what `named` names, an array of shape `local`, fits into the box of
// the placement.
void check_box(const char* who, const std::string& named, const Shape& local,
               const Placement& placement);

}  // namespace catena
