// Parameters of which each rank has a piece, for tensor-parallel layers of your own.
//
//   struct Gated : Parameterized {              // column-parallel, with uneven pieces
//     OwnedParameter W;
//     Gated(const F::Linear& whole, Communicator& comm, const std::vector<int64_t>& rows)
//         : W(parallel::part_of_whole(whole.W.data(), comm, 0, rows)) {}
//     CATENA_PARAMETERS(W)
//   };
//
// Norms, files, pipelines and summaries then know what the layer has: nothing else is declared.
#pragma once

#include <string>
#include <vector>

#include "catena/autograd/parameter.h"
#include "catena/autograd/placement.h"
#include "catena/comm/communicator.h"

namespace catena::parallel {

// The name of the axis of ranks that the communicator is, for Placement::Over::mesh_axis; empty
// where it has none.
std::string mesh_axis_of(const Communicator& comm);
// The axes of such a name: "context" and "tensor" of "context+tensor".
std::vector<std::string> axes_of(const std::string& mesh_axis);

// How this rank's piece of an array of shape `whole` lies, where the ranks of `comm` have
// neighbouring pieces along `axis` in the order of their ranks: equal ones, or of sizes[rank]
// elements. Call place() with it on a parameter, or on an array beside parameters, that was made as
// such a piece. Local; all ranks give the same. ShapeError for an axis that `whole` lacks,
// ValueError where the ranks cannot have equal pieces, and unless there are size() sizes of at
// least 0 with the sum whole[axis].
Placement piece_of(const Shape& whole, const Communicator& comm, int axis,
                   const std::vector<int64_t>& sizes = {});

// A parameter with this rank's piece of the values, copied, and its placement. Errors are those of
// piece_of.
OwnedParameter part_of_whole(const Array& whole, const Communicator& comm, int axis,
                             const std::vector<int64_t>& sizes = {});

}  // namespace catena::parallel
