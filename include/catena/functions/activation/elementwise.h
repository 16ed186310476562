// Activation functions that work element by element, and crelu, which is made of one. relu,
// sigmoid, tanh and softplus without a sharpness are rows of the element-wise table (math.h).
#pragma once

#include "catena/functions/math/elementwise.h"

namespace catena::functions {

// min(max(x, 0), z) element by element, as in A. Hannun et al., Deep Speech, 2014. x: floats;
// integers are promoted to a float. The gradient passes where 0 < x < z, not on the bounds. NaN
// stays. A z that is not above 0 is a ValueError. One kernel each way.
Variable clipped_relu(const VariableOperand& x, double z = 20);
// clipped_relu with z = 6.
inline Variable relu6(const VariableOperand& x) { return clipped_relu(x, 6); }

// Element by element x where x >= 0, else alpha (e^x - 1) (D. Clevert, T. Unterthiner and
// S. Hochreiter, Fast and Accurate Deep Network Learning by Exponential Linear Units, 2015). x:
// floats; integers are promoted to a float. alpha is a constant, usually a number: a variable that
// requires a gradient is a GradientError. The gradient at 0 is that of positive numbers.
Variable elu(const VariableOperand& x, const VariableOperand& alpha = 1.0);

// x Phi(x) element by element, where Phi is the normal distribution function, by erfc, so that
// small results keep their digits (D. Hendrycks and K. Gimpel, Gaussian Error Linear Units, 2016).
// x: floats; integers are promoted to a float.
Variable gelu(const VariableOperand& x);
// The approximation 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) of the same paper, which is
// cheaper: one exponential.
Variable gelu_tanh(const VariableOperand& x);

// 0 where -bound <= x <= bound, else x, element by element: PyTorch's hardshrink, whose lambd is
// the bound. x: floats; integers are promoted to a float. The gradient passes outside of the
// bounds, not on them. NaN stays. A bound below 0 is a ValueError. One kernel each way.
Variable hard_shrink(const VariableOperand& x, double bound = 0.5);

// min(max(0.2 x + 0.5, 0), 1) element by element. x: floats; integers are promoted to a float. The
// gradient is 0.2 gy where -2.5 < x < 2.5. NaN stays. The slope is Chainer's; that of PyTorch's
// hardsigmoid is 1/6.
Variable hard_sigmoid(const VariableOperand& x);

// x min(max(x + 3, 0), 6) / 6 element by element (A. Howard et al., Searching for MobileNetV3,
// 2019). x: floats; integers are promoted to a float. The gradient is 0 from -3 down and gy from 3
// up. NaN stays.
Variable hard_swish(const VariableOperand& x);

// min(max(x, -1), 1) element by element. x: floats; integers are promoted to a float. The gradient
// passes where -1 < x < 1; F::clip, which has other bounds, passes it on them as well. NaN stays.
Variable hard_tanh(const VariableOperand& x);

// Element by element x where x >= 0, else slope * x (A. Maas, A. Hannun and A. Ng, Rectifier
// Nonlinearities Improve Neural Network Acoustic Models, 2013). x and slope: floats, broadcast
// against each other; integers are promoted to a float. The slope is usually a number; a variable
// gets its gradient, x * gy where x < 0. The gradient at 0 is that of positive numbers; NaN stays.
Variable leaky_relu(const VariableOperand& x, const VariableOperand& slope = 0.2);

// log(sigmoid(x)) = -softplus(-x) element by element, without overflow. x: floats; integers are
// promoted to a float.
Variable log_sigmoid(const VariableOperand& x);

// x tanh(log(1 + e^x)) element by element (D. Misra, Mish: A Self Regularized Non-Monotonic Neural
// Activation Function, 2019), computed with one exponential. x: floats; integers are promoted to a
// float.
Variable mish(const VariableOperand& x);

// 1.0507009873554805 elu(x, 1.6732632423543772), one kernel each way (G. Klambauer et al.,
// Self-Normalizing Neural Networks, 2017). x: floats; integers are promoted to a float.
Variable selu(const VariableOperand& x);

// x sigmoid(x) element by element (S. Elfwing, E. Uchibe and K. Doya, Sigmoid-Weighted Linear
// Units, 2017). x: floats; integers are promoted to a float.
Variable silu(const VariableOperand& x);
// The same (P. Ramachandran, B. Zoph and Q. Le, Searching for Activation Functions, 2017).
inline Variable swish(const VariableOperand& x) { return silu(x); }

// x - bound where x > bound, x + bound where x < -bound, else 0, element by element: PyTorch's
// softshrink, whose lambd is the bound, and the proximal map of bound |x|. x: floats; integers are
// promoted to a float. The gradient passes outside of the bounds, not on them. NaN stays. A bound
// below 0 is a ValueError. One kernel each way.
Variable soft_shrink(const VariableOperand& x, double bound = 0.5);

// x / (1 + |x|) element by element. x: floats; integers are promoted to a float.
Variable softsign(const VariableOperand& x);

// log(1 + exp(beta x)) / beta, element by element; without beta: that row. beta 0 is a
// ValueError.
Variable softplus(const VariableOperand& x, double beta);

// relu(x) and relu(-x), concatenated along an axis, which becomes twice as long (W. Shang et al.,
// Understanding and Improving Convolutional Neural Networks via Concatenated Rectified Linear
// Units, 2016). x: floats, else InvalidType. IndexError for an axis out of range.
Variable crelu(const VariableOperand& x, Axis axis = 1);

}  // namespace catena::functions
