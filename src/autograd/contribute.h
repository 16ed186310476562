// Checks of a pass on memory (who shares it, how often it was written to), and functions that add
// gradients that meet at a vertex.
#pragma once

#include "catena/autograd/variable.h"
#include "core/part_storage.h"

namespace catena {

// Whether nobody else can see the array's bytes, so that they may be written to in place.
inline bool is_sole_owner(const Array& a) {
  return a.body()->reference_count() == 1 && a.storage()->reference_count() == 1;
}

// How often the array's memory was written to.
inline uint64_t write_count(const Array& a) { return write_count(*a.storage()); }

// Adds g, which has the vertex's dtype, shape and device, to its gradient: in the memory of a
// parameter, in place where nobody else can see it, else as a new array. With create_graph also to
// grad_variable, recorded.
void contribute(VariableNode& vertex, const Variable& g, bool create_graph);

}  // namespace catena
