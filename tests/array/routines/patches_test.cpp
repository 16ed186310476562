#include "catena/array/patches.h"

#include <gtest/gtest.h>

#include <random>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/testing.h"

namespace catena {
namespace {

struct Case {
  Shape image;
  int64_t k[2], s[2], p[2], d[2];
  bool cover_all;
};

// Chainer's formula, whose division rounds down.
int64_t positions(int64_t size, int64_t k, int64_t s, int64_t p, bool cover_all, int64_t d) {
  const int64_t reach = d * (k - 1) + 1;
  return int64_t(std::floor(double(size + 2 * p - reach + (cover_all ? s - 1 : 0)) / double(s))) +
         1;
}

Case random_case(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (;;) {
    Case c{{pick(1, 2), pick(1, 4), pick(1, 9), pick(1, 9)}, {}, {}, {}, {}, pick(0, 1) == 1};
    bool fits = true;
    for (size_t i = 0; i < 2; ++i) {
      c.k[i] = pick(1, 4), c.s[i] = pick(1, 3), c.p[i] = pick(0, 3), c.d[i] = pick(1, 2);
      fits = fits && positions(c.image[2 + i], c.k[i], c.s[i], c.p[i], c.cover_all, c.d[i]) > 0;
    }
    if (fits) return c;
  }
}

// Calls f(number in col, number in img or -1).
template <class F>
void each(const Case& c, const Shape& col, F f) {
  int64_t at = 0;
  for (int64_t plane = 0; plane < col[0] * col[1]; ++plane)
    for (int64_t i = 0; i < col[2]; ++i)
      for (int64_t j = 0; j < col[3]; ++j)
        for (int64_t y = 0; y < col[4]; ++y)
          for (int64_t x = 0; x < col[5]; ++x, ++at) {
            const int64_t h = y * c.s[0] - c.p[0] + i * c.d[0],
                          w = x * c.s[1] - c.p[1] + j * c.d[1];
            const bool inside = h >= 0 && h < c.image[2] && w >= 0 && w < c.image[3];
            f(size_t(at), inside ? (plane * c.image[2] + h) * c.image[3] + w : -1);
          }
}

Array im2col_of(const Case& c, const Array& img, const Scalar& pval) {
  return im2col(img, c.k[0], c.k[1], c.s[0], c.s[1], c.p[0], c.p[1], pval, c.cover_all, c.d[0],
                c.d[1]);
}

TEST(Patches, AreWhatEachPositionSees) {
  for (const Device device : testing::devices()) {
    std::mt19937 random(11);
    for (int i = 0; i < 200; ++i) {
      const Case c = random_case(random);
      const Dtype dtype = std::vector{Dtype::kFloat64, Dtype::kFloat32, Dtype::kInt32,
                                      Dtype::kFloat16}[size_t(i % 4)];
      const int pval = i % 3 == 0 ? 7 : 0;
      const Array img = testing::random_array(c.image, -9, 9, Dtype::kFloat64, cpu(), uint64_t(i))
                            .astype(Dtype::kInt32)
                            .astype(dtype)
                            .to(device);
      const Array col = im2col_of(c, i % 2 ? img : img.transpose().copy().transpose(), pval);
      EXPECT_TRUE(col.is_contiguous());
      EXPECT_EQ(col.dtype(), dtype);
      EXPECT_EQ(col.shape(),
                (Shape{c.image[0], c.image[1], c.k[0], c.k[1],
                       positions(c.image[2], c.k[0], c.s[0], c.p[0], c.cover_all, c.d[0]),
                       positions(c.image[3], c.k[1], c.s[1], c.p[1], c.cover_all, c.d[1])}));
      const auto from = img.to_cpu().astype(Dtype::kFloat64).to_vector<double>();
      const auto got = col.to_cpu().astype(Dtype::kFloat64).to_vector<double>();
      each(c, col.shape(), [&](size_t at, int64_t place) {
        ASSERT_EQ(got[at], place < 0 ? pval : from[size_t(place)]) << i << ' ' << at;
      });
    }
  }
}

TEST(PatchSums, AreTheTranspose) {
  for (const Device device : testing::devices()) {
    std::mt19937 random(12);
    for (int i = 0; i < 200; ++i) {
      const Case c = random_case(random);
      const Shape shape{c.image[0],
                        c.image[1],
                        c.k[0],
                        c.k[1],
                        positions(c.image[2], c.k[0], c.s[0], c.p[0], c.cover_all, c.d[0]),
                        positions(c.image[3], c.k[1], c.s[1], c.p[1], c.cover_all, c.d[1])};
      const Dtype dtype =
          std::vector{Dtype::kFloat64, Dtype::kFloat32, Dtype::kBFloat16}[size_t(i % 3)];
      const Array col = testing::random_array(shape, -9, 9, Dtype::kFloat64, cpu(), uint64_t(i))
                            .astype(Dtype::kInt32)
                            .astype(dtype)
                            .to(device);
      const Array img =
          col2im(col, c.s[0], c.s[1], c.p[0], c.p[1], c.image[2], c.image[3], c.d[0], c.d[1]);
      EXPECT_EQ(img.shape(), c.image);
      const auto from = col.to_cpu().astype(Dtype::kFloat64).to_vector<double>();
      std::vector<double> expected(size_t(element_count(c.image)), 0);
      each(c, shape, [&](size_t at, int64_t place) {
        if (place >= 0) expected[size_t(place)] += from[at];
      });
      EXPECT_EQ(img.to_cpu().astype(Dtype::kFloat64).to_vector<double>(), expected) << i;
    }
  }
}

// float16 counts to 2048.
TEST(PatchSums, KeepTheDigitsOfSixteenBits) {
  for (const Device device : testing::devices()) {
    const Array col = ones({1, 1, 1, 3000, 1, 3000}, {Dtype::kFloat16, device});
    const Array img = col2im(col, 1, 1, 0, 0, 1, 5999);
    EXPECT_EQ(img(0, 0, 0, 2999).to_cpu().item<float>(), 3000);
  }
}

TEST(Patches, CountPositionsAsChainer) {
  EXPECT_EQ(get_conv_outsize(10, 3, 2, 1), 5);
  EXPECT_EQ(get_conv_outsize(10, 3, 2, 1, true), 6);
  EXPECT_EQ(get_conv_outsize(9, 3, 2, 0), 4);
  EXPECT_EQ(get_conv_outsize(9, 3, 2, 0, true), 4);
  EXPECT_EQ(get_conv_outsize(10, 3, 1, 0, false, 2), 6);
  EXPECT_EQ(get_conv_outsize(2, 3, 1, 0), 0);
  EXPECT_EQ(get_conv_outsize(1, 2, 2, 0, true), 1);
  EXPECT_EQ(get_conv_outsize(0, 1, 1, 0), 0);
  EXPECT_THROW(get_conv_outsize(4, 0, 1, 0), ValueError);
  EXPECT_THROW(get_conv_outsize(4, 1, 0, 0), ValueError);
  EXPECT_THROW(get_conv_outsize(4, 1, 1, -1), ValueError);
  EXPECT_THROW(get_conv_outsize(-1, 1, 1, 0), ValueError);
  EXPECT_THROW(get_conv_outsize(4, int64_t{1} << 40, 1, 0, false, int64_t{1} << 40), ValueError);
}

TEST(Patches, HaveChainersNames) {
  const Array img = testing::random_array({2, 3, 5, 6}, -1, 1);
  const Array col = im2col_cpu(img, 3, 2, 2, 1, 1, 0, 4, true);
  EXPECT_EQ(testing::difference(col, im2col(img, 3, 2, 2, 1, 1, 0, 4, true)), "");
  EXPECT_EQ(testing::difference(im2col_gpu(img, 3, 2, 2, 1, 1, 0, true),
                                im2col(img, 3, 2, 2, 1, 1, 0, 0, true)),
            "");
  EXPECT_EQ(testing::difference(col2im_cpu(col, 2, 1, 1, 0, 5, 6), col2im(col, 2, 1, 1, 0, 5, 6)),
            "");
  EXPECT_EQ(testing::difference(col2im_gpu(col, 2, 1, 1, 0, 5, 6), col2im(col, 2, 1, 1, 0, 5, 6)),
            "");
}

TEST(Patches, TakeEmptyBatches) {
  EXPECT_EQ(im2col(zeros({0, 3, 4, 4}), 3, 3, 1, 1, 1, 1).shape(), (Shape{0, 3, 3, 3, 4, 4}));
  EXPECT_EQ(col2im(zeros({2, 3, 3, 3, 0, 4}), 1, 1, 0, 0, 2, 6).shape(), (Shape{2, 3, 2, 6}));
  EXPECT_EQ(testing::difference(im2col(zeros({1, 1, 0, 2}, Dtype::kFloat32), 1, 1, 1, 1, 1, 0, 3),
                                full({1, 1, 1, 1, 2, 2}, 3, Dtype::kFloat32)),
            "");
}

TEST(Patches, SayWhatIsWrong) {
  const Array img = zeros({1, 2, 3, 4});
  EXPECT_EQ(error_of<ShapeError>([&] { im2col(img(0), 1, 1, 1, 1, 0, 0); }),
            "im2col: expected images (n, channels, height, width), got (2, 3, 4)");
  EXPECT_EQ(error_of<ShapeError>([&] { im2col(img, 5, 1, 1, 1, 0, 0); }),
            "im2col: a window of (5, 1) does not fit into images of (3, 4) with pad (0, 0)");
  EXPECT_EQ(error_of<ValueError>([&] { im2col(img, 1, 1, 0, 1, 0, 0); }),
            "im2col: expected a stride of at least 1, got 0");
  EXPECT_EQ(error_of<ShapeError>([&] { col2im(img, 1, 1, 0, 0, 3, 4); }),
            "col2im: expected patches (n, channels, kh, kw, oh, ow), as im2col makes them, got "
            "(1, 2, 3, 4)");
  EXPECT_EQ(error_of<DtypeError>([&] {
              col2im(zeros({1, 1, 1, 1, 1, 1}, Dtype::kInt32), 1, 1, 0, 0, 1, 1);
            }),
            "col2im: expected a floating dtype, got int32; convert with .astype(dtype::float32)");
}

}  // namespace
}  // namespace catena
