#include "catena/parallel/tensor/embed_id.h"

#include "catena/array/indexing.h"
#include "catena/parallel/tensor/functions.h"
#include "catena/parallel/tensor/placement.h"
#include "own_numbers.h"
#include "start_values.h"

namespace catena::parallel {

namespace F = functions;

namespace {

constexpr const char* kEmbedding = "VocabParallelEmbedID";
constexpr int64_t kElsewhere = -1;

// Rows of this rank's table; kElsewhere for ids of other ranks and ignored ones, and no row for
// those that nobody has, so that they become NaN on GPUs. On CPUs these are a ValueError.
Array rows_of(const Array& ids, int64_t rows, const Communicator& comm,
              std::optional<int64_t> ignored) {
  CATENA_CHECK(DtypeError, is_int(ids.dtype()), kEmbedding, ": expected ids, integers, got ",
               ids.dtype(), "; convert them with .astype(dtype::int32)");
  if (ids.device().is_cpu()) F::check_ids(ids, rows * comm.size(), ignored);
  const OwnNumbers numbers(ids, rows, comm, ignored);
  const Array local = where(numbers.own, numbers.local, kElsewhere);
  return ids.device().is_cpu() ? local : where(numbers.known, local, rows);
}

}  // namespace

VocabParallelEmbedID::VocabParallelEmbedID(int64_t in_size, int64_t out_size, Communicator& comm,
                                           const F::EmbedIDOptions& options,
                                           const VocabSplit& split)
    : comm_(kept_communicator(kEmbedding, comm)),
      ignore_label_(options.ignore_label),
      split_(split) {
  check_pieces(kEmbedding, "in_size", in_size, comm);
  const F::EmbedID whole(in_size, out_size, options);
  check_equal_start(kEmbedding, whole.W.data(), comm);
  W = part_of_whole(whole.W.data(), comm, 0);
}

Variable VocabParallelEmbedID::operator()(const VariableOperand& x) const {
  CATENA_CHECK(ValueError, W.defined(), kEmbedding, ": this layer has no table; it was moved from");
  const Array rows = rows_of(x.variable(kEmbedding).data(), W.shape()[0], *comm_, ignore_label_);
  const Variable part = F::embed_id(rows, W, kElsewhere);
  return split_.sequence_parallel ? F::scatter_sum_of_ranks(part, *comm_, 0)
                                  : F::sum_of_ranks(part, *comm_);
}

}  // namespace catena::parallel
