#include "catena/core/dtype_info.h"

#include <gtest/gtest.h>

#include <cmath>

namespace catena {
namespace {

// numpy.can_cast for the codes of kOrder: rows from, columns to.
constexpr const char* kOrder[] = {"?", "b", "h", "i", "l", "B", "H", "I", "L", "e", "f", "d"};
constexpr const char* kSafeTable[] = {
    "111111111111", "011110000111", "001110000011", "000110000001", "000010000001", "001111111111",
    "000110111011", "000010011001", "000000001001", "000000000111", "000000000011", "000000000001"};

TEST(DtypeInfo, CastingTablesAreNumPys) {
  for (int from = 0; from < 12; ++from) {
    for (int to = 0; to < 12; ++to) {
      const Dtype a = parse_dtype(kOrder[from]), b = parse_dtype(kOrder[to]);
      EXPECT_EQ(can_cast(a, b), kSafeTable[from][to] == '1') << name(a) << " to " << name(b);
      EXPECT_EQ(can_cast(a, b, Casting::kNo), from == to);
      EXPECT_TRUE(can_cast(a, b, Casting::kUnsafe));
    }
  }
  EXPECT_TRUE(can_cast(Dtype::kFloat64, Dtype::kFloat16, Casting::kSameKind));
  EXPECT_TRUE(can_cast(Dtype::kUInt64, Dtype::kInt8, Casting::kSameKind));
  EXPECT_FALSE(can_cast(Dtype::kInt8, Dtype::kUInt64, Casting::kSameKind));
  EXPECT_FALSE(can_cast(Dtype::kFloat16, Dtype::kInt64, Casting::kSameKind));
  EXPECT_FALSE(can_cast(Dtype::kInt8, Dtype::kBool, Casting::kSameKind));
  EXPECT_TRUE(can_cast(Scalar(5), Dtype::kUInt8));
  EXPECT_FALSE(can_cast(Scalar(-5), Dtype::kUInt8));
  EXPECT_FALSE(can_cast(Scalar(1.5), Dtype::kInt32));
  EXPECT_EQ(to_string(Casting::kSameKind), "same_kind");
  EXPECT_EQ(promote_types(Dtype::kInt8, Dtype::kUInt8), Dtype::kInt16);
}

TEST(DtypeInfo, OtherNames) {
  EXPECT_EQ(dtype::byte, Dtype::kInt8);
  EXPECT_EQ(dtype::short_, Dtype::kInt16);
  EXPECT_EQ(dtype::intc, Dtype::kInt32);
  EXPECT_EQ(dtype::int_, Dtype::kInt64);
  EXPECT_EQ(dtype::longlong, Dtype::kInt64);
  EXPECT_EQ(dtype::ubyte, Dtype::kUInt8);
  EXPECT_EQ(dtype::ushort, Dtype::kUInt16);
  EXPECT_EQ(dtype::uintc, Dtype::kUInt32);
  EXPECT_EQ(dtype::uint, Dtype::kUInt64);
  EXPECT_EQ(dtype::ulonglong, Dtype::kUInt64);
  EXPECT_EQ(dtype::half, Dtype::kFloat16);
  EXPECT_EQ(dtype::single, Dtype::kFloat32);
  EXPECT_EQ(dtype::float_, Dtype::kFloat64);
  EXPECT_EQ(dtype::double_, Dtype::kFloat64);
}

TEST(DtypeInfo, SmallestTypes) {
  EXPECT_EQ(min_scalar_type(0), Dtype::kUInt8);
  EXPECT_EQ(min_scalar_type(256), Dtype::kUInt16);
  EXPECT_EQ(min_scalar_type(-1), Dtype::kInt8);
  EXPECT_EQ(min_scalar_type(-129), Dtype::kInt16);
  EXPECT_EQ(min_scalar_type(70000), Dtype::kUInt32);
  EXPECT_EQ(min_scalar_type(int64_t{1} << 40), Dtype::kUInt64);
  EXPECT_EQ(min_scalar_type(-(int64_t{1} << 40)), Dtype::kInt64);
  EXPECT_EQ(min_scalar_type(1.5), Dtype::kFloat16);
  EXPECT_EQ(min_scalar_type(70000.), Dtype::kFloat32);
  EXPECT_EQ(min_scalar_type(1e50), Dtype::kFloat64);
  EXPECT_EQ(min_scalar_type(INFINITY), Dtype::kFloat16);
  EXPECT_EQ(min_scalar_type(true), Dtype::kBool);
  EXPECT_EQ(min_scalar_type(uint64_t{1} << 63), Dtype::kUInt64);
}

TEST(DtypeInfo, Limits) {
  EXPECT_EQ(iinfo(Dtype::kInt8).min, -128);
  EXPECT_EQ(iinfo(Dtype::kInt64).min, INT64_MIN);
  EXPECT_EQ(iinfo(Dtype::kInt64).max, uint64_t(INT64_MAX));
  EXPECT_EQ(iinfo(Dtype::kUInt64).max, UINT64_MAX);
  EXPECT_EQ(iinfo(Dtype::kUInt16).max, 65535u);
  EXPECT_THROW(iinfo(Dtype::kBool), DtypeError);
  EXPECT_EQ(finfo(Dtype::kFloat16).max, 65504);
  EXPECT_EQ(finfo(Dtype::kFloat32).eps, std::numeric_limits<float>::epsilon());
  EXPECT_EQ(finfo(Dtype::kFloat32).max, std::numeric_limits<float>::max());
  EXPECT_EQ(finfo(Dtype::kFloat32).tiny, std::numeric_limits<float>::min());
  EXPECT_EQ(finfo(Dtype::kFloat64).smallest_subnormal, std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(finfo(Dtype::kFloat64).max, std::numeric_limits<double>::max());
  EXPECT_EQ(finfo(Dtype::kFloat64).precision, 15);
  EXPECT_EQ(finfo(Dtype::kFloat16).precision, 3);
  EXPECT_EQ(finfo(Dtype::kBFloat16).eps, 0.0078125);
  EXPECT_THROW(finfo(Dtype::kInt8), DtypeError);
}

TEST(DtypeInfo, NamesAndCodes) {
  for (int i = 0; i < kDtypeCount; ++i) {
    const auto d = static_cast<Dtype>(i);
    EXPECT_EQ(parse_dtype(name(d)), d);
    EXPECT_EQ(parse_dtype(std::string(1, dtype_char(d))), d);
    EXPECT_EQ(parse_dtype(dtype_code(d)), d) << dtype_code(d);
  }
  EXPECT_EQ(parse_dtype("half"), dtype::half);
  EXPECT_EQ(parse_dtype("longlong"), dtype::longlong);
  EXPECT_EQ(parse_dtype("Q"), dtype::uint64);
  EXPECT_THROW(parse_dtype("complex64"), DtypeError);
  EXPECT_THROW(parse_dtype(">f4"), DtypeError);
  EXPECT_THROW(parse_dtype("<"), DtypeError);
  EXPECT_EQ(dtype_kind(Dtype::kUInt8), 'u');
  EXPECT_STREQ(type_description(Dtype::kFloat32), "single precision");
  EXPECT_TRUE(issubdtype(Dtype::kInt8, DtypeClass::kSignedInteger));
  EXPECT_FALSE(issubdtype(Dtype::kUInt8, DtypeClass::kSignedInteger));
  EXPECT_TRUE(issubdtype(Dtype::kBFloat16, DtypeClass::kInexact));
  EXPECT_FALSE(issubdtype(Dtype::kBool, DtypeClass::kNumber));
  EXPECT_TRUE(issubdtype(Dtype::kBool, DtypeClass::kGeneric));
}

// Each reader takes the first row that has the text.
TEST(DtypeInfo, NoTwoRowsShareAText) {
  for (const auto column : {&DtypeRow::kernel_type, &DtypeRow::safetensors, &DtypeRow::torch,
                            &DtypeRow::torch_storage}) {
    for (int i = 0; i < kDtypeCount; ++i) {
      const std::string_view text = kDtypeRows[i].*column;
      EXPECT_TRUE(text.empty() || find_dtype(column, text) == static_cast<Dtype>(i)) << text;
    }
  }
}

// The bits of a row are those of its C++ type.
TEST(DtypeInfo, FloatsHaveTheBitsOfTheirRows) {
  for (int i = 0; i < kDtypeCount; ++i) {
    const auto d = static_cast<Dtype>(i);
    if (!is_float(d)) continue;
    SCOPED_TRACE(name(d));
    const FloatInfo f = finfo(d);
    EXPECT_EQ(f.bits, 1 + f.exponent_bits + f.mantissa_bits);
    EXPECT_EQ(round_to(d, 1 + f.eps), 1 + f.eps);
    EXPECT_EQ(round_to(d, 1 + f.epsneg), 1);
    EXPECT_EQ(round_to(d, f.max), f.max);
    EXPECT_EQ(round_to(d, f.smallest_subnormal), f.smallest_subnormal);
    EXPECT_EQ(round_to(d, f.tiny), f.smallest_subnormal * std::ldexp(1, f.mantissa_bits));
    EXPECT_EQ(round_to(d, f.smallest_subnormal / 2), 0);
  }
}

TEST(DtypeInfo, Digits) {
  EXPECT_EQ(binary_repr(-3, 5), "11101");
  EXPECT_EQ(binary_repr(5, 8), "00000101");
  EXPECT_EQ(binary_repr(-3), "-11");
  EXPECT_EQ(binary_repr(0), "0");
  EXPECT_EQ(binary_repr(INT64_MIN, 64), "1" + std::string(63, '0'));
  EXPECT_THROW(binary_repr(4, 2), ValueError);
  EXPECT_THROW(binary_repr(-3, 2), ValueError);
  EXPECT_EQ(base_repr(-255, 16), "-FF");
  EXPECT_EQ(base_repr(5, 2, 3), "000101");
  EXPECT_THROW(base_repr(5, 37), ValueError);
}

}  // namespace
}  // namespace catena
