// Scalar functors for 16-bit floats on GPUs, where the form for float32 is a long function that
// takes more time than reading and writing such elements. They compute in float, with an error far
// below the rounding of the result. Functor Name16 stands for Name of scalar_ops.h (functor_of in
// src/backends/cuda/jit/compile/source.h). The includer also defines fmaf.
#pragma once

namespace catena {
namespace ops {

// The normal distribution function at -a for a >= 0, as exp2 of a polynomial: its relative error is
// below 1e-4. The result is 0 from 15 on, as it is in float.
struct NormalTail16 {
  static CATENA_FN float apply(float a) {
    const float b = a < 15.0f ? a : 15.0f;
    float p = -1.2562215e-09f;
    p = fmaf(p, b, 1.0074379e-07f);
    p = fmaf(p, b, -3.526355e-06f);
    p = fmaf(p, b, 7.115667e-05f);
    p = fmaf(p, b, -0.00092433766f);
    p = fmaf(p, b, 0.008229721f);
    p = fmaf(p, b, -0.052848868f);
    p = fmaf(p, b, -0.46019366f);
    p = fmaf(p, b, -1.1502988f);
    return m::exp2(fmaf(p, b, -1.0000832f));
  }
};
struct Gelu16 {
  static CATENA_FN float apply(float x) {
    const float tail = NormalTail16::apply(m::fabs(x));
    return x * (x < 0.0f ? tail : 1.0f - tail);
  }
};
struct GeluGrad16 {
  static CATENA_FN float apply(float gy, float x) {
    const float tail = NormalTail16::apply(m::fabs(x));
    const float density = 0.39894228f * m::exp2(-0.72134752f * x * x);
    return gy * fmaf(x, density, x < 0.0f ? tail : 1.0f - tail);
  }
};

}  // namespace ops
}  // namespace catena
