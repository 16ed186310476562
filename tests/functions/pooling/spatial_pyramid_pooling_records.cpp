// Records of spatial pyramid pooling.
#include <algorithm>

#include "catena/functions/pooling/spatial_pyramid_pooling_2d.h"
#include "functions/function_record.h"

namespace catena {
namespace {

// Parts of ceil(extent / bins) elements, of which the first begins before the image by half of what
// they have too much.
Plain pyramid_of(const Plain& x, int64_t levels) {
  const int64_t images = x.shape[0], channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  int64_t parts = 0;
  for (int64_t l = 0; l < levels; ++l) parts += int64_t{1} << (2 * l);
  Plain y{{images, channels * parts, 1, 1}, {}};
  for (int64_t n = 0; n < images; ++n)
    for (int64_t l = 0; l < levels; ++l) {
      const int64_t bins = int64_t{1} << l;
      const int64_t kh = (height + bins - 1) / bins, kw = (width + bins - 1) / bins;
      const int64_t ph = (kh * bins - height) / 2, pw = (kw * bins - width) / 2;
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t i = 0; i < bins; ++i)
          for (int64_t j = 0; j < bins; ++j) {
            double largest = -1e300;
            for (int64_t h = std::max<int64_t>(0, i * kh - ph);
                 h < std::min(height, (i + 1) * kh - ph); ++h)
              for (int64_t w = std::max<int64_t>(0, j * kw - pw);
                   w < std::min(width, (j + 1) * kw - pw); ++w)
                largest = std::max(largest, x(n, c, h, w));
            y.values.push_back(largest);
          }
    }
  return y;
}

FunctionRecord pyramid_record(std::string variant, int64_t levels, std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "spatial_pyramid_pooling_2d";
  r.variant = std::move(variant);
  r.shapes = std::move(shapes);
  r.call = unary([=](const Variable& x) { return F::spatial_pyramid_pooling_2d(x, levels); });
  r.reference = [=](const Plains& in) { return Plains{pyramid_of(in[0], levels)}; };
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
