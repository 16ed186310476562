// Pooling of images.
#include "catena/functions/pooling.h"

#include "oracle/functions/functions.h"

namespace catena::oracle {
namespace {
namespace F = catena::functions;

F::Extent2D extent(const Inputs& in, const char* name) {
  const Dims two = in->dims(name);
  return {two.at(0), two.at(1)};
}

// Stride and padding, of any pooling's options.
template <class Options>
Options options_of(const Inputs& in) {
  Options options;
  if (in->has("stride")) options.stride = extent(in, "stride");
  options.pad = extent(in, "pad");
  return options;
}

Variables unpooling(const Inputs& in) {
  auto options = options_of<F::Unpooling2DOptions>(in);
  options.cover_all = in->flag("cover_all");
  if (in->has("outsize")) options.outsize = extent(in, "outsize");
  return {F::unpooling_2d(in[0], extent(in, "ksize"), options)};
}

}  // namespace

void add_pooling(Functions& f) {
  f["max_pooling_2d"] = [](const Inputs& in) {
    auto options = options_of<F::MaxPooling2DOptions>(in);
    options.cover_all = in->flag("cover_all");
    return Variables{F::max_pooling_2d(in[0], extent(in, "ksize"), options)};
  };
  f["average_pooling_2d"] = [](const Inputs& in) {
    auto options = options_of<F::AveragePooling2DOptions>(in);
    options.cover_all = in->has("cover_all");
    return Variables{F::average_pooling_2d(in[0], extent(in, "ksize"), options)};
  };
  f["global_average_pooling_2d"] = [](const Inputs& in) {
    return Variables{F::global_average_pooling_2d(in[0])};
  };
  f["adaptive_average_pooling_2d"] = [](const Inputs& in) {
    return Variables{F::adaptive_average_pooling_2d(in[0], extent(in, "size"))};
  };
  f["adaptive_max_pooling_2d"] = [](const Inputs& in) {
    return Variables{F::adaptive_max_pooling_2d(in[0], extent(in, "size"))};
  };
  f["spatial_pyramid_pooling_2d"] = [](const Inputs& in) {
    return Variables{F::spatial_pyramid_pooling_2d(in[0], in->integer("height"))};
  };
  f["unpooling_2d"] = unpooling;
}

}  // namespace catena::oracle
