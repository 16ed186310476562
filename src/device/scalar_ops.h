// Scalar functors of the element-wise operations, compiled by g++, nvcc and NVRTC alike.
//
// These files include nothing but each other. The includer defines CATENA_FN (function qualifiers)
// and, in namespace m, the elementary functions for float and double: exp exp2 expm1 log log2 log10
// log1p sqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc pow atan2
// hypot fmod floor ceil trunc rint copysign fabs signbit, and divide, which is a / b. 16-bit floats
// never get here: they are converted to float on load and rounded once on store. Contraction (fused
// multiply-add) is off in every compiler, so that + - * / sqrt agree bit for bit on all devices;
// signed integers wrap.
//
// For NVRTC single functors are cut out of the texts of the files that are included here
// (functor_text in src/backends/cuda/jit/compile/source.h). A functor is one struct, in which other
// functors appear only as Name::apply.
#pragma once

#include "device/scalar_activations.h"
#include "device/scalar_arithmetic.h"
#include "device/scalar_functions.h"
#include "device/scalar_gradients.h"
#include "device/scalar_logic.h"
#include "device/scalar_traits.h"
