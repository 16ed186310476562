// Cross entropy of the scores of a linear layer whose classes are spread over ranks, without scores
// in memory as a whole.
#pragma once

#include "catena/comm/communicator.h"
#include "catena/functions/loss/linear_cross_entropy.h"

namespace catena::functions {

// linear_cross_entropy where each rank has neighbouring rows of W (and of b): the loss of a large
// vocabulary after a layer such as ColumnParallelLinear, of which it takes W and b, or with the
// table of a VocabParallelEmbedID. h and t are whole; each rank has its slice of W, (rows, size),
// and b, (rows). The loss and the gradient of h are whole, with the same bits on all ranks; those
// of W and b are the rank's. With one rank it is linear_cross_entropy.
//
// Which classes the rows are is in the placement of a parameter W, so that slices may be uneven, or
// empty; any other W is taken for one of equal slices, in the order of the ranks. The rest of the
// contract is that of linear_cross_entropy, with these differences:
//
// - Ranks exchange in the forward pass, beside the products where chunks follow each other: for
//   each chunk one message of six numbers a token (seven with label_smoothing), and, where h wants
//   a gradient, the sum of that in float32 or wider. Never scores. Backward exchanges nothing,
//   except with kNone, where it makes these messages again, and with create_graph.
// - Two chunks of scores are in memory unless there is only one, (chunk, rows) each. By default
//   they have 176 MiB together, by the mean number of rows. All ranks need the same options.
// - The gradient of h is kept in float32 or wider until backward.
// - Backward exchanges over the communicator, if it does, which the graph does not keep open:
//   CommError after that.
//
// For an h that is a slice of the sequence: concat_of_ranks(h, comm, 0), whose gradient is the
// rank's slice. A copy_to_ranks in front of h would add its gradient up twice.
//
// All ranks make the call. ValueError for a parameter W that is not cut along its rows over the
// ranks of `comm`; and, on a CPU, on all ranks where slices of W do not join, or a token's label is
// not the same on all ranks. On a GPU, where looking would wait for the device, losses are NaN
// then. DeviceError for operands on other devices than comm.device().
Variable vocab_parallel_linear_cross_entropy(const VariableOperand& h, const VariableOperand& W,
                                             const VariableOperand& t, Communicator& comm,
                                             const LinearCrossEntropyOptions& options = {});
Variable vocab_parallel_linear_cross_entropy(const VariableOperand& h, const VariableOperand& W,
                                             const VariableOperand& b, const VariableOperand& t,
                                             Communicator& comm,
                                             const LinearCrossEntropyOptions& options = {});

}  // namespace catena::functions
