// The programs that can be compiled ahead of time.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/jit/compile/source.h"

namespace catena::jit {

struct BundleItem {
  std::string what, source;
};

// The programs that ordinary training requests, see core_programs.cpp. Every build compiles these.
std::vector<BundleItem> core_programs();
// All standard programs, including the core: every operation of the table in every dtype in which
// it computes, the usual casts, copies and fills, reductions, arange and concatenate.
std::vector<BundleItem> full_programs();

// Single programs, named for messages.
BundleItem map_item(ElementwiseOp op, Dtype compute);
BundleItem mixed_item(const MapSpec& spec);
BundleItem cast_item(Dtype from, Dtype to);
BundleItem reduce_item(ReduceOp op, Dtype from, Dtype to);
BundleItem arg_reduce_item(Dtype d);
BundleItem arange_item(Dtype d);
BundleItem concatenate_item(int word_bytes);

}  // namespace catena::jit
