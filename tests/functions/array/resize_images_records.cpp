// Records of resizing.
#include "catena/functions/array/resize_images.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord resize_record(std::string variant, F::Extent2D size, F::ResizeImagesOptions options,
                             std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "resize_images";
  r.variant = std::move(variant);
  r.shapes = std::move(shapes);
  r.call = unary([=](const Variable& x) { return F::resize_images(x, size, options); });
  r.forward_launches = r.backward_launches = 1;
  r.errors = {
      error<ValueError>(
          [](const Draw& draw) {
            F::resize_images(draw({1, 1, 2, 2}), {0, 2});
          },
          "ResizeImages: expected a size of at least 1, got (0, 2)"),
      error<ShapeError>(
          [](const Draw& draw) {
            F::resize_images(draw({1, 1, 0, 2}), 3);
          },
          "ResizeImages: expected images with at least one element, got images of (0, 2)"),
      error<ShapeError>(
          [](const Draw& draw) {
            F::resize_images(draw({1, 1, 1, 2}), {1, int64_t{1} << 40});
          },
          "ResizeImages: images of (1, 2) and (1, 1099511627776), expected at most 1073741824 rows "
          "and columns"),
      type_error("ResizeImages", {{2, 3}},
                 "Expect: x.ndim == 4\nActual: 2 != 4\nInputs: x float64 (2, 3)\nExpected are "
                 "images (n, channels, height, width); the input has shape (2, 3)."),
  };
  return r;
}

FunctionRecord upsampling_record() {
  FunctionRecord r;
  r.function = "upsampling_nearest";
  r.shapes = {{{2, 3, 2, 3}}, {{0, 2, 1, 1}}};
  r.call = unary([](const Variable& x) { return F::upsampling_nearest(x, {3, 2}); });
  r.forward_launches = r.backward_launches = 1;
  r.errors = {
      error<ValueError>(
          [](const Draw& draw) {
            F::upsampling_nearest(draw({1, 1, 2, 2}), 0);
          },
          "UpsamplingNearest: expected a scale of at least 1, got (0, 0)"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(resize_images) {
  const F::ResizeImagesOptions centered{.align_corners = false}, nearest{F::ResizeMode::kNearest};
  return {resize_record("larger", {7, 5}, {}, {{{2, 3, 3, 4}}, {{1, 8, 1, 2}}, {{0, 2, 2, 2}}}),
          resize_record("smaller", {2, 3}, {}, {{{2, 3, 5, 4}}}),
          resize_record("one element", 1, {}, {{{2, 3, 5, 4}}}),
          resize_record("centered, larger", {7, 5}, centered, {{{2, 3, 3, 4}}, {{1, 1, 1, 1}}}),
          resize_record("centered, smaller", {2, 3}, centered, {{{2, 3, 7, 4}}}),
          resize_record("nearest", {5, 2}, nearest, {{{2, 3, 3, 7}}}),
          upsampling_record()};
}

}  // namespace catena
