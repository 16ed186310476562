// In which type kernels compute and sum floating-point numbers. Includes nothing; for g++ and nvcc.
#pragma once

namespace catena {

// Of storage type T: double for double, float for float and the 16-bit types.
template <class T>
struct FloatCompute {
  using type = float;
};
template <>
struct FloatCompute<double> {
  using type = double;
};

}  // namespace catena
