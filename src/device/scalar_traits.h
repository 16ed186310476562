// Properties of types that the scalar functors need. See scalar_ops.h.
#pragma once

namespace catena {
namespace ops {

template <class T>
struct IsFloat {
  static constexpr bool value = false;
};
template <>
struct IsFloat<float> {
  static constexpr bool value = true;
};
template <>
struct IsFloat<double> {
  static constexpr bool value = true;
};
template <class T>
struct IsBool {
  static constexpr bool value = false;
};
template <>
struct IsBool<bool> {
  static constexpr bool value = true;
};
template <class T>
struct IsSigned {
  static constexpr bool value = T(-1) < T(0);
};
template <>
struct IsSigned<bool> {
  static constexpr bool value = false;
};

}  // namespace ops
}  // namespace catena
