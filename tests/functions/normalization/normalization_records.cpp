// Records of normalizations.
#include "catena/functions/normalization.h"
#include "functions/function_record.h"

namespace catena {
namespace {

constexpr double kEps = 0.1;

// The index of an element's channel; channels have `axes` axes.
Shape channel_of(const Shape& i, int axes) {
  Shape channel;
  for (int k = 1; k <= axes; ++k) channel.push_back(i[size_t(k)]);
  return channel;
}

// The means over channels of value(index, channel).
Plain channel_means(const Shape& x, const Shape& channels,
                    const std::function<double(const Shape& i, const Shape& channel)>& value) {
  const double m = double(element_count(x)) / double(element_count(channels));
  return plain(channels, [&](const Shape& wanted) {
    double total = 0;
    plain(x, [&](const Shape& i) {
      if (channel_of(i, channels.ndim()) == wanted) total += value(i, wanted) / m;
      return 0.0;
    });
    return total;
  });
}

// x, gamma and beta are in[0] to in[2].
Plain normalized(const Plains& in, const Plain& mean, const Plain& var) {
  const int axes = in[1].shape.ndim();
  return plain(in[0].shape, [&](const Shape& i) {
    const Shape c = channel_of(i, axes);
    return (in[0].at(i) - mean.at(c)) / std::sqrt(var.at(c) + kEps) * in[1].at(c) + in[2].at(c);
  });
}

Plain by_batch(const Plains& in) {
  const Plain& x = in[0];
  const Plain mean =
      channel_means(x.shape, in[1].shape, [&](const Shape& i, const Shape&) { return x.at(i); });
  const Plain var = channel_means(x.shape, in[1].shape, [&](const Shape& i, const Shape& c) {
    return std::pow(x.at(i) - mean.at(c), 2);
  });
  return normalized(in, mean, var);
}

Plain relu_of_sum(const Plain& a, const Plain& b) {
  return plain(a.shape, [&](const Shape& i) { return std::max(a.at(i) + b.at(i), 0.0); });
}

const InputRange kX{-2, 3}, kGamma{0.5, 2}, kBeta{-1, 1}, kVar{0.5, 2};

FunctionRecord batch_record() {
  FunctionRecord r;
  r.function = "batch_normalization";
  r.ranges = {kX, kGamma, kBeta};
  r.shapes = {{{4, 3, 2, 3}, {3}, {3}}, {{7, 3}, {3}, {3}}, {{3, 2, 2, 3}, {2, 2}, {2, 2}}};
  r.call = [](const Variables& v) {
    return Variables{F::batch_normalization(v[0], v[1], v[2], {.eps = kEps})};
  };
  r.reference = [](const Plains& in) { return Plains{by_batch(in)}; };
  r.forward_launches = r.backward_launches = 1;
  const auto call = [](Shape x, Shape gamma, Dtype dtype = Dtype::kFloat64) {
    return [=](const Draw& draw) {
      F::batch_normalization(draw(x, 0, 5, 0, dtype), draw(gamma), draw({3}));
    };
  };
  const std::string label = "BatchNormalization";
  r.errors = {
      type_error(
          label, call({2, 4, 5}, {3}),
          "Expect: x.shape[1] == channels[0]\nActual: 4 != 3\nInputs: x float64 (2, 4, 5), gamma "
          "float64 (3,), beta float64 (3,)\nThe layer takes (n, 3, ...), n samples of 3 channels; "
          "the input has shape (2, 4, 5), for which the layer is BatchNormalization(4)."),
      type_error(label, call({3}, {3}),
                 "Expect: x.ndim >= 2\nActual: 1 < 2\nInputs: x float64 (3,), gamma float64 (3,), "
                 "beta float64 (3,)\nThe layer takes (n, 3, ...), n samples of 3 channels; the "
                 "input has shape (3,)."),
      type_error(label, call({2, 3}, {3}, Dtype::kInt32),
                 "Expect: x.dtype.kind == f\nActual: i != f\nInputs: x int32 (2, 3), gamma float64 "
                 "(3,), beta float64 (3,)\nThe input is int32, the "
                 "layer float64: convert the input with .astype(dtype::float64)."),
      type_error(label, call({2, 4}, {4}),
                 "Expect: beta.shape[0] == channels[0]\nActual: 3 != 4\nInputs: x float64 (2, 4), "
                 "gamma float64 (4,), beta float64 (3,)\nFor x of float64 with 4 channels, gamma, "
                 "beta, mean and var are expected as float64 (4,)."),
      type_error(
          label,
          [](const Draw& draw) {
            F::batch_normalization(draw({4, 3, 2}), draw({3}), draw({3}),
                                   {.residual = Variable(draw({4, 3, 5}))});
          },
          "Expect: residual.shape[2] == x.shape[2]\nActual: 5 != 2\nInputs: x float64 (4, 3, 2), "
          "gamma float64 (3,), beta float64 (3,), residual float64 (4, 3, 5)\nThe residual is "
          "added to the normalized x: it has the shape and dtype of x, float64 (4, 3, 2)."),
      error<ValueError>(
          [](const Draw& draw) {
            F::batch_normalization(draw({1, 3}), draw({3}), draw({3}));
          },
          "BatchNormalization: x of shape (1, 3) has one value a channel, which has no variance; "
          "use at least two samples, or given statistics (fixed_batch_normalization, a layer in "
          "test state). If the last batch of an epoch has one sample, drop the last batch "
          "(drop_last)."),
  };
  return r;
}

FunctionRecord fused_record() {
  FunctionRecord r = batch_record();
  r.variant = "residual and relu";
  r.ranges.push_back(kX);
  for (Shapes& shapes : r.shapes) shapes.push_back(shapes[0]);
  r.call = [](const Variables& v) {
    return Variables{
        F::batch_normalization(v[0], v[1], v[2], {.eps = kEps, .relu = true, .residual = v[3]})};
  };
  r.reference = [](const Plains& in) { return Plains{relu_of_sum(by_batch(in), in[3])}; };
  r.errors = {};
  return r;
}

FunctionRecord fixed_record() {
  FunctionRecord r = batch_record();
  r.function = "fixed_batch_normalization";
  r.ranges = {kX, kGamma, kBeta, kBeta, kVar};
  r.shapes.push_back({{0, 3, 2}, {3}, {3}});
  for (Shapes& shapes : r.shapes) {
    shapes.push_back(shapes[1]);
    shapes.push_back(shapes[1]);
  }
  r.call = [](const Variables& v) {
    return Variables{F::fixed_batch_normalization(v[0], v[1], v[2], v[3], v[4], {.eps = kEps})};
  };
  r.reference = [](const Plains& in) { return Plains{normalized(in, in[3], in[4])}; };
  r.backward_launches = {};  // those of mean and var are composed
  r.errors = {error<ValueError>(
      [](const Draw& draw) {
        F::fixed_batch_normalization(draw({2, 3}), draw({3}), draw({3}), draw({3}), draw({3}),
                                     {.eps = -1});
      },
      "FixedBatchNormalization: expected an eps of at least 0, got -1")};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(normalization) { return {batch_record(), fused_record(), fixed_record()}; }

}  // namespace catena
