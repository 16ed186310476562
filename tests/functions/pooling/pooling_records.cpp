// Records of pooling.
#include <algorithm>

#include "catena/functions/pooling/max_pooling_2d.h"
#include "functions/function_record.h"

namespace catena {
namespace {

// The largest element that the window sees; padding does not count.
Plain max_pooling_of(const Plain& x, const F::Extent2D& ksize, const F::MaxPooling2DOptions& o) {
  const F::Extent2D stride = o.stride.value_or(ksize);
  const auto positions = [&](int64_t size, int64_t kernel, int64_t step, int64_t pad) {
    const int64_t rounded = (size + 2 * pad - kernel + (o.cover_all ? step - 1 : 0)) / step;
    return rounded * step - pad < size ? rounded + 1 : rounded;
  };
  const int64_t height = x.shape[2], width = x.shape[3];
  return plain(
      {x.shape[0], x.shape[1], positions(height, ksize.height, stride.height, o.pad.height),
       positions(width, ksize.width, stride.width, o.pad.width)},
      [&](const Shape& i) {
        double largest = -1e300;
        for (int64_t a = 0; a < ksize.height; ++a)
          for (int64_t b = 0; b < ksize.width; ++b) {
            const int64_t h = i[2] * stride.height - o.pad.height + a,
                          w = i[3] * stride.width - o.pad.width + b;
            if (h < 0 || h >= height || w < 0 || w >= width) continue;
            largest = std::max(largest, x(i[0], i[1], h, w));
          }
        return largest;
      });
}

FunctionRecord max_pooling_record(std::string variant, F::Extent2D ksize,
                                  F::MaxPooling2DOptions options, const Shapes& shapes) {
  FunctionRecord r = unary_record(
      "max_pooling_2d", std::move(variant), shapes,
      [=](const Variable& x) { return F::max_pooling_2d(x, ksize, options); },
      [=](const Plain& x) { return max_pooling_of(x, ksize, options); });
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

// The largest element of each part; parts are those of adaptive average pooling.
Plain adaptive_max_pooling_of(const Plain& x, const F::Extent2D& size) {
  const auto begin = [](int64_t i, int64_t in, int64_t out) {
    return int64_t(std::floor(double(i * in) / double(out)));
  };
  const auto end = [](int64_t i, int64_t in, int64_t out) {
    return int64_t(std::ceil(double((i + 1) * in) / double(out)));
  };
  const int64_t height = x.shape[2], width = x.shape[3];
  return plain({x.shape[0], x.shape[1], size.height, size.width}, [&](const Shape& i) {
    double largest = -1e300;
    for (int64_t h = begin(i[2], height, size.height); h < end(i[2], height, size.height); ++h)
      for (int64_t w = begin(i[3], width, size.width); w < end(i[3], width, size.width); ++w)
        largest = std::max(largest, x(i[0], i[1], h, w));
    return largest;
  });
}

FunctionRecord adaptive_max_pooling_record(std::string variant, F::Extent2D size,
                                           const Shapes& shapes, std::optional<int> launches = {}) {
  FunctionRecord r = unary_record(
      "adaptive_max_pooling_2d", std::move(variant), shapes,
      [=](const Variable& x) { return F::adaptive_max_pooling_2d(x, size); },
      [=](const Plain& x) { return adaptive_max_pooling_of(x, size); });
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
