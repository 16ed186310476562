// Scalar functors: arithmetic, rounding, bounds, selection. See scalar_ops.h.
#pragma once

#include "device/scalar_traits.h"

namespace catena {
namespace ops {

struct Add {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return T(a + b);
  }
};
struct Subtract {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return T(a - b);
  }
};
struct Multiply {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return T(a * b);
  }
};
struct Divide {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return m::divide(a, b);
  }
};
struct Negative {
  template <class T>
  static CATENA_FN T apply(T a) {
    return T(-a);
  }
};
struct Positive {
  template <class T>
  static CATENA_FN T apply(T a) {
    return a;
  }
};
struct Square {
  template <class T>
  static CATENA_FN T apply(T a) {
    return T(a * a);
  }
};

struct Absolute {
  template <class T>
  static CATENA_FN T apply(T a) {
    if constexpr (IsFloat<T>::value)
      return m::fabs(a);
    else if constexpr (IsSigned<T>::value)
      return a < T(0) ? T(-a) : a;
    else
      return a;
  }
};
struct Sign {
  template <class T>
  static CATENA_FN T apply(T a) {
    if constexpr (IsFloat<T>::value)
      return a > T(0) ? T(1) : a < T(0) ? T(-1) : a == T(0) ? T(0) : a;
    else if constexpr (IsSigned<T>::value)
      return a > T(0) ? T(1) : a < T(0) ? T(-1) : T(0);
    else
      return a > T(0) ? T(1) : T(0);
  }
};
struct Reciprocal {
  template <class T>
  static CATENA_FN T apply(T a) {
    if constexpr (IsFloat<T>::value)
      return T(1) / a;
    else
      return a == T(0) ? T(0) : T(T(1) / a);
  }
};
// Integer division rounds down. A zero divisor gives 0, and the most negative number divided by -1
// wraps.
struct FloorDivide {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    if constexpr (IsFloat<T>::value) {
      if (b == T(0)) return a / b;
      const T mod = m::fmod(a, b);
      T quotient = (a - mod) / b;
      if (mod != T(0) && (b < T(0)) != (mod < T(0))) quotient -= T(1);
      if (quotient == T(0)) return m::copysign(T(0), a / b);
      const T down = m::floor(quotient);
      return quotient - down > T(0.5) ? down + T(1) : down;
    } else if constexpr (IsSigned<T>::value) {
      if (b == T(0)) return T(0);
      if (b == T(-1)) return T(-a);
      const T q = T(a / b);
      return T(q * b) != a && ((a < T(0)) != (b < T(0))) ? T(q - 1) : q;
    } else {
      return b == T(0) ? T(0) : T(a / b);
    }
  }
};
// The sign of the divisor, as in Python.
struct Remainder {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    if constexpr (IsFloat<T>::value) {
      const T mod = m::fmod(a, b);
      if (b == T(0)) return mod;
      if (mod == T(0)) return m::copysign(T(0), b);
      return (b < T(0)) != (mod < T(0)) ? mod + b : mod;
    } else if constexpr (IsSigned<T>::value) {
      if (b == T(0) || b == T(-1)) return T(0);
      const T r = T(a % b);
      return r != T(0) && ((r < T(0)) != (b < T(0))) ? T(r + b) : r;
    } else {
      return b == T(0) ? T(0) : T(a % b);
    }
  }
};
// The sign of the dividend, as in C.
struct Fmod {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    if constexpr (IsFloat<T>::value)
      return m::fmod(a, b);
    else if constexpr (IsSigned<T>::value)
      return b == T(0) || b == T(-1) ? T(0) : T(a % b);
    else
      return b == T(0) ? T(0) : T(a % b);
  }
};
struct Power {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    if constexpr (IsFloat<T>::value) {
      return m::pow(a, b);
    } else {
      if constexpr (IsSigned<T>::value) {
        if (b < T(0))
          return a == T(1) ? T(1) : a == T(-1) ? (b % T(2) == T(0) ? T(1) : T(-1)) : T(0);
      }
      T result = T(1), base = a;
      for (T e = b; e > T(0); e = T(e / T(2))) {
        if (e % T(2) == T(1)) result = T(result * base);
        base = T(base * base);
      }
      return result;
    }
  }
};
// NaN wins in maximum and minimum and loses in fmax and fmin. The first selection is one
// instruction on most processors. Consecutive selections stay selections where they are nested
// (Clip), while a condition of two parts becomes branches there.
struct Maximum {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    const T larger = a < b ? b : a;
    return b != b ? b : larger;
  }
};
struct Minimum {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    const T smaller = a > b ? b : a;
    return b != b ? b : smaller;
  }
};
struct Fmax {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return a >= b || b != b ? a : b;
  }
};
struct Fmin {
  template <class T>
  static CATENA_FN T apply(T a, T b) {
    return a <= b || b != b ? a : b;
  }
};
struct Rint {
  template <class T>
  static CATENA_FN T apply(T a) {
    return m::rint(a);
  }
};
struct Floor {
  template <class T>
  static CATENA_FN T apply(T a) {
    return m::floor(a);
  }
};
struct Ceil {
  template <class T>
  static CATENA_FN T apply(T a) {
    return m::ceil(a);
  }
};
struct Trunc {
  template <class T>
  static CATENA_FN T apply(T a) {
    return m::trunc(a);
  }
};
// minimum(maximum(x, low), high)
struct Clip {
  template <class T>
  static CATENA_FN T apply(T x, T low, T high) {
    return Minimum::apply(Maximum::apply(x, low), high);
  }
};
struct Where {
  template <class T>
  static CATENA_FN T apply(bool condition, T x, T y) {
    return condition ? x : y;
  }
};

}  // namespace ops
}  // namespace catena
