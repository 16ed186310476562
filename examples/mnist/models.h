// The networks of the MNIST programs.
#pragma once

#include "catena/functions/functions.h"

namespace mnist {

namespace F = catena::functions;
using catena::Variable;

// 784-1000-1000-10 with relu.
struct Mlp : catena::FunctionSet {
  F::Linear l1{784, 1000}, l2{1000, 1000}, l3{1000, 10};
  CATENA_FUNCTIONS(l1, l2, l3)
  Variable operator()(const Variable& x) { return l3(F::relu(l2(F::relu(l1(x))))); }
};

// One half of the model-parallel network.
struct SixLayers : catena::FunctionSet {
  F::Linear l1{784, 1000}, l2{1000, 1000}, l3{1000, 2000}, l4{2000, 1000}, l5{1000, 1000},
      l6{1000, 10};
  CATENA_FUNCTIONS(l1, l2, l3, l4, l5, l6)
};

// Two halves on two devices that add up their third layers and their outputs: activations cross
// between the devices in both directions, and so do their gradients.
struct ParallelMlp : catena::FunctionSet {
  SixLayers first, second;
  CATENA_FUNCTIONS(first, second)

  void place(catena::Device a, catena::Device b) {
    first.to(a);
    second.to(b);
  }
  Variable operator()(const Variable& x) {
    const catena::Device a = first.device(), b = second.device();
    const Variable x1 = F::copy(x, b);
    const Variable h2_0 = F::relu(first.l2(F::relu(first.l1(x))));
    const Variable h2_1 = F::relu(second.l2(F::relu(second.l1(x1))));
    const Variable h3_0 = F::relu(first.l3(h2_0)) + F::copy(F::relu(second.l3(h2_1)), a);
    const Variable h3_1 = F::copy(h3_0, b);
    const Variable h6_0 = first.l6(F::relu(first.l5(F::relu(first.l4(h3_0)))));
    const Variable h6_1 = second.l6(F::relu(second.l5(F::relu(second.l4(h3_1)))));
    return h6_0 + F::copy(h6_1, a);
  }
};

}  // namespace mnist
