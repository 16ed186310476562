// RecomputePlan: what to keep of each block of a model for a budget of bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "catena/array/random_log.h"
#include "catena/functions/recompute.h"

namespace catena::functions {

// A function of one variable with one result, such as a layer. Lambdas convert.
struct RecomputedBlock {
  template <class F>
  requires std::is_invocable_r_v<Variable, F&, const Variable&> RecomputedBlock(F f)
      : function([f = std::move(f)](const Variables& x) mutable { return Variables{f(x[0])}; }) {}
  RecomputedFunction function;
};

// Runs blocks one behind the other, each by recompute, and keeps of each what a budget of bytes
// allows. A member of the model:
//
//   F::RecomputePlan plan{{.budget = size_t(4) << 30}};
//   ...
//   std::vector<F::RecomputedBlock> blocks;
//   for (const Layer& layer : layers)
//     blocks.emplace_back([&layer](const Variable& h) { return layer(h); });
//   h = plan(blocks, h);
//
// The budget is for what the graph keeps of all blocks together between forward and backward, their
// results included, on all devices. It does not cover what goes into the first block, parameters,
// what the rest of the model keeps, and what backward needs while it is in one block: as much as
// the block keeps without recompute, and gradients. Without a budget `keep` is that of all blocks.
//
// The first call that is recorded, one with another number of blocks, and one whose input has more
// bytes than any before measure: each block runs once more, with the random numbers of the run that
// follows and without moving running averages, and what it keeps is measured by the memory that is
// freed with its graph. Then every block keeps nothing, and from the last block to the first, which
// saves the memory that backward begins with, attention's results are kept where they fit, then
// products' results, then everything. ValueError that names the least bytes if not even the results
// of the blocks fit. Results and gradients are those of recompute with the same choices. Inside of
// another recompute a budget keeps everything. Capture a graph after a step that has measured: one
// that measures would do so in each launch. One thread at a time calls a plan. Ranks that exchange
// something inside of blocks need equal budgets and equal shapes. With `offload`, which wants
// `keep` instead of a budget, what blocks keep is on the host until their backward comes.
class RecomputePlan {
 public:
  explicit RecomputePlan(const RecomputeOptions& options) : options_(options) {}
  // The result of the last block. What blocks refer to lives until backward, as for recompute.
  Variable operator()(const std::vector<RecomputedBlock>& blocks, const VariableOperand& x);

  // What is kept of each block; empty before the first call that is recorded.
  const std::vector<Keep>& kept() const { return kept_; }
  // What all blocks keep by these choices, as measured; 0 without a budget.
  size_t bytes() const { return bytes_; }

 private:
  std::vector<RandomLog> settle(const std::vector<RecomputedBlock>& blocks, const Variable& input);

  RecomputeOptions options_;
  std::vector<Keep> kept_;
  size_t bytes_ = 0;
  size_t input_bytes_ = 0;  // of the largest input that was measured
};

}  // namespace catena::functions
