// Numerical gradients, and checks of functions against them, for the library's and users' tests.
#pragma once

#include <functional>
#include <vector>

#include "catena/autograd/variable.h"

namespace catena {

// d sum(f() * grad_outputs) / d inputs by central differences: (f(x + eps) - f(x - eps)) / 2 eps
// for each element of each input, which is changed in place and restored. f() reads the inputs and
// returns its outputs; entries of grad_outputs may be null. All inputs and gradients are on CPU
// devices, or all on GPUs: DeviceError.
Arrays numerical_grad(const std::function<Arrays()>& f, const Arrays& inputs,
                      const Arrays& grad_outputs, double eps = 1e-3);

// Throws ValueError with the largest difference and its position unless |x - y| <= atol + rtol |y|
// everywhere; NaN equals NaN. Arrays may be on different devices; shapes must agree.
void assert_allclose(const Array& x, const Array& y, double atol = 1e-5, double rtol = 1e-4);

// Step of the numerical gradient, and absolute and relative tolerance.
struct CheckOptions {
  double eps = 1e-3;
  double atol = 1e-5;
  double rtol = 1e-4;
};

// Compares the gradients that backward gives for sum(f(inputs) * gy), with random gy, with
// numerical ones. Inputs should be float64. Throws ValueError on a difference.
using VariableFunction = std::function<Variables(const Variables&)>;
void check_backward(const VariableFunction& f, const Arrays& inputs,
                    const CheckOptions& options = {});
// The same for the gradients of the gradients.
void check_double_backward(const VariableFunction& f, const Arrays& inputs,
                           const CheckOptions& options = {});

}  // namespace catena
