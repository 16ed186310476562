// Copies, casts, fills, ranges and moves of slices of the CPU backend.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "catena/array/creation.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/index.h"

namespace catena {
namespace {

std::vector<Dtype> all_dtypes() {
  std::vector<Dtype> dtypes;
  for (int i = 0; i < kDtypeCount; ++i) dtypes.push_back(static_cast<Dtype>(i));
  return dtypes;
}

// Small whole numbers and, for floats, fractions; in the range of every dtype.
Array samples(Dtype dtype, const Shape& shape) {
  Array a = Array::uninitialized(shape, dtype, cpu(0));
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < a.size(); ++i) {
      const double value = i % 60 + (is_float(dtype) ? 0.75 : 0.0);
      if constexpr (std::is_same_v<T, bool>)
        a.data<T>()[i] = i % 3 == 0;
      else
        a.data<T>()[i] = T(compute_t<T>(value));
    }
  });
  return a;
}

// The double value of element i (C order).
double value_at(const Array& a, int64_t i) {
  int64_t offset = 0;
  for (int d = a.ndim() - 1; d >= 0; --d) {
    offset += i % a.shape()[size_t(d)] * a.strides()[size_t(d)];
    i /= a.shape()[size_t(d)];
  }
  const char* address = static_cast<const char*>(a.raw_data()) + offset;
  return visit_dtype(a.dtype(), [&]<class T>(TypeTag<T>) {
    return double(compute_t<T>(*reinterpret_cast<const T*>(address)));
  });
}

double expected_cast(double value, Dtype to) {
  switch (kind_of(to)) {
    case DtypeKind::kBool: return value != 0;
    case DtypeKind::kInt: return std::trunc(value);
    case DtypeKind::kFloat: return value;  // all samples are exact in every float dtype
  }
  return 0;
}

class CpuCast : public ::testing::TestWithParam<Dtype> {};

TEST_P(CpuCast, EveryTargetAndLayout) {
  const Array whole = samples(GetParam(), {40, 6, 50});
  const std::vector<Array> sources = {whole,
                                      whole.reshape({40 * 6, 50}).T(),
                                      whole.transpose({2, 0, 1}),
                                      whole(Slice(none, none, -1), ellipsis, Slice(1, none, 3)),
                                      whole(3, 2, Slice(4, 5)).broadcast_to({5, 7}),
                                      whole(Slice(0, 0)),
                                      whole(1, 2, 3)};
  for (Dtype to : all_dtypes()) {
    for (const Array& source : sources) {
      const Array target = Array::uninitialized(source.shape(), to, cpu(0));
      kernels::copy(cpu(0), {source, target});
      for (int64_t i = 0; i < source.size(); ++i) {
        ASSERT_EQ(value_at(target, i), expected_cast(value_at(source, i), to))
            << name(GetParam()) << " to " << name(to) << ", shape " << to_string(source.shape())
            << " at " << i;
      }
      // Into a strided target.
      if (source.ndim() != 2) continue;
      const Array strided =
          zeros({source.shape()[1], source.shape()[0], 2}, to).transpose({2, 1, 0})[1];
      kernels::copy(cpu(0), {source, strided});
      for (int64_t i = 0; i < source.size(); ++i) {
        ASSERT_EQ(value_at(strided, i), expected_cast(value_at(source, i), to));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CpuCast, ::testing::ValuesIn(all_dtypes()),
                         [](const auto& p) { return std::string(name(p.param)); });

// Matrices of 4-byte elements have a path of their own: odd extents, rows that start anywhere,
// large ones that go past the caches, and what lies around the target.
TEST(CpuCopyTransposed, WordsOfAnyExtent) {
  struct Case {
    int64_t rows, columns, offset;
  };
  for (const auto [rows, columns, offset] :
       {Case{4, 4, 0}, Case{5, 67, 0}, Case{63, 130, 1}, Case{16, 64, 2}, Case{129, 19, 3},
        Case{1100, 1056, 0}, Case{1030, 1101, 1}}) {
    for (Dtype dtype : {Dtype::kFloat32, Dtype::kInt32}) {
      const Array source = samples(dtype, {columns, rows});
      const Array frame = zeros({rows + 2, columns + 8}, dtype);
      const Array target = frame(Slice(1, rows + 1), Slice(offset, offset + columns));
      for (const Array& from : {source.T(), source(Slice(none, none, -1)).T()}) {
        frame.fill(0);
        kernels::copy(cpu(0), {from, target});
        int64_t wrong = 0;
        for (int64_t i = 0; i < from.size(); ++i) wrong += value_at(target, i) != value_at(from, i);
        EXPECT_EQ(wrong, 0) << rows << " x " << columns << " " << name(dtype);
        int64_t around = 0;
        for (int64_t i = 0; i < frame.size(); ++i) {
          const int64_t row = i / (columns + 8), column = i % (columns + 8);
          const bool inside =
              row >= 1 && row <= rows && column >= offset && column < offset + columns;
          around += !inside && value_at(frame, i) != 0;
        }
        EXPECT_EQ(around, 0) << rows << " x " << columns << " " << name(dtype);
      }
    }
  }
}

TEST(CpuCastRounding, SixteenBitFloatsRoundOnceToEven) {
  // All float16 and bfloat16 values survive; halfway cases go to even; doubles are not rounded
  // twice.
  for (Dtype d : {Dtype::kFloat16, Dtype::kBFloat16}) {
    Array bits = Array::uninitialized({65536}, Dtype::kUInt16, cpu(0));
    for (int i = 0; i < 65536; ++i) bits.data<uint16_t>()[i] = uint16_t(i);
    const Array halves = bits.view(d);
    for (Dtype wide : {Dtype::kFloat32, Dtype::kFloat64}) {
      const Array back = halves.astype(wide).astype(d).view(Dtype::kUInt16);
      int changed = 0;
      for (int i = 0; i < 65536; ++i) {
        const bool nan = std::isnan(value_at(halves, i));
        changed +=
            nan ? !std::isnan(value_at(back.view(d), i)) : back.data<uint16_t>()[i] != uint16_t(i);
      }
      EXPECT_EQ(changed, 0) << name(d) << " through " << name(wide);
    }
  }
  std::mt19937_64 engine(1);
  for (int i = 0; i < 20000; ++i) {
    const double scale = std::ldexp(1.0, int(engine() % 48) - 28);
    double x = scale * (1 + double(engine() % 4096) / 2048) * (engine() % 2 ? 1 : -1);
    if (engine() % 2)
      x = std::nextafter(x, engine() % 2 ? 1e300 : -1e300);  // next to a halfway point
    const Array a = array(std::vector<double>{x});
    EXPECT_EQ(a.astype(Dtype::kFloat16).view(Dtype::kUInt16).item<int>(), float16(x).bits) << x;
    EXPECT_EQ(a.astype(Dtype::kBFloat16).view(Dtype::kUInt16).item<int>(), bfloat16(x).bits) << x;
    const Array f = a.astype(Dtype::kFloat32);
    EXPECT_EQ(f.astype(Dtype::kFloat16).view(Dtype::kUInt16).item<int>(), float16(float(x)).bits)
        << x;
  }
}

// Whole vectors and what is left of a row agree with the conversion of one number. The signs and
// texts of NaNs are not compared.
TEST(CpuCastRounding, RowsOf16BitFloatsRoundAsSingleNumbers) {
  constexpr int kHighHalves = 65536, kRest = 13;
  for (const uint32_t low : {0u, 1u, 0x0fffu, 0x1000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
    const Array bits = Array::uninitialized({kHighHalves + kRest}, Dtype::kUInt32, cpu(0));
    for (int i = 0; i < kHighHalves + kRest; ++i)
      bits.data<uint32_t>()[i] = uint32_t(i % kHighHalves) << 16 | low;
    const Array floats = bits.view(Dtype::kFloat32);
    const Array half = floats.astype(Dtype::kFloat16).view(Dtype::kUInt16),
                brain = floats.astype(Dtype::kBFloat16).view(Dtype::kUInt16);
    int wrong = 0;
    for (int i = 0; i < kHighHalves + kRest; ++i) {
      const float x = floats.data<float>()[i];
      float16 h;
      bfloat16 b;
      h.bits = half.data<uint16_t>()[i], b.bits = brain.data<uint16_t>()[i];
      if (std::isnan(x))
        wrong += !std::isnan(float(h)) || !std::isnan(float(b));
      else
        wrong += h.bits != float16(x).bits || b.bits != bfloat16(x).bits;
    }
    EXPECT_EQ(wrong, 0) << "low half " << low;
  }
}

TEST(CpuCastRounding, OutOfRangeFloatsDoNotCrash) {
  const double inf = std::numeric_limits<double>::infinity();
  const Array a = array(std::vector<double>{1e300, -1e300, inf, -inf, std::nan(""), 3e9, -1});
  for (Dtype d : all_dtypes()) EXPECT_EQ(a.astype(d).size(), 7);
  EXPECT_EQ(a.astype(Dtype::kUInt8).data<uint8_t>()[6], 255);
  EXPECT_EQ(a.astype(Dtype::kUInt64).data<uint64_t>()[6], ~uint64_t{0});
  EXPECT_EQ(a.astype(Dtype::kUInt32).data<uint32_t>()[5], 3000000000u);
  EXPECT_TRUE(a.astype(Dtype::kBool).data<bool>()[4]);
}

TEST(CpuFill, ContiguousAndStrided) {
  for (Dtype d : all_dtypes()) {
    const Array a = zeros({300, 20}, d);
    kernels::fill(cpu(0), {a(Slice(none, none, 3), Slice(none, none, -2)), Scalar(1)});
    for (int64_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(value_at(a, i), (i / 20 % 3 == 0 && i % 20 % 2 == 1) ? 1 : 0)
          << name(d) << " at " << i;
    }
    kernels::fill(cpu(0), {a, Scalar(1.0)});
    for (int64_t i = 0; i < a.size(); ++i) ASSERT_EQ(value_at(a, i), 1);
  }
}

TEST(CpuArange, ComputesInInt64AndDouble) {
  const Array f = Array::uninitialized({5}, Dtype::kFloat32, cpu(0));
  kernels::arange(cpu(0), {f, 0.5, 0.1});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f.data<float>()[i], float(0.5 + i * 0.1));
  const Array n = Array::uninitialized({4}, Dtype::kInt64, cpu(0));
  kernels::arange(cpu(0), {n, int64_t{1} << 60, -3});
  EXPECT_EQ(n.data<int64_t>()[3], (int64_t{1} << 60) - 9);
}

TEST(CpuCopyStrided, EveryDistanceAndLength) {
  for (Dtype d : all_dtypes()) {
    for (int64_t n : {0, 1, 3, 4, 5, 31, 100}) {
      const Array whole = samples(d, {3 * n + 1});
      for (int64_t step : {2, 3, -1, -2}) {
        const Array view = whole(Slice(none, none, step))(Slice(0, n));
        const Array to = zeros({3 * n + 1}, d), other = to(Slice(none, none, -3))(Slice(0, n));
        const Array copied = Array::uninitialized({n}, d, cpu(0));
        kernels::copy(cpu(0), {view, copied});
        kernels::copy(cpu(0), {view, other});
        for (int64_t i = 0; i < n; ++i) {
          const double expected = value_at(whole, step > 0 ? i * step : 3 * n + i * step);
          ASSERT_EQ(value_at(copied, i), expected) << name(d) << " step " << step;
          ASSERT_EQ(value_at(to, 3 * (n - i)), expected) << name(d) << " step " << step;
        }
      }
    }
  }
}

TEST(CpuCopyShortRows, OfEveryLength) {
  for (Dtype d : {Dtype::kInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kFloat64}) {
    for (int64_t n = 1; n < 70; n += n < 20 ? 1 : 7) {
      const Array a = samples(d, {5, 7, n}), out = Array::uninitialized({7, 5, n}, d, cpu(0));
      kernels::copy(cpu(0), {a.transpose({1, 0, 2}), out});
      for (int64_t i = 0; i < a.size(); ++i) {
        const int64_t k = i % n, j = i / n % 5, r = i / n / 5;
        ASSERT_EQ(value_at(out, i), value_at(a, (j * 7 + r) * n + k))
            << name(d) << " rows of " << n;
      }
    }
  }
}

TEST(CpuConcatenate, PiecesOfFewBytes) {
  for (Dtype d : all_dtypes()) {
    for (int64_t count : {1, 2, 3, 4, 5}) {
      for (int64_t width : {1, 3}) {
        for (int64_t rows : {0, 1, 17, 5000}) {
          std::vector<Array> inputs;
          for (int64_t k = 0; k < count; ++k) {
            inputs.push_back(samples(d, {rows + k, width})(Slice(k, none)));
          }
          const Array out = Array::uninitialized({rows, count * width}, d, cpu(0));
          kernels::concatenate(cpu(0), {inputs, 1, out});
          for (int64_t i = 0; i < out.size(); ++i) {
            const int64_t row = i / (count * width), k = i / width % count, j = i % width;
            ASSERT_EQ(value_at(out, i), value_at(inputs[size_t(k)], row * width + j))
                << name(d) << ", " << count << " arrays of " << rows << " x " << width;
          }
        }
      }
    }
  }
}

TEST(CpuTake, LongListsWithFewPositionsOutside) {
  const Array a = samples(Dtype::kInt32, {3, 1000, 1});
  for (Dtype d : {Dtype::kInt64, Dtype::kInt32}) {
    for (int64_t outer : {1, 3}) {
      for (int64_t n : {5, 2000, 70000}) {
        Array indices = Array::uninitialized({n}, Dtype::kInt64, cpu(0));
        for (int64_t i = 0; i < n; ++i) indices.data<int64_t>()[i] = i * 7 % 1000;
        indices.data<int64_t>()[n - 1] = -2;
        const Array out = Array::uninitialized({outer, n, 1}, Dtype::kInt32, cpu(0));
        kernels::take(cpu(0), {a(Slice(0, outer)), indices.astype(d), 1, out});
        for (int64_t i = 0; i < out.size(); ++i) {
          const int64_t at = i % n == n - 1 ? 998 : i % n * 7 % 1000;
          ASSERT_EQ(value_at(out, i), value_at(a, i / n * 1000 + at)) << name(d) << " of " << n;
        }
      }
    }
  }
}

TEST(CpuScatterAdd, RepeatedPositionsAccumulate) {
  for (Dtype d : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kFloat16}) {
    const Array target = ones({2, 4, 3}, d), values = ones({2, 5, 3}, d);
    kernels::scatter_add(cpu(0), {target, array(std::vector<int32_t>{0, 2, 2, -1, 2}), values});
    const double expected[] = {2, 1, 4, 2};
    for (int64_t i = 0; i < target.size(); ++i) EXPECT_EQ(value_at(target, i), expected[i / 3 % 4]);
  }
  // Many columns, so that threads share them.
  const Array target = zeros({1, 10, 5000}, Dtype::kFloat32),
              values = ones({1, 40, 5000}, Dtype::kFloat32);
  Array indices = Array::uninitialized({40}, Dtype::kInt64, cpu(0));
  for (int i = 0; i < 40; ++i) indices.data<int64_t>()[i] = i * i % 10;
  kernels::scatter_add(cpu(0), {target, indices, values});
  for (int64_t i = 0; i < target.size(); ++i) {
    int count = 0;
    for (int j = 0; j < 40; ++j) count += j * j % 10 == i / 5000;
    ASSERT_EQ(value_at(target, i), count);
  }
}

// Against one addition at a time: more positions than are resolved at once, rows of one element, of
// few and of many.
TEST(CpuScatterAdd, ManyPositionsOfEveryDtype) {
  constexpr int64_t kCount = 1500, kExtent = 700;
  for (int d = 0; d < kDtypeCount; ++d) {
    const Dtype dtype = static_cast<Dtype>(d);
    for (int64_t inner : {1, 3, 40}) {
      Array positions = Array::uninitialized({kCount}, Dtype::kInt64, cpu(0));
      std::vector<double> expected(size_t(2 * kExtent * inner), 0);
      Array values = Array::uninitialized({2, kCount, inner}, Dtype::kInt32, cpu(0));
      for (int64_t j = 0; j < kCount; ++j) {
        const int64_t place = j * j % kExtent;
        positions.data<int64_t>()[j] = j % 3 ? place : place - kExtent;
        for (int64_t o = 0; o < 2; ++o) {
          for (int64_t k = 0; k < inner; ++k) {
            const int32_t value = int32_t((j + k) % 2);
            values.data<int32_t>()[(o * kCount + j) * inner + k] = value;
            expected[size_t((o * kExtent + place) * inner + k)] += value;
          }
        }
      }
      const Array target = zeros({2, kExtent, inner}, dtype);
      kernels::scatter_add(cpu(0), {target, positions, values.astype(dtype)});
      for (int64_t i = 0; i < target.size(); ++i) {
        const double sum = expected[size_t(i)];
        ASSERT_EQ(value_at(target, i), dtype == Dtype::kBool ? sum > 0 : sum)
            << dtype << " rows of " << inner << ", element " << i;
      }
    }
  }
}

}  // namespace
}  // namespace catena
