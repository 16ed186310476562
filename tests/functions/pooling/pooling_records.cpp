// Records of pooling.
#include "catena/functions/pooling/max_pooling_2d.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord max_pooling_record(std::string variant, F::Extent2D ksize,
                                  F::MaxPooling2DOptions options, const Shapes& shapes) {
  FunctionRecord r =
      unary_record("max_pooling_2d", std::move(variant), shapes,
                   [=](const Variable& x) { return F::max_pooling_2d(x, ksize, options); });
  r.forward_launches = r.backward_launches = 1;
  return r;
}

FunctionRecord max_pooling_errors() {
  FunctionRecord r = max_pooling_record("errors", 2, {}, {{1, 1, 2, 2}});
  const auto call = [](Shape x, F::Extent2D ksize, F::MaxPooling2DOptions options) {
    return [=](const Draw& draw) { F::max_pooling_2d(draw(x), ksize, options); };
  };
  r.errors = {
      type_error("MaxPooling2D", call({3, 4, 5}, 2, {}),
                 "Expect: x.ndim == 4\nActual: 3 != 4\nInputs: x float64 (3, 4, 5)\nExpected are "
                 "images (n, channels, height, width); the input has shape (3, 4, 5): one image is "
                 "x.expand_dims(0)."),
      integers_refused("MaxPooling2D", {1, 1, 2, 2}),
      error<ValueError>(call({1, 1, 4, 4}, {0, 2}, {}),
                        "MaxPooling2D: expected a window of at least 1, got (0, 2)"),
      error<ValueError>(call({1, 1, 4, 4}, 2, {.stride = F::Extent2D(0)}),
                        "MaxPooling2D: expected a stride of at least 1, got (0, 0)"),
      error<ValueError>(call({1, 1, 4, 4}, 2, {.pad = {0, -1}}),
                        "MaxPooling2D: expected a pad of at least 0, got (0, -1)"),
      error<ShapeError>(call({1, 1, 4, 4}, {6, 2}, {}),
                        "MaxPooling2D: a window of (6, 2) does not fit into an image of (4, 4) "
                        "with pad (0, 0); use a larger image, more padding or a smaller window"),
      error<ShapeError>(
          call({1, 1, 4, 4}, 2, {.pad = 2}),
          "MaxPooling2D: a window of (2, 2) with pad (2, 2) would see padding alone at "
          "the edge of an image of (4, 4); use a pad below the window's size, and "
          "images with elements"),
      error<ShapeError>(
          call({1, 1, 0, 4}, 2, {.pad = 1}),
          "MaxPooling2D: a window of (2, 2) with pad (1, 1) would see padding alone at "
          "the edge of an image of (0, 4); use a pad below the window's size, and "
          "images with elements"),
      error<ShapeError>(call({1, 1, 4, 4}, 65536, {.stride = F::Extent2D(1), .pad = 65535}),
                        "MaxPooling2D: a window of (65536, 65536) has more than 2147483647 "
                        "elements; use a smaller one"),
  };
  return r;
}

FunctionRecord adaptive_max_pooling_record(std::string variant, F::Extent2D size,
                                           const Shapes& shapes, std::optional<int> launches = {}) {
  FunctionRecord r =
      unary_record("adaptive_max_pooling_2d", std::move(variant), shapes,
                   [=](const Variable& x) { return F::adaptive_max_pooling_2d(x, size); });
  r.forward_launches = r.backward_launches = launches;
  return r;
}

FunctionRecord adaptive_max_pooling_errors() {
  FunctionRecord r = adaptive_max_pooling_record("errors", 1, {{1, 1, 2, 2}});
  const auto call = [](Shape x, F::Extent2D size) {
    return [=](const Draw& draw) { F::adaptive_max_pooling_2d(draw(x), size); };
  };
  r.errors = {
      type_error("AdaptiveMaxPooling2D", call({3, 4, 5}, 2),
                 "Expect: x.ndim == 4\nActual: 3 != 4\nInputs: x float64 (3, 4, 5)\nExpected are "
                 "images (n, channels, height, width); the input has shape (3, 4, 5): one image is "
                 "x.expand_dims(0)."),
      error<ValueError>(call({1, 1, 2, 2}, {0, 1}),
                        "AdaptiveMaxPooling2D: expected a size of at least 1, got (0, 1)"),
      error<ShapeError>(call({1, 1, 2, 0}, 1),
                        "AdaptiveMaxPooling2D: expected images with at least one element, got "
                        "images of (2, 0)"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(pooling) {
  return {
      max_pooling_record("", 2, {}, {{2, 3, 4, 6}, {1, 1, 5, 3}, {0, 3, 4, 4}, {2, 0, 4, 4}}),
      max_pooling_record("overlapping", 3, {.stride = F::Extent2D(2), .pad = 1},
                         {{2, 3, 4, 3}, {1, 8, 5, 6}}),
      max_pooling_record("no cover_all", {3, 2},
                         {.stride = F::Extent2D(2, 3), .pad = {1, 0}, .cover_all = false},
                         {{2, 3, 6, 7}}),
      max_pooling_record("nothing behind the image", 2, {.pad = 1}, {{2, 2, 3, 4}}),
      max_pooling_record("every position", 3, {.stride = F::Extent2D(1), .pad = 1}, {{1, 4, 4, 3}}),
      max_pooling_errors(),
      adaptive_max_pooling_record("", {3, 2},
                                  {{2, 3, 7, 5}, {1, 2, 2, 1}, {0, 3, 4, 3}, {2, 0, 4, 3}}),
      adaptive_max_pooling_record("rows alone are uneven", {3, 2}, {{2, 3, 5, 6}}),
      adaptive_max_pooling_record("columns alone are uneven", {2, 4}, {{2, 3, 4, 6}}),
      adaptive_max_pooling_record("larger than the images", {5, 7}, {{2, 3, 3, 2}}),
      adaptive_max_pooling_record("equal parts", {2, 3}, {{2, 3, 4, 6}}, 1),
      adaptive_max_pooling_record("one part", 1, {{2, 3, 4, 6}}, 1),
      adaptive_max_pooling_errors()};
}

}  // namespace catena
