// Vectors of ids, whose table is spread over ranks.
#pragma once

#include "catena/comm/communicator.h"
#include "catena/functions/connection/embed_id.h"

namespace catena::parallel {

// What a VocabParallelEmbedID gives.
struct VocabSplit {
  // Whether the result is the rank's slice along the first axis, and not whole. size() must divide
  // the first axis of the ids (ShapeError).
  bool sequence_parallel = false;
};

// EmbedID where each rank has the vectors of ids / size neighbouring ids: rank r has those of
// [r * ids / size, (r + 1) * ids / size). Ids, whole, are looked up where they are; one exchange of
// the result joins the vectors, and none is needed in backward.
//
// Ranks begin with slices of the table that is not split, F::EmbedID(in_size, out_size, options),
// if their generators are alike; all draw the whole table. The constructor is collective:
// ValueError on all ranks if their values differ. ValueError for an in_size that size() does not
// divide. The other errors, ignored ids and what happens to ids outside [0, in_size) are as for
// EmbedID. Copies share the communicator, which they keep alive.
class VocabParallelEmbedID : public Parameterized {
 public:
  VocabParallelEmbedID(int64_t in_size, int64_t out_size, Communicator& comm,
                       const functions::EmbedIDOptions& options = {}, const VocabSplit& split = {});

  // The vectors of ids, of shape x.shape + (out_size,); all ranks call it. DtypeError unless x has
  // integers.
  Variable operator()(const VariableOperand& x) const;
  // The number of ids of all ranks together, the size of a vector, and the id that has none.
  int64_t in_size() const { return W.shape()[0] * comm_->size(); }
  int64_t out_size() const { return W.shape()[1]; }
  std::optional<int64_t> ignore_label() const { return ignore_label_; }
  // The ranks that have the slices.
  Communicator& comm() const { return *comm_; }

  OwnedParameter W;  // (in / size, out)
  CATENA_PARAMETERS(W)

 private:
  CommunicatorPtr comm_;
  std::optional<int64_t> ignore_label_;
  VocabSplit split_;
};

}  // namespace catena::parallel
