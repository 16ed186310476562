// Launches element-wise programs over operands of any layout, by the flat, rows, tiled or strided
// kernel.
#pragma once

#include <cstdint>

#include "array/iteration.h"
#include "backends/cuda/jit/program.h"
#include "catena/array/array.h"

namespace catena::jit {

enum MapKernel : int { kFlatKernel, kRowsKernel, kStridedKernel, kTiledKernel };

inline constexpr int kMaxMapOperands = kMaxLoopOperands;

// The first operands are the outputs. An operand is an array, or a number when `array` is null.
struct MapOperand {
  const Array* array = nullptr;
  uint64_t bits = 0;  // of a number, in the operand's storage type
  int itemsize = 0;   // of the operand's storage type

  static MapOperand of(const Array& array) {
    return {&array, 0, static_cast<int>(array.itemsize())};
  }
};

struct MapLaunch {
  Program* program;
  int operands;
  MapOperand operand[kMaxMapOperands];
  int outputs = 1;  // contiguous if there are several
};

// All arrays have the output's shape, which is not empty; the stride is 0 where they are broadcast.
void launch_map(const MapLaunch& call);

// How a plan is executed; declared here for tests.
struct MapLayout {
  MapKernel kernel;
  int staged_dim = -1;  // tiled: the dimension of the plan along which staged inputs are contiguous
  uint32_t staged = 0;
};
// `is_array` has bit k for operands in memory.
MapLayout choose_layout(const LoopPlan& plan, const int* itemsize, uint32_t is_array);

}  // namespace catena::jit
