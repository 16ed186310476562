// Unsigned integers with the same order as the elements whose bits they are made of, compiled by
// g++ and nvcc alike. Includes nothing; CATENA_FN as in scalar_ops.h.
#pragma once

namespace catena {
namespace order {

enum Kind { kUnsigned, kSigned, kFloat };

// U: the unsigned type of the element's size. infinity: for floats the bits of +infinity.
template <class U_, Kind kKind, unsigned long long kInfinity = 0>
struct Ordered {
  using U = U_;
  static constexpr U kSign = U(U(1) << (sizeof(U) * 8 - 1));
  static constexpr U kLast = U(~U(0));
  static constexpr bool kIsFloat = kKind == kFloat;

  // One to one. NaNs of either sign come after +infinity, and -0 comes directly before 0. V: U, or
  // a vector of U.
  template <class V>
  static CATENA_FN V encode(V bits) {
    if (kKind == kUnsigned) return bits;
    if (kKind == kSigned) return V(bits ^ kSign);
    const V flipped = V((bits & kSign) != 0 ? V(~bits) : V(bits ^ kSign));
    return V(flipped - kLowest);  // NaNs with a sign, which are below -infinity, wrap to the end
  }
  template <class V>
  static CATENA_FN V decode(V key) {
    if (kKind == kUnsigned) return key;
    if (kKind == kSigned) return V(key ^ kSign);
    const V flipped = V(key + kLowest);
    return V((flipped & kSign) != 0 ? V(flipped ^ kSign) : V(~flipped));
  }
  static CATENA_FN bool is_nan(U bits) {
    return kKind == kFloat && U(bits & U(~kSign)) > U(kInfinity);
  }
  // Equal for equal elements: NaNs share the last key, and -0 has the key of 0.
  static CATENA_FN U rank(U bits) {
    if (kKind != kFloat) return encode(bits);
    if (is_nan(bits)) return kLast;
    return encode(U(bits & U(~kSign)) == 0 ? U(0) : bits);
  }

 private:
  static constexpr U kLowest = U(~U(U(kInfinity) | kSign));  // -infinity before the shift
};

using OrderedU8 = Ordered<unsigned char, kUnsigned>;  // bool too
using OrderedI8 = Ordered<unsigned char, kSigned>;
using OrderedU16 = Ordered<unsigned short, kUnsigned>;
using OrderedI16 = Ordered<unsigned short, kSigned>;
using OrderedU32 = Ordered<unsigned int, kUnsigned>;
using OrderedI32 = Ordered<unsigned int, kSigned>;
using OrderedU64 = Ordered<unsigned long long, kUnsigned>;
using OrderedI64 = Ordered<unsigned long long, kSigned>;
using OrderedF16 = Ordered<unsigned short, kFloat, 0x7c00u>;
using OrderedBF16 = Ordered<unsigned short, kFloat, 0x7f80u>;
using OrderedF32 = Ordered<unsigned int, kFloat, 0x7f800000u>;
using OrderedF64 = Ordered<unsigned long long, kFloat, 0x7ff0000000000000ull>;

}  // namespace order
}  // namespace catena
