// The collectives of catena/parallel/functions.h.
#include <vector>

#include "catena/autograd/grad_mode.h"
#include "catena/comm/internals.h"
#include "catena/functions/math.h"
#include "record.h"

namespace catena::functions {

using comm::Reduction;
using parallel::Exchange;
using Kind = Exchange::Kind;

namespace {

void check_root(const Communicator& comm, const char* who, int root) {
  CATENA_CHECK(ValueError, root >= 0 && root < comm.size(), who, ": root ", root,
               " is not a rank of this communicator, expected 0 to ", comm.size() - 1);
}

void check_defined(const char* who, const Variable& x) {
  CATENA_CHECK(ValueError, x.defined(), who, ": got an undefined variable");
}

// The array that the root has, or a piece of it, as this rank is told.
void check_type(const char* who, const ArrayType& given, const ArrayType& told) {
  CATENA_CHECK(ShapeError, given.shape == told.shape, who, ": the root's array has shape ",
               given.shape, ", but the type that was given ", told.shape);
  CATENA_CHECK(DtypeError, given.dtype == told.dtype, who, ": the root's array is ", given.dtype,
               ", but the type that was given ", told.dtype);
}

ArrayType piece_type(const char* who, const Array& x, int ranks) {
  CATENA_CHECK(ShapeError, x.ndim() > 0 && x.shape()[0] % ranks == 0, who,
               ": the first axis of shape ", x.shape(), " cannot be divided among ", ranks,
               " ranks; pad it to a multiple");
  ArrayType piece = parallel::type_of(x);
  piece.shape[0] /= ranks;
  return piece;
}

// What the root says to all ranks of its x, or of a piece of it: its `type`.
parallel::TypeHeader told_by_root(Kind kind, Communicator& comm, const char* who, const Variable& x,
                                  const std::optional<ArrayType>& type, int root) {
  parallel::check_outside_group(comm, who);
  std::vector<int64_t> words;
  if (type) words = parallel::pack_header({*type, parallel::is_recorded(x, type->dtype)});
  const comm::PurposeScope purpose(&comm, parallel::header_of(kind));
  const auto header = parallel::unpack_header(comm.broadcast_object(words, root), who);
  CATENA_CHECK(GradientError, !header.recorded || is_recording(), who,
               ": the root records the call and will wait for gradients, but nothing is recorded "
               "here; open NoBackprop on all ranks or on none");
  return header;
}

// From the root's x to an array on all ranks, of the type that type_of(x) says on the root. `known`
// is that type where all ranks know it.
template <class TypeOf>
Variable from_root(Kind kind, Communicator& comm, const char* who, const Variable& x,
                   const ArrayType* known, int root, TypeOf type_of) {
  check_root(comm, who, root);
  const bool is_root = comm.rank() == root;
  const Variable given = is_root ? x : Variable();
  std::optional<ArrayType> type;
  if (is_root) {
    check_defined(who, x);
    type = type_of(x.data());
    if (known) check_type(who, *type, *known);
  }
  const parallel::TypeHeader out =
      known ? parallel::TypeHeader{*known, parallel::is_recorded(given, known->dtype)}
            : told_by_root(kind, comm, who, x, type, root);
  Exchange how{.kind = kind, .peer = root, .out = out.type};
  if (is_root) how.in = parallel::type_of(given.data());
  return exchange(comm, how, given, out.recorded).y;
}

Variable broadcast_of(const Variable& x, Communicator& comm, const ArrayType* type, int root) {
  return from_root(Kind::kBroadcast, comm, "broadcast", x, type, root, parallel::type_of);
}

Variable scatter_of(const Variable& x, Communicator& comm, const ArrayType* piece, int root) {
  return from_root(Kind::kScatter, comm, "scatter", x, piece, root,
                   [&](const Array& whole) { return piece_type("scatter", whole, comm.size()); });
}

// Of calls to which all ranks bring x.
Variable from_all(Kind kind, Communicator& comm, const Variable& x, int root = -1,
                  Reduction op = Reduction::kSum) {
  const Exchange how{.kind = kind, .peer = root, .op = op, .in = parallel::type_of(x.data())};
  return exchange(comm, how, x, parallel::is_recorded(x, x.dtype())).result();
}

void check_reduction(const char* who, Dtype dtype, const comm::Reduce& op) {
  if (op.kind == Reduction::kSum) return;
  CATENA_CHECK(ValueError, op.kind == Reduction::kMean || op.kind == Reduction::kWeighted, who,
               ": ", op.kind,
               " has no gradient here, expected sum, mean or weighted; reduce the arrays with the "
               "communicator");
  CATENA_CHECK(DtypeError, is_float(dtype), who, ": ", op.kind, " needs a floating dtype, got ",
               dtype, "; reduce the sum and divide, or convert with F::cast");
}

}  // namespace

Variable broadcast(const Variable& x, Communicator& comm, int root) {
  return broadcast_of(x, comm, nullptr, root);
}

Variable broadcast(const Variable& x, Communicator& comm, const ArrayType& type, int root) {
  return broadcast_of(x, comm, &type, root);
}

Variable scatter(const Variable& x, Communicator& comm, int root) {
  return scatter_of(x, comm, nullptr, root);
}

Variable scatter(const Variable& x, Communicator& comm, const ArrayType& piece, int root) {
  return scatter_of(x, comm, &piece, root);
}

Variable gather(const Variable& x, Communicator& comm, int root) {
  check_root(comm, "gather", root);
  check_defined("gather", x);
  return from_all(Kind::kGather, comm, x, root);
}

Variable reduce(const Variable& x, Communicator& comm, int root) {
  check_root(comm, "reduce", root);
  check_defined("reduce", x);
  return from_all(Kind::kReduce, comm, x, root);
}

Variable all_gather(const Variable& x, Communicator& comm) {
  check_defined("all_gather", x);
  return from_all(Kind::kAllGather, comm, x);
}

Variable reduce_scatter(const Variable& x, Communicator& comm, const comm::Reduce& op) {
  check_defined("reduce_scatter", x);
  check_reduction("reduce_scatter", x.dtype(), op);
  if (op.kind == Reduction::kWeighted) return from_all(Kind::kReduceScatter, comm, x * op.weight);
  const Variable sum = from_all(Kind::kReduceScatter, comm, x);
  return op.kind == Reduction::kMean ? sum / double(comm.size()) : sum;
}

Variable all_to_all(const Variable& x, Communicator& comm) {
  check_defined("all_to_all", x);
  return from_all(Kind::kAllToAll, comm, x);
}

Variable all_reduce(const Variable& x, Communicator& comm, const comm::Reduce& op) {
  check_defined("all_reduce", x);
  check_reduction("all_reduce", x.dtype(), op);
  if (op.kind == Reduction::kWeighted) return from_all(Kind::kAllReduce, comm, x * op.weight);
  return from_all(Kind::kAllReduce, comm, x, -1, op.kind);
}

}  // namespace catena::functions
