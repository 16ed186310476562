// Records of spatial pyramid pooling.
#include "catena/functions/pooling/spatial_pyramid_pooling_2d.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord pyramid_record(std::string variant, int64_t levels, std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "spatial_pyramid_pooling_2d";
  r.variant = std::move(variant);
  r.shapes = std::move(shapes);
  r.call = unary([=](const Variable& x) { return F::spatial_pyramid_pooling_2d(x, levels); });
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(spatial_pyramid_pooling) {
  FunctionRecord three = pyramid_record("", 3, {{{2, 3, 9, 8}}, {{0, 2, 4, 8}}});
  const auto call = [](Shape x, int64_t levels) {
    return [=](const Draw& draw) { F::spatial_pyramid_pooling_2d(draw(x), levels); };
  };
  three.errors = {
      error<ValueError>(call({1, 1, 4, 4}, 0),
                        "SpatialPyramidPooling2D: expected a pyramid_height of [1, 16], got 0"),
      error<ShapeError>(call({1, 1, 5, 8}, 3),
                        "SpatialPyramidPooling2D: level 2 has 4 x 4 parts of (2, 2), some of which "
                        "would see no element of an image of (5, 8); use larger images or a lower "
                        "pyramid"),
      type_error("SpatialPyramidPooling2D", call({3, 4}, 1),
                 "Expect: x.ndim == 4\nActual: 2 != 4\nInputs: x float64 (3, 4)\nExpected are "
                 "images (n, channels, height, width); the input has shape (3, 4)."),
  };
  return {three, pyramid_record("one level", 1, {{{2, 3, 5, 4}}}),
          pyramid_record("uneven", 2, {{{1, 2, 5, 7}}})};
}

}  // namespace catena
