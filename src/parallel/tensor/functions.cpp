// The exchanges of tensor-parallel models: pairs of linear maps over ranks.
#include "catena/parallel/tensor/functions.h"

#include <memory>

#include "catena/array/manipulation.h"
#include "catena/autograd/linear_map.h"
#include "catena/comm/internals.h"

namespace catena::functions {
namespace {

enum class Move : uint8_t { kCopy, kSum, kSlice, kConcat, kGather, kScatterSum };

struct MoveNames {
  const char *name, *backward;
};

constexpr MoveNames names_of(Move move) {
  constexpr MoveNames kNames[] = {
      {"copy_to_ranks", "backward of F::copy_to_ranks"},
      {"sum_of_ranks", "backward of F::sum_of_ranks"},
      {"slice_to_rank", "backward of F::slice_to_rank"},
      {"concat_of_ranks", "backward of F::concat_of_ranks"},
      {"gather_to_ranks", "backward of F::gather_to_ranks"},
      {"scatter_sum_of_ranks", "backward of F::scatter_sum_of_ranks"},
  };
  return kNames[static_cast<size_t>(move)];
}

// The axis in front, as the communicator cuts and joins.
Array in_front(const Array& x, int axis) { return axis == 0 ? x : moveaxis(x, {axis}, {0}); }
Array at_its_place(const Array& x, int axis) {
  return axis == 0 ? x : moveaxis(x, {0}, {axis}).contiguous();
}

Array own_slice(const Communicator& comm, const Array& x, int axis) {
  const Array front = in_front(x, axis);
  const int64_t extent = front.shape()[0] / comm.size(), begin = extent * comm.rank();
  const Array slice = front(Slice(begin, begin + extent));
  return axis == 0 ? slice : moveaxis(slice, {0}, {axis});
}

Array make(Move move, Communicator& comm, const Array& x, int axis) {
  switch (move) {
    case Move::kCopy: return x;
    case Move::kSum: return comm.all_reduce(x);
    case Move::kSlice: return own_slice(comm, x, axis);
    case Move::kConcat:
    case Move::kGather: return at_its_place(comm.all_gather(in_front(x, axis)), axis);
    case Move::kScatterSum: return at_its_place(comm.reduce_scatter(in_front(x, axis)), axis);
  }
  return {};
}

// A move and its adjoint, which is the gradient. No tape as those of parallel/functions.h have: all
// ranks run the same program, so that passes come to the calls in one order, whichever of several
// graphs they go through (micro-batches of a pipeline).
template <Move kForward, Move kAdjoint>
struct RankMap {
  static constexpr const char* kName = names_of(kForward).name;

  Array forward(const Array& x) const { return run(kForward, x, kName); }
  Array adjoint(const Array& gy) const { return run(kAdjoint, gy, names_of(kForward).backward); }

  std::weak_ptr<Communicator> comm;
  int axis;

 private:
  Array run(Move move, const Array& x, const char* purpose) const {
    const CommunicatorPtr alive = comm::alive_in_backward(comm, [] { return kName; });
    const comm::PurposeScope scope(alive.get(), purpose);
    return make(move, *alive, x, axis);
  }
};

constexpr bool is_cut(Move move) { return move == Move::kSlice || move == Move::kScatterSum; }

void check_whole(const FunctionCall& call, const Communicator& comm, int axis) {
  const Shape& shape = call[0].shape();
  CATENA_CHECK(ShapeError, shape[size_t(axis)] % comm.size() == 0, call.name(), ": axis ", axis,
               " of shape ", shape, " cannot be divided among ", comm.size(),
               " ranks; pad it to a multiple");
}

// `axis` is null where none is cut.
template <Move kForward, Move kAdjoint>
Variable exchange_by(const VariableOperand& operand, Communicator& comm, const Axis* axis) {
  constexpr const char* kName = names_of(kForward).name;
  const Variable& x = operand.variable(kName);
  const int a = axis ? normalize_axis(kName, *axis, x.ndim()) : 0;
  FunctionCall call(kName, Autocast::kNone, x);
  CATENA_CHECK(DeviceError, x.device() == comm.device(), kName, ": x is on ", x.device(),
               ", this rank's communicator on ", comm.device(), "; move it with F::copy");
  if (is_cut(kForward)) check_whole(call, comm, a);
  return linear_map(call, RankMap<kForward, kAdjoint>{comm.weak_from_this(), a});
}

}  // namespace

Variable copy_to_ranks(const VariableOperand& x, Communicator& comm) {
  if (comm.size() == 1) return x.variable("copy_to_ranks");
  return exchange_by<Move::kCopy, Move::kSum>(x, comm, nullptr);
}

Variable sum_of_ranks(const VariableOperand& x, Communicator& comm) {
  if (comm.size() == 1) return x.variable("sum_of_ranks");
  return exchange_by<Move::kSum, Move::kCopy>(x, comm, nullptr);
}

Variable slice_to_rank(const VariableOperand& x, Communicator& comm, Axis axis) {
  return exchange_by<Move::kSlice, Move::kConcat>(x, comm, &axis);
}

Variable concat_of_ranks(const VariableOperand& x, Communicator& comm, Axis axis) {
  return exchange_by<Move::kConcat, Move::kSlice>(x, comm, &axis);
}

Variable gather_to_ranks(const VariableOperand& x, Communicator& comm, Axis axis) {
  return exchange_by<Move::kGather, Move::kScatterSum>(x, comm, &axis);
}

Variable scatter_sum_of_ranks(const VariableOperand& x, Communicator& comm, Axis axis) {
  return exchange_by<Move::kScatterSum, Move::kGather>(x, comm, &axis);
}

}  // namespace catena::functions
