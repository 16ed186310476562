// Table of the inner loops of max pooling, compiled once for each x86-64 level. It is not part of
// tables.h, so that a change here does not recompile all other loops. See there for what it may
// include.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/levels.h"

namespace catena::host {

// Places of largest elements are their numbers in the window in C order. They are kept as bytes or
// as 32 bits, or not at all. All steps are in elements.
enum PlaceKind { kPlaceBytes, kPlaceInts, kNoPlaces };

// Of one storage type. Axes are in C order.
struct PoolingLoops {
  // One position of y with all of its channels side by side. `tap` is the place of the first
  // element that it sees, tap_step what a step along an axis adds to it.
  struct Position {
    const void* x;
    void *y, *places;
    int64_t channels, count[3], step[3], tap, tap_step[3];
  };
  void (*max_of_position[3])(const Position& p);

  // A row of y with channels first: positions along the last axis, which all see the same part of
  // the other two. x is the first row that they see.
  struct Row {
    const void* x;
    void *y, *places;
    int64_t positions, width, kernel, stride, pad;
    int64_t count[2], step[2], tap, tap_step[2];
  };
  void (*max_of_row[3])(const Row& r);

  // One element of gx with all of its channels side by side. It is what the positions see at the
  // place `tap`, which falls by tap_step from one to the next.
  struct Element {
    const void *gy, *places;
    void* gx;
    int64_t channels, count[3], step[3], tap, tap_step[3];
    bool accumulate;
  };
  void (*grad_of_element[2])(const Element& e);

  // A plane of gx (all extents of one channel) with channels first. The element that a position
  // sees at a place is `offsets[place]` behind the first one of its window. `sums` has memory for
  // the plane in the type of the sums.
  struct Plane {
    const void *gy, *places;
    void *gx, *sums;
    int64_t size, out[3], first, stride[3];  // first: of the first window; strides of windows
    const int64_t* offsets;
    bool accumulate;
  };
  void (*grad_of_plane[2])(const Plane& p);
};

using PoolingTables = LoopsOfFloats<PoolingLoops>;
CATENA_DECLARE_LOOPS(PoolingTables)

}  // namespace catena::host
