// Makers of pooling and of normalization over neighbouring channels.
#include "catena/functions/math/sum.h"
#include "catena/functions/normalization/local_response_normalization.h"
#include "catena/functions/pooling/average_pooling_2d.h"
#include "catena/functions/pooling/max_pooling_2d.h"
#include "functions/caffe/import/builder.h"

namespace catena::functions::caffe {
namespace {

enum : int64_t { kMax = 0, kAverage = 1 };

struct PoolingFields {
  int64_t pool = kMax;
  bool global = false, rounds_up = true;
  ExtentOption kernel, stride, pad;
};

PoolingFields pooling_fields(const LayerSource& source) {
  PoolingFields f;
  source.each_option([&](Message& m) {
    m.read(1, f.pool);
    m.read(2, f.kernel.numbers);
    m.read(3, f.stride.numbers);
    m.read(4, f.pad.numbers);
    m.read(5, f.kernel.height);
    m.read(6, f.kernel.width);
    m.read(7, f.stride.height);
    m.read(8, f.stride.width);
    m.read(9, f.pad.height);
    m.read(10, f.pad.width);
    m.read(12, f.global);
    if (m.field() == 13) f.rounds_up = m.integer() == 0;
  });
  return f;
}

Variable whole_image_max(const Variable& x) {
  CATENA_CHECK(ShapeError, x.ndim() == 4,
               "Pooling: expected (n, channels, height, width), got shape ", x.shape());
  return max_pooling_2d(x, {x.shape()[2], x.shape()[3]}, {.cover_all = false});
}

}  // namespace

Step make_pooling(Builder& b) {
  const LayerSource& source = b.source;
  const PoolingFields f = pooling_fields(source);
  if (f.pool != kMax && f.pool != kAverage)
    source.refuse("pooling ", f.pool,
                  " (stochastic is 2) is not supported; maximum and average are");
  if (f.global && f.pool == kMax) return step([](const Variable& x) { return whole_image_max(x); });
  if (f.global) return step([](const Variable& x) { return mean(x, {2, 3}, /*keepdims=*/true); });
  const Extent2D kernel = f.kernel.value(source, "kernel_size", 0),
                 stride = f.stride.value(source, "stride", 1), pad = f.pad.value(source, "pad", 0);
  const auto at_least = [&](const char* name, const Extent2D& e, int64_t least) {
    if (e.height < least || e.width < least)
      source.refuse(name, " is (", e.height, ", ", e.width, "), expected at least ", least);
  };
  at_least("kernel_size", kernel, 1);
  at_least("stride", stride, 1);
  at_least("pad", pad, 0);
  if (f.pool == kMax)
    return step([=, up = f.rounds_up](const Variable& x) {
      return max_pooling_2d(x, kernel, {.stride = stride, .pad = pad, .cover_all = up});
    });
  return step([=, up = f.rounds_up](const Variable& x) {
    return average_pooling_2d(x, kernel, {.stride = stride, .pad = pad, .cover_all = up});
  });
}

Step make_lrn(Builder& b) {
  const LayerSource& source = b.source;
  int64_t size = 5, region = 0;
  double alpha = 1, beta = 0.75, k = 1;
  source.each_option([&](Message& m) {
    m.read(1, size);
    m.read(2, alpha);
    m.read(3, beta);
    m.read(4, region);
    m.read(5, k);
  });
  if (region != 0)
    source.refuse("normalization within channels is not supported; that across channels is");
  if (size < 1) source.refuse("local_size is ", size, ", expected at least 1");
  return step([size, k, alpha, beta](const Variable& x) {
    return local_response_normalization(x, size, k, alpha / double(size), beta);
  });
}

}  // namespace catena::functions::caffe
