// Plans of convolutions.
#pragma once

#include <memory>

#include "backends/cudnn/plan.h"
#include "backends/cudnn/problem.h"

namespace catena::cudnn {

// The addresses of a call.
struct Pointers {
  void* x;
  void* w;
  void* b;  // null unless the problem has a bias
  void* y;
};

// The pointers as tensors of the graph.
class ConvolutionBindings {
 public:
  explicit ConvolutionBindings(const Pointers& pointers);
  operator std::span<const Binding>() const { return {bindings_, count_}; }

 private:
  Binding bindings_[4];
  size_t count_;
};

// The plan of the problem, made at its first use (Plans, stored_plan). Of a tuned problem the
// fastest of several plans is taken (measure.h), unless the thread captures a graph. The GPU is the
// thread's current device.
std::shared_ptr<const Plan> plan_of(const Problem& problem, Handle& handle);

}  // namespace catena::cudnn
