// Scalar functors: comparisons, logic, bits, classification. See scalar_ops.h.
#pragma once

#include "device/scalar_traits.h"

namespace catena {
namespace ops {

struct Equal {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return a != b;
  }
};
struct Less {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return a >= b;
  }
};
struct LogicalAnd {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return (a != T(0)) & (b != T(0));
  }
};
struct LogicalOr {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return (a != T(0)) | (b != T(0));
  }
};
struct LogicalXor {
  template <class T>
  static CATENA_FN bool apply(T a, T b) {
    return (a != T(0)) != (b != T(0));
  }
};
struct LogicalNot {
  template <class T>
  static CATENA_FN bool apply(T a) {
    return a == T(0);
  }
};
struct BitwiseAnd {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return T(a & b);
  }
};
struct BitwiseOr {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return T(a | b);
  }
};
struct BitwiseXor {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return T(a ^ b);
  }
};
struct Invert {
  template <class T>
  static CATENA_FN T apply(T a) {
    if constexpr (IsBool<T>::value)
      return !a;
    else
      return T(~a);
  }
};
// Shifts by the width or more (or by negative counts) give 0, or -1 for negative numbers to the
// right.
struct LeftShift {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return b >= T(0) && b < T(sizeof(T) * 8) ? T(a << b) : T(0);
  }
};
struct RightShift {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    if (b >= T(0) && b < T(sizeof(T) * 8)) return T(a >> b);
    return a < T(0) ? T(-1) : T(0);
  }
};
struct Isnan {
  template <class T>
  static CATENA_FN bool apply(T a) {
    return a != a;
  }
};
struct Isinf {
  template <class T>
  static CATENA_FN bool apply(T a) {
    return a == a && a - a != T(0);
  }
};
struct Isfinite {
  template <class T>
  static CATENA_FN bool apply(T a) {
    return a - a == T(0);
  }
};
struct Signbit {
  template <class T>
  static CATENA_FN bool apply(T a) {
    return m::signbit(a);
  }
};

}  // namespace ops
}  // namespace catena
