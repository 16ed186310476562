// Against the C library: every number of the 16-bit types, random bits of the wider ones.
#include "catena/array/float_parts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/testing_markers.h"

namespace catena {
namespace {

class FloatParts : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CATENA_NEEDS_GPUS(GetParam().is_cuda() ? 1 : 0); }
  Array on_device(const Array& a) const { return a.to(GetParam()); }
};

// All bit patterns of a 16-bit type, else many random ones and the corners.
Array samples(Dtype dtype) {
  if (itemsize(dtype) == 2) return arange(-32768, 32768, 1, Dtype::kInt16).view(dtype);
  std::mt19937_64 random(7);
  const Dtype bits = itemsize(dtype) == 4 ? Dtype::kInt32 : Dtype::kInt64;
  std::vector<int64_t> patterns;
  for (int i = 0; i < 20000; ++i) patterns.push_back(int64_t(random()) >> (i % 3 ? 0 : 11));
  const Array numbers = array(patterns).astype(bits).view(dtype).copy();
  const double corners[] = {0, -0.0, 1, -1, 2.5, -2.5, INFINITY, -INFINITY, NAN, 1e-310, -4e-324};
  for (size_t i = 0; i < std::size(corners); ++i) numbers[int64_t(i)].fill(corners[i]);
  return numbers;
}

bool same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

const Dtype kFloats[] = {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32, Dtype::kFloat64};

TEST_P(FloatParts, ModfAndFrexpOfEveryKindOfNumber) {
  for (const Dtype dtype : kFloats) {
    const Array x = samples(dtype);
    const auto [fraction, whole] = modf(on_device(x));
    const auto [mantissa, exponent] = frexp(on_device(x));
    EXPECT_EQ(fraction.dtype(), dtype);
    EXPECT_EQ(exponent.dtype(), Dtype::kInt32);
    const auto values = x.to_vector<double>(), f = fraction.to_vector<double>(),
               w = whole.to_vector<double>(), m = mantissa.to_vector<double>();
    const auto e = exponent.to_vector<int32_t>();
    for (size_t i = 0; i < values.size(); ++i) {
      double expected_whole;
      const double expected = std::modf(values[i], &expected_whole);
      ASSERT_TRUE(same(f[i], expected) && same(w[i], expected_whole))
          << dtype << " modf(" << values[i] << ") gave " << f[i] << ", " << w[i];
      int n = 0;
      const double half = std::frexp(values[i], &n);
      if (!std::isfinite(values[i])) n = 0;
      ASSERT_TRUE(same(m[i], half) && e[i] == n)
          << dtype << " frexp(" << values[i] << ") gave " << m[i] << ", " << e[i];
    }
  }
}

TEST_P(FloatParts, LdexpRoundsOnce) {
  std::mt19937 random(3);
  for (const Dtype dtype : kFloats) {
    const Array x = samples(dtype);
    std::vector<int32_t> exponents;
    for (int64_t i = 0; i < x.size(); ++i)
      exponents.push_back(int(random() % 4400) / (i % 4 ? 20 : 1) - (i % 4 ? 110 : 2200));
    const auto values = x.to_vector<double>();
    const Array result = ldexp(on_device(x), on_device(array(exponents)));
    EXPECT_EQ(result.dtype(), dtype);
    const auto got = result.to_vector<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      const int n = dtype == Dtype::kFloat64 ? exponents[i] : std::clamp(exponents[i], -400, 400);
      const double expected =
          scalar_array(std::ldexp(values[i], n), Dtype::kFloat64).astype(dtype).item<double>();
      ASSERT_TRUE(same(got[i], expected))
          << dtype << " ldexp(" << values[i] << ", " << exponents[i] << ") gave " << got[i];
    }
  }
  EXPECT_THROW(ldexp(ones({2}), ones({2})), DtypeError);
}

TEST_P(FloatParts, NextafterIsTheNeighbour) {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
    const Array x = samples(dtype);
    for (const double towards : {double(INFINITY), -double(INFINITY), 0.0, 1.0}) {
      const Array to = full_like(x, towards);
      const auto got = nextafter(on_device(x), on_device(to)).to_vector<double>();
      const auto values = x.to_vector<double>();
      for (size_t i = 0; i < values.size(); ++i) {
        const double expected = dtype == Dtype::kFloat32
                                    ? std::nextafter(float(values[i]), float(towards))
                                    : std::nextafter(values[i], towards);
        ASSERT_TRUE(same(got[i], expected))
            << dtype << " nextafter(" << values[i] << ", " << towards << ") gave " << got[i];
      }
    }
  }
  // 16-bit floats: back and forth is where it began, and one step changes the number.
  const Array x = samples(Dtype::kFloat16), up = full_like(x, INFINITY),
              down = full_like(x, -INFINITY);
  const auto values = x.to_vector<double>();
  const Array higher = nextafter(on_device(x), on_device(up));
  const auto back = nextafter(higher, on_device(down)).to_vector<double>(),
             next = higher.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) || values[i] == INFINITY) continue;
    ASSERT_GT(next[i], values[i]);
    ASSERT_EQ(back[i], values[i]);
  }
}

TEST(ArrayOperators, CompareWithNumbersOnEitherSide) {
  const Array a = array<int32_t>({0, 1});
  EXPECT_EQ((a == 0).to_vector<bool>(), (0 == a).to_vector<bool>());
  EXPECT_EQ((a != int64_t{1}).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ((a == Scalar(1)).to_vector<bool>(), (std::vector<bool>{false, true}));
  EXPECT_EQ((a == array<float>({0, 2})).to_vector<bool>(), (std::vector<bool>{true, false}));
}

TEST_P(FloatParts, BroadcastPromotionAndIntegers) {
  const Array a = on_device(array<float>({1, 2})), b = on_device(array<double>({5}));
  EXPECT_EQ(nextafter(a, b).dtype(), dtype::float64);
  EXPECT_EQ(nextafter(a, b).shape(), Shape({2}));
  EXPECT_EQ(frexp(on_device(array<int8_t>({6}))).first.dtype(), dtype::float16);
  EXPECT_EQ(
      ldexp(on_device(array<float>({1, 3})), on_device(array<int8_t>({2}))).to_vector<float>(),
      (std::vector<float>{4, 12}));
  EXPECT_EQ(modf(on_device(zeros({0, 3}))).second.shape(), Shape({0, 3}));
  const auto [quotient, rest] = divmod(on_device(array<int32_t>({-7, 7})), 3);
  EXPECT_EQ(quotient.to_vector<int32_t>(), (std::vector<int32_t>{-3, 2}));
  EXPECT_EQ(rest.to_vector<int32_t>(), (std::vector<int32_t>{2, 1}));
}

TEST_P(FloatParts, ResultsIntoArraysAndDtypes) {
  const Array x = on_device(array<double>({-2.5, 6, 0.75}));
  const auto like = [&](Dtype dtype) { return zeros({3}, {dtype, GetParam()}); };
  const Array first = like(Dtype::kFloat32), second = like(Dtype::kFloat64);
  const auto parts = modf(x, {first, second});
  EXPECT_TRUE(parts.first.same_body(first) && parts.second.same_body(second));
  EXPECT_EQ(first.to_vector<float>(), (std::vector<float>{-0.5, 0, 0.75}));
  EXPECT_EQ(second.to_vector<double>(), (std::vector<double>{-2, 6, 0}));
  EXPECT_EQ(modf(x, Dtype::kFloat32).second.dtype(), Dtype::kFloat32);

  const Array exponents = like(Dtype::kInt64);
  frexp(x, {second, exponents});
  EXPECT_EQ(second.to_vector<double>(), (std::vector<double>{-0.625, 0.75, 0.75}));
  EXPECT_EQ(exponents.to_vector<int>(), (std::vector<int>{2, 3, 0}));
  EXPECT_EQ(frexp(x, Dtype::kFloat16).first.dtype(), Dtype::kFloat16);

  EXPECT_TRUE(ldexp(x, exponents, x).same_body(x)) << "into an operand";
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{-10, 48, 0.75}));
  EXPECT_EQ(ldexp(x, exponents, Dtype::kFloat32).dtype(), Dtype::kFloat32);
  nextafter(x, 0.0, second);
  EXPECT_EQ(second.to_vector<double>(), nextafter(x, zeros_like(x)).to_vector<double>());
  EXPECT_EQ(nextafter(x, x, Dtype::kFloat32).dtype(), Dtype::kFloat32);

  const Array a = on_device(array<int32_t>({-7, 7, 9})), b = on_device(array<int32_t>({2, 3, -4}));
  divmod(a, b, {a, b});
  EXPECT_EQ(a.to_vector<int>(), (std::vector<int>{-4, 2, -3})) << "both are read first";
  EXPECT_EQ(b.to_vector<int>(), (std::vector<int>{1, 1, -3}));
  EXPECT_EQ(divmod(a, b, Dtype::kFloat64).first.dtype(), Dtype::kFloat64);
}

TEST_P(FloatParts, WrongPlacesForResults) {
  const Array x = on_device(array<double>({-2.5, 6})), y = x.copy(),
              ints = on_device(zeros({2}, Dtype::kInt32)), three = on_device(zeros({3}));
  y.fill(9);
  EXPECT_THROW(modf(x, {y, ints}), DtypeError);
  EXPECT_THROW(modf(x, {y, three}), ShapeError);
  EXPECT_THROW(frexp(x, {y, zeros({2}, cpu(9))}), DeviceError);
  EXPECT_THROW(modf(x, {y, zeros({1}, GetParam()).broadcast_to({2})}), ValueError);
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{9, 9})) << "neither is written then";
  EXPECT_THROW(modf(x, Dtype::kInt32), DtypeError);
  EXPECT_THROW(nextafter(x, x, ints), DtypeError);
  EXPECT_THROW(nextafter(x, x, three), ShapeError);
  EXPECT_THROW(ldexp(x, ints, Dtype::kInt64), DtypeError);
  EXPECT_THROW(ldexp(x, ints, Out(y, ints > 0)), ValueError) << "takes no mask";
  EXPECT_THROW(nextafter(x, x, Out(y, ints > 0)), ValueError);
}

TEST_P(FloatParts, NumbersAreWeakOperands) {
  const Array x = on_device(array<float>({1, 2}));
  EXPECT_EQ(nextafter(x, INFINITY).dtype(), Dtype::kFloat32);
  EXPECT_EQ(nextafter(x, 3).to_vector<float>(),
            (std::vector<float>{std::nextafter(1.0f, 3.0f), std::nextafter(2.0f, 3.0f)}));
  EXPECT_EQ(nextafter(0, x).to_vector<float>()[0], std::nextafter(0.0f, 1.0f));
  EXPECT_EQ(ldexp(x, 3).to_vector<float>(), (std::vector<float>{8, 16}));
  EXPECT_EQ(ldexp(0.75, x.astype(Dtype::kInt32)).to_vector<double>(),
            (std::vector<double>{1.5, 3}));
  EXPECT_EQ(ldexp(x, 3).device(), GetParam());
  EXPECT_EQ(nextafter(1, x).device(), GetParam());
  EXPECT_THROW(ldexp(x, 0.5), DtypeError);
  const DeviceScope scope(GetParam());
  EXPECT_EQ(modf(-2.5).second.item<double>(), -2);
  EXPECT_EQ(modf(3).first.dtype(), Dtype::kFloat64);
  EXPECT_EQ(frexp(6.0).second.item<int>(), 3);
  EXPECT_EQ(nextafter(1.0, 2.0).item<double>(), std::nextafter(1.0, 2.0));
  EXPECT_EQ(nextafter(1.0, 2.0).device(), GetParam());
}

TEST_P(FloatParts, LayoutsWithGapsAndNothing) {
  const Array wide = on_device(arange(12).astype(Dtype::kFloat64).reshape({3, 4})),
              x = wide(Slice(), Slice(none, none, -2)), out = on_device(zeros({2, 3})).T();
  nextafter(x, x.copy() + 1.0, out);
  EXPECT_EQ(out.to_vector<double>()[0], std::nextafter(3.0, 4.0));
  const Array fraction = on_device(zeros({3, 4}))(Slice(), Slice(0, 2));
  modf(x + 0.25, {fraction, out});
  EXPECT_EQ(fraction.to_vector<double>(), std::vector<double>(6, 0.25));
  EXPECT_EQ(out.to_vector<double>(), x.to_vector<double>());
  const Array none_at_all = on_device(zeros({0, 3}));
  EXPECT_EQ(frexp(none_at_all, {none_at_all, none_at_all}).second.shape(), Shape({0, 3}));
  EXPECT_EQ(nextafter(none_at_all, 1.0).shape(), Shape({0, 3}));
}

INSTANTIATE_TEST_SUITE_P(Devices, FloatParts, ::testing::Values(cpu(), cuda_device(0)),
                         [](const auto& info) { return info.param.is_cuda() ? "cuda" : "cpu"; });

}  // namespace
}  // namespace catena
