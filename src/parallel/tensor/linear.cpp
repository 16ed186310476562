#include "catena/parallel/tensor/linear.h"

#include "catena/functions/array/cast.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/math/elementwise.h"
#include "catena/parallel/tensor/functions.h"
#include "catena/parallel/tensor/placement.h"
#include "start_values.h"

namespace catena::parallel {

namespace F = functions;

namespace {

constexpr const char *kColumn = "ColumnParallelLinear", *kRow = "RowParallelLinear";

// The layer whose slices the ranks take, alike on all of them.
F::Linear whole_layer(const char* who, int64_t in, int64_t out, Communicator& comm,
                      const F::LinearOptions& options) {
  F::Linear whole(in, out, options);
  check_equal_start(who, whole.W.data(), comm);
  return whole;
}

void check_has_weights(const char* who, const OwnedParameter& W) {
  CATENA_CHECK(ValueError, W.defined(), who, ": this layer has no weights; it was moved from");
}

// (n, ...) as (n, in), where the layer flattens.
Variable flattened(const Variable& x, bool flatten) {
  if (!flatten || x.ndim() <= 2) return x;
  int64_t size = 1;
  for (size_t i = 1; i < x.shape().size(); ++i) size *= x.shape()[i];
  return F::reshape(x, {x.shape()[0], size});
}

}  // namespace

ColumnParallelLinear::ColumnParallelLinear(int64_t in_size, int64_t out_size, Communicator& comm,
                                           const F::LinearOptions& options,
                                           const ColumnSplit& split)
    : comm_(kept_communicator(kColumn, comm)), split_(split), flatten_(options.flatten) {
  check_pieces(kColumn, "out_size", out_size, comm);
  const F::Linear whole = whole_layer(kColumn, in_size, out_size, comm, options);
  W = part_of_whole(whole.W.data(), comm, 0);
  if (whole.b.defined()) b = part_of_whole(whole.b.data(), comm, 0);
}

Variable ColumnParallelLinear::operator()(const VariableOperand& operand) const {
  check_has_weights(kColumn, W);
  const Variable given = flattened(operand.variable(kColumn), flatten_);
  const Variable x = split_.sequence_parallel ? F::gather_to_ranks(given, *comm_, 0)
                                              : F::copy_to_ranks(given, *comm_);
  const Variable y = b.defined() ? F::linear(x, W, b) : F::linear(x, W);
  return split_.gather_output ? F::concat_of_ranks(y, *comm_, y.ndim() - 1) : y;
}

void ColumnParallelLinear::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  visitor(prefix + "W", W);
  if (b.defined()) visitor(prefix + "b", b);
}

RowParallelLinear::RowParallelLinear(int64_t in_size, int64_t out_size, Communicator& comm,
                                     const F::LinearOptions& options, const RowSplit& split)
    : comm_(kept_communicator(kRow, comm)), split_(split), flatten_(options.flatten) {
  check_pieces(kRow, "in_size", in_size, comm);
  F::Linear whole = whole_layer(kRow, in_size, out_size, comm, options);
  W = part_of_whole(whole.W.data(), comm, 1);
  b = std::move(whole.b);
  if (b.defined()) check_equal_start(kRow, b.data(), comm);
}

Variable RowParallelLinear::operator()(const VariableOperand& operand) const {
  check_has_weights(kRow, W);
  const Variable given = flattened(operand.variable(kRow), flatten_);
  const Variable x =
      split_.input_is_parallel ? given : F::slice_to_rank(given, *comm_, given.ndim() - 1);
  const Variable part = F::linear(x, W);
  const Variable y = split_.sequence_parallel ? F::scatter_sum_of_ranks(part, *comm_, 0)
                                              : F::sum_of_ranks(part, *comm_);
  if (!b.defined()) return y;
  // In sequence-parallel form each rank adds b to rows of its own.
  const Variable bias = split_.sequence_parallel ? F::copy_to_ranks(b, *comm_) : b.variable();
  return y + F::cast(bias, y.dtype());
}

void RowParallelLinear::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  visitor(prefix + "W", W);
  if (b.defined()) visitor(prefix + "b", b);
}

}  // namespace catena::parallel
