// Records of average pooling and unpooling.
#include "catena/functions/pooling/average_pooling_2d.h"
#include "catena/functions/pooling/unpooling_2d.h"
#include "functions/function_record.h"

namespace catena {
namespace {

// The function asks one slot each way.
FunctionRecord of_function(const char* function, std::string variant, const Shapes& inputs,
                           std::function<Variable(const Variable&)> call) {
  FunctionRecord r = unary_record(function, std::move(variant), inputs, std::move(call));
  r.forward_launches = r.backward_launches = 1;
  return r;
}

FunctionRecord average_record(std::string variant, F::Extent2D ksize,
                              F::AveragePooling2DOptions options, const Shapes& shapes) {
  return of_function("average_pooling_2d", std::move(variant), shapes,
                     [=](const Variable& x) { return F::average_pooling_2d(x, ksize, options); });
}

FunctionRecord covering_record() {
  FunctionRecord r =
      average_record("cover_all", {3, 2},
                     {.stride = F::Extent2D(2), .pad = {1, 0}, .cover_all = true}, {{2, 3, 6, 5}});
  r.forward_launches = 7;   // for each of two axes with a rest its factors, in two, and a product
  r.backward_launches = 3;  // one more for each axis
  return r;
}

FunctionRecord average_errors() {
  FunctionRecord r = average_record("errors", 2, {}, {{1, 1, 2, 2}});
  const auto call = [](Shape x, F::Extent2D ksize, F::AveragePooling2DOptions options) {
    return [=](const Draw& draw) { F::average_pooling_2d(draw(x), ksize, options); };
  };
  r.errors = {
      type_error("AveragePooling2D", call({3, 4, 5}, 2, {}),
                 "Expect: x.ndim == 4\nActual: 3 != 4\nInputs: x float64 (3, 4, 5)\nExpected are "
                 "images (n, channels, height, width); the input has shape (3, 4, 5): one image is "
                 "x.expand_dims(0)."),
      integers_refused("AveragePooling2D", {1, 1, 2, 2}),
      error<ValueError>(call({1, 1, 4, 4}, {0, 2}, {}),
                        "AveragePooling2D: expected a window of at least 1, got (0, 2)"),
      error<ValueError>(call({1, 1, 4, 4}, 2, {.stride = F::Extent2D(0)}),
                        "AveragePooling2D: expected a stride of at least 1, got (0, 0)"),
      error<ValueError>(call({1, 1, 4, 4}, 2, {.pad = {0, -1}}),
                        "AveragePooling2D: expected a pad of at least 0, got (0, -1)"),
      error<ShapeError>(call({1, 1, 4, 4}, {6, 2}, {}),
                        "AveragePooling2D: a window of (6, 2) does not fit into an image of (4, 4) "
                        "with pad (0, 0); use a larger image, more padding or a smaller window"),
  };
  return r;
}

FunctionRecord global_record() {
  FunctionRecord r =
      of_function("global_average_pooling_2d", "", {{2, 3, 4, 5}, {1, 8, 1, 1}, {0, 3, 2, 2}},
                  [](const Variable& x) { return F::global_average_pooling_2d(x); });
  r.errors = {
      error<ShapeError>({{2, 3, 0, 4}},
                        "GlobalAveragePooling2D: expected images with at least one element, got "
                        "images of (0, 4)"),
      type_error("GlobalAveragePooling2D", {{3, 4}},
                 "Expect: x.ndim == 4\nActual: 2 != 4\nInputs: x float64 (3, 4)\nExpected are "
                 "images (n, channels, height, width); the input has shape (3, 4)."),
  };
  return r;
}

FunctionRecord adaptive_record(std::string variant, F::Extent2D size, const Shapes& shapes) {
  FunctionRecord r =
      of_function("adaptive_average_pooling_2d", std::move(variant), shapes,
                  [=](const Variable& x) { return F::adaptive_average_pooling_2d(x, size); });
  r.errors = {
      error<ValueError>(
          [](const Draw& draw) {
            F::adaptive_average_pooling_2d(draw({1, 1, 2, 2}), {0, 1});
          },
          "AdaptiveAveragePooling2D: expected a size of at least 1, got (0, 1)"),
      error<ShapeError>(
          [](const Draw& draw) {
            F::adaptive_average_pooling_2d(draw({1, 1, 2, 0}), 1);
          },
          "AdaptiveAveragePooling2D: expected images with at least one element, got images of "
          "(2, 0)"),
  };
  return r;
}

FunctionRecord unpooling_record(std::string variant, F::Extent2D ksize,
                                F::Unpooling2DOptions options, const Shapes& shapes) {
  return of_function("unpooling_2d", std::move(variant), shapes,
                     [=](const Variable& x) { return F::unpooling_2d(x, ksize, options); });
}

FunctionRecord unpooling_errors() {
  FunctionRecord r = unpooling_record("errors", 2, {.cover_all = false}, {{1, 1, 2, 2}});
  const auto call = [](Shape x, F::Extent2D ksize, F::Unpooling2DOptions options) {
    return [=](const Draw& draw) { F::unpooling_2d(draw(x), ksize, options); };
  };
  r.errors = {
      error<ValueError>(call({1, 1, 4, 4}, 0, {}),
                        "Unpooling2D: expected a window of at least 1, got (0, 0)"),
      error<ValueError>(call({1, 1, 4, 4}, 2, {.outsize = F::Extent2D(8, 0)}),
                        "Unpooling2D: expected a result of at least 1, got (8, 0)"),
      error<ShapeError>(call({1, 1, 2, 1}, 2, {.pad = 1}),
                        "Unpooling2D: windows of (2, 2) with stride (2, 2) and pad (1, 1) make no "
                        "image of (2, 1); use less padding, a larger window, or an outsize"),
      error<ShapeError>(call({1, 1, 0, 1}, 2, {}),
                        "Unpooling2D: expected images with at least one element, got images of "
                        "(0, 1)"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(average_pooling) {
  return {
      average_record("", 2, {}, {{2, 3, 4, 6}, {1, 1, 5, 3}, {0, 3, 4, 4}}),
      average_record("overlapping", 3, {.stride = F::Extent2D(2), .pad = 1},
                     {{2, 3, 4, 3}, {1, 8, 5, 6}}),
      average_record("uneven", {3, 2}, {.stride = F::Extent2D(2, 3), .pad = {1, 3}},
                     {{2, 3, 6, 7}}),
      covering_record(),
      average_record("whole images", {4, 3}, {}, {{2, 3, 4, 3}}),
      average_errors(),
      global_record(),
      adaptive_record("", {3, 2}, {{2, 3, 7, 5}, {1, 2, 2, 1}, {0, 3, 4, 4}}),
      adaptive_record("equal parts", {2, 3}, {{2, 3, 4, 6}}),
      adaptive_record("one part", 1, {{2, 3, 4, 6}}),
      unpooling_record("", 2, {.cover_all = false}, {{2, 3, 4, 3}, {0, 2, 1, 1}}),
      unpooling_record("cover_all", 3, {.stride = F::Extent2D(2), .pad = 1},
                       {{2, 3, 4, 3}, {1, 8, 3, 2}}),
      unpooling_record("outsize", {2, 3},
                       {.stride = F::Extent2D(3, 2), .outsize = F::Extent2D(9, 4)}, {{1, 2, 2, 3}}),
      unpooling_errors()};
}

}  // namespace catena
