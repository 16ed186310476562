// The network of train_mnist_model_parallel.
#pragma once

#include "catena/functions/array/copy.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/noise/dropout.h"
#include "options.h"

namespace mnist {

namespace F = catena::functions;
using catena::Variable;

// One half of the model-parallel network, with `n` numbers in its layers and twice as many in the
// third.
struct SixLayers : catena::FunctionSet {
  F::Linear l1, l2, l3, l4, l5, l6;
  CATENA_FUNCTIONS(l1, l2, l3, l4, l5, l6)
  explicit SixLayers(int64_t n)
      : l1(784, n), l2(n, n), l3(n, 2 * n), l4(2 * n, n), l5(n, n), l6(n, 10) {}
};

// Two halves on two devices that add up their third layers and their outputs: activations cross
// between the devices in both directions, and so do their gradients.
struct ParallelMlp : catena::FunctionSet {
  SixLayers first, second;
  F::Dropout dropout;  // behind the relu of the first five layers
  CATENA_FUNCTIONS(first, second, dropout)
  explicit ParallelMlp(const NetworkOptions& o)
      : first(o.units), second(o.units), dropout(o.dropout) {}

  void place(catena::Device a, catena::Device b) {
    first.to(a);
    second.to(b);
  }
  Variable operator()(const Variable& x) {
    const catena::Device a = first.device(), b = second.device();
    const Variable x1 = F::copy(x, b);
    const auto drop = [&](const Variable& h) { return dropout(F::relu(h)); };
    const Variable h2_0 = drop(first.l2(drop(first.l1(x))));
    const Variable h2_1 = drop(second.l2(drop(second.l1(x1))));
    const Variable h3_0 = drop(first.l3(h2_0)) + F::copy(drop(second.l3(h2_1)), a);
    const Variable h3_1 = F::copy(h3_0, b);
    const Variable h6_0 = first.l6(drop(first.l5(drop(first.l4(h3_0)))));
    const Variable h6_1 = second.l6(drop(second.l5(drop(second.l4(h3_1)))));
    return h6_0 + F::copy(h6_1, a);
  }
};

}  // namespace mnist
