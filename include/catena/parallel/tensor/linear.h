// Fully connected layers whose weights are spread over ranks (M. Shoeybi et al., Megatron-LM:
// Training Multi-Billion Parameter Language Models Using Model Parallelism, 2019).
//
//   struct Block : FunctionSet {
//     parallel::ColumnParallelLinear up;    // each rank makes a slice of h
//     parallel::RowParallelLinear down;     // and adds its part to y
//     Block(Communicator& comm) : up(512, 2048, comm), down(2048, 512, comm) {}
//     CATENA_FUNCTIONS(up, down)
//     Variable operator()(const Variable& x) { return down(F::gelu(up(x))); }
//   };
//
// One sum over the ranks forward and one backward serve both layers. What is whole, a slice or a
// part is said in tensor/functions.h.
#pragma once

#include "catena/comm/communicator.h"
#include "catena/functions/connection/linear.h"

namespace catena::parallel {

// What a ColumnParallelLinear takes and gives.
struct ColumnSplit {
  // Whether the result is whole, by an exchange, and not the rank's slice (..., out / size).
  bool gather_output = false;
  // Whether x is the rank's slice of the samples or positions, along the first axis, and not whole.
  bool sequence_parallel = false;
};

// y = x W^T + b where each rank has out / size rows of W and b. x, whole, is (..., in) as for
// Linear, or (n, ...) with LinearOptions::flatten; the parts of y are along its last axis.
//
// Ranks begin with slices of the layer that is not split, F::Linear(in_size, out_size, options), if
// their generators are alike; all draw the whole W. The constructor is collective: ValueError on
// all ranks if their values differ. ValueError for an out_size that size() does not divide; the
// other errors are those of Linear. The layer begins on the current device; x must be on
// comm.device(). Copies share the communicator, which they keep alive.
class ColumnParallelLinear : public Parameterized {
 public:
  ColumnParallelLinear(int64_t in_size, int64_t out_size, Communicator& comm,
                       const functions::LinearOptions& options = {}, const ColumnSplit& split = {});

  // Applies the layer; all ranks call it.
  Variable operator()(const VariableOperand& x) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  // Sizes of the input and of the output of all ranks together.
  int64_t in_size() const { return W.shape()[1]; }
  int64_t out_size() const { return W.shape()[0] * comm_->size(); }
  // The ranks that have the slices.
  Communicator& comm() const { return *comm_; }

  OwnedParameter W;  // (out / size, in)
  OwnedParameter b;  // (out / size); undefined with nobias

 private:
  CommunicatorPtr comm_;
  ColumnSplit split_;
  bool flatten_;
};

// What a RowParallelLinear takes and gives.
struct RowSplit {
  // Whether x is the rank's slice (..., in / size), and not whole.
  bool input_is_parallel = true;
  // Whether the result is the rank's slice along the first axis, and not whole. Then the ranks add
  // up the gradient of b.
  bool sequence_parallel = false;
};

// y = x W^T + b where each rank has in / size columns of W and the whole b, which is added once. b
// stays equal on all ranks, as they have the same gradient.
//
// The rest is as for ColumnParallelLinear. ValueError for an in_size that size() does not divide.
class RowParallelLinear : public Parameterized {
 public:
  RowParallelLinear(int64_t in_size, int64_t out_size, Communicator& comm,
                    const functions::LinearOptions& options = {}, const RowSplit& split = {});

  // Applies the layer; all ranks call it.
  Variable operator()(const VariableOperand& x) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  // Sizes of the input of all ranks together and of the output.
  int64_t in_size() const { return W.shape()[1] * comm_->size(); }
  int64_t out_size() const { return W.shape()[0]; }
  // The ranks that have the slices.
  Communicator& comm() const { return *comm_; }

  OwnedParameter W;  // (out, in / size)
  OwnedParameter b;  // (out); undefined with nobias

 private:
  CommunicatorPtr comm_;
  RowSplit split_;
  bool flatten_;
};

}  // namespace catena::parallel
