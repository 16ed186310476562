#include "catena/functions/pooling/spatial_pyramid_pooling_2d.h"

#include "catena/functions/array/concat.h"
#include "catena/functions/array/reshape.h"
#include "functions/common/checks.h"
#include "functions/common/image_window.h"

namespace catena::functions {
namespace {

constexpr const char* kPyramid = "SpatialPyramidPooling2D";
constexpr int64_t kMostLevels = 16;

void check_height(int64_t pyramid_height) {
  CATENA_CHECK(ValueError, pyramid_height >= 1 && pyramid_height <= kMostLevels, kPyramid,
               ": expected a pyramid_height of [1, ", kMostLevels, "], got ", pyramid_height);
}

// `bins` parts of an axis: windows of `kernel` elements side by side, the first one at -pad.
struct Parts {
  int64_t kernel, pad;
  bool all_see_the_image;
  Parts(int64_t extent, int64_t bins)
      : kernel((extent + bins - 1) / bins),
        pad((kernel * bins - extent) / 2),
        all_see_the_image(pad < kernel && (bins - 1) * kernel - pad < extent) {}
};

// How level `level` pools images of this size.
struct Level {
  Extent2D ksize, pad;
};
Level level_of(int64_t level, const Extent2D& image) {
  const int64_t bins = int64_t{1} << level;
  const Parts rows(image.height, bins), columns(image.width, bins);
  CATENA_CHECK(
      ShapeError,
      image.height >= 1 && image.width >= 1 && rows.all_see_the_image && columns.all_see_the_image,
      kPyramid, ": level ", level, " has ", bins, " x ", bins, " parts of (", rows.kernel, ", ",
      columns.kernel, "), some of which would see no element of an image of ", text_of(image),
      "; use larger images or a lower pyramid");
  return {{rows.kernel, columns.kernel}, {rows.pad, columns.pad}};
}

Variable pooled(const Variable& x, const Level& level) {
  const Variable y = max_pooling_2d(x, level.ksize, {.pad = level.pad});
  const Shape& s = y.shape();
  return reshape(y, {s[0], s[1] * s[2] * s[3], 1, 1});
}

void check_shape(const Array& images, const std::array<int64_t, 3>& shape) {
  const TypeOf x(images, "x");
  const Checks all(kPyramid, x);
  const auto advised = all.advised([&] {
    return message("This layer is for images (n, ", shape[0], ", ", shape[1], ", ", shape[2],
                   "); spatial_pyramid_pooling_2d takes any.");
  });
  advised.require(x.shape(1) == shape[0], x.shape(2) == shape[1], x.shape(3) == shape[2]);
}

Variable pyramid(const Variable& x, int64_t height) {
  const Extent2D image(x.shape()[2], x.shape()[3]);
  Variables levels;
  for (int64_t i = 0; i < height; ++i) level_of(i, image);
  for (int64_t i = 0; i < height; ++i) levels.push_back(pooled(x, level_of(i, image)));
  return height == 1 ? levels[0] : concat(levels, 1);
}

}  // namespace

Variable spatial_pyramid_pooling_2d(const VariableOperand& operand, int64_t pyramid_height) {
  check_height(pyramid_height);
  const Variable& x = operand.variable(kPyramid);
  check_images(kPyramid, x.data());
  return pyramid(x, pyramid_height);
}

SpatialPyramidPooling2D::SpatialPyramidPooling2D(std::array<int64_t, 3> x_shape,
                                                 int64_t pyramid_height)
    : x_shape_(x_shape), pyramid_height_(pyramid_height) {
  check_height(pyramid_height);
  for (int64_t i = 0; i < pyramid_height; ++i) level_of(i, {x_shape[1], x_shape[2]});
}

Variable SpatialPyramidPooling2D::operator()(const VariableOperand& operand) const {
  const Variable& x = operand.variable(kPyramid);
  check_images(kPyramid, x.data());
  check_shape(x.data(), x_shape_);
  return pyramid(x, pyramid_height_);
}

void SpatialPyramidPooling2D::visit_parameters(const Visitor&, const std::string&) {}

}  // namespace catena::functions
