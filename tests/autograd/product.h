// y = a * b on hand-made nodes: what the tests of the backward pass record.
#pragma once

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/autograd/function_call.h"

namespace catena::testing {

// Saves both inputs; its backward can be recorded.
struct Product : FunctionNode {
  std::string label() const override { return "Product"; }
  void backward(BackwardContext& c) override {
    const Variable g = c.grad_output();
    for (int i : {0, 1}) {
      if (c.needs(i)) c.set_grad(i, product(g, c.input(1 - i)));
    }
  }
  static Variable product(const Variable& a, const Variable& b) {
    FunctionCall call("Product", Autocast::kNone, a, b);
    return call.record(multiply(a.data(), b.data()), [&] {
      auto node = make_node<Product>();
      node->save_input(0, a);
      node->save_input(1, b);
      return node;
    });
  }
};

inline Variable mul(const Variable& a, const Variable& b) { return Product::product(a, b); }
inline Array number(double v) { return scalar_array(v); }
inline double value(const Array& a) { return a.item<double>(); }

}  // namespace catena::testing
