// Record of a fused function, before dtypes are known.
#pragma once

#include <mutex>
#include <vector>

#include "array/fusion/fused_program.h"
#include "catena/array/fusion.h"
#include "catena/core/fork_mutex.h"

namespace catena::detail {

struct FusionNode {
  enum Kind : uint8_t { kArgument, kNumber, kOp, kCast, kReduction };
  Kind kind = kArgument;
  ElementwiseOp op{};
  int source[3] = {-1, -1, -1};  // of nodes before this one
  int argument = 0;
  Scalar scalar;
  Dtype dtype{};           // kCast
  const char* name = "";   // kReduction
  ReduceOptions options;   // kReduction
  uint32_t arguments = 0;  // bit k: depends on argument k
};

struct FusionGraph {
  std::vector<FusionNode> nodes;
};

// A program for those outputs that run in one kernel.
struct FusionPlan {
  uint64_t types;    // 5 bits for each argument: a dtype, or 16 + a number's default dtype
  uint32_t outputs;  // bit k: output k
  FusedProgram program;
};

// One number of arguments of a fused function.
struct FusionTraceResult {
  std::shared_ptr<FusionGraph> graph;
  std::vector<int> outputs;  // nodes
  std::vector<std::unique_ptr<FusionPlan>> plans;
};

struct FusionState {
  ForkMutex mutex;
  std::array<std::unique_ptr<FusionTraceResult>, kMaxFusedOperands> traces;
  std::array<std::atomic<bool>, kMaxFusedOperands> traced{};
};

// Decides all dtypes. `numbers` has a number for each argument that is one.
void resolve_program(const FusionGraph& graph, std::span<const int> outputs,
                     std::span<const Operand> arguments, FusedProgram& program);

}  // namespace catena::detail
