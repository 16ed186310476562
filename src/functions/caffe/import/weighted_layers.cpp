// Makers of the layers with weights or statistics.
#include "catena/array/math.h"
#include "catena/autograd/function_set.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/deconvolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "functions/caffe/import/builder.h"

namespace catena::functions::caffe {
namespace {

struct ConvolutionFields {
  int64_t filters = 0, groups = 1;
  bool bias = true;
  ExtentOption pad, kernel, stride, dilation;
};

ConvolutionFields convolution_fields(const LayerSource& source) {
  ConvolutionFields f;
  source.each_option([&](Message& m) {
    m.read(1, f.filters);
    m.read(2, f.bias);
    m.read(3, f.pad.numbers);
    m.read(4, f.kernel.numbers);
    m.read(5, f.groups);
    m.read(6, f.stride.numbers);
    m.read(9, f.pad.height);
    m.read(10, f.pad.width);
    m.read(11, f.kernel.height);
    m.read(12, f.kernel.width);
    m.read(13, f.stride.height);
    m.read(14, f.stride.width);
    if (m.field() == 16 && m.integer() != 1)
      source.refuse("convolutions along another axis than 1");
    m.read(18, f.dilation.numbers);
  });
  return f;
}

// The first two extents of W, (filters, channels / groups) of a convolution.
std::pair<int64_t, int64_t> leading_extents(const LayerSource& source) {
  const Blob& W = source.blob(0, "W");
  if (W.dims.size() < 2) source.refuse("W has ", W.dims.size(), " axes, expected 4");
  return {W.dims[0], W.dims[1]};
}

}  // namespace

namespace {

// Of both directions, whose W begins with the channels of the smaller image: the first extent of W
// is divided into the groups.
template <class Layer, class Options>
Step make_convolution_of(Builder& b, bool transposed) {
  const LayerSource& source = b.source;
  const ConvolutionFields f = convolution_fields(source);
  const auto [first, per_group] = leading_extents(source);
  const Extent2D kernel = f.kernel.value(source, "kernel_size", 0);
  Options o;
  o.initialW = source.blob(0, "W", {first, per_group, kernel.height, kernel.width});
  if (f.groups < 1 || f.groups > first)
    source.refuse("it has ", f.groups, " groups, but W has ", first, " filters");
  const int64_t whole = per_group * f.groups, out = transposed ? whole : first;
  if (f.filters != 0 && f.filters != out)
    source.refuse("num_output is ", f.filters, ", but W is for ", out);
  o.stride = f.stride.value(source, "stride", 1);
  o.pad = f.pad.value(source, "pad", 0);
  o.dilation = f.dilation.value(source, "dilation", 1);
  o.groups = f.groups;
  o.nobias = !f.bias;
  if (f.bias) o.initial_bias = source.blob(1, "b", {out});
  b.add(Layer(transposed ? first : whole, out, kernel, o));
  return apply<Layer>();
}

}  // namespace

Step make_convolution(Builder& b) {
  return make_convolution_of<Convolution2D, Convolution2DOptions>(b, false);
}

Step make_deconvolution(Builder& b) {
  return make_convolution_of<Deconvolution2D, Deconvolution2DOptions>(b, true);
}

Step make_inner_product(Builder& b) {
  const LayerSource& source = b.source;
  int64_t num_output = 0;
  bool bias = true, transposed = false;
  source.each_option([&](Message& m) {
    m.read(1, num_output);
    m.read(2, bias);
    if (m.field() == 5 && m.integer() != 1) source.refuse("products along another axis than 1");
    m.read(6, transposed);
  });
  const std::vector<int64_t>& dims = source.blob(0, "W").dims;
  if (dims.size() != 2 && dims.size() != 4)
    source.refuse("W has ", dims.size(), " axes, expected (out, in) or (1, 1, out, in)");
  int64_t out = dims[dims.size() - 2], in = dims[dims.size() - 1];
  Array W = source.blob(0, "W", {out, in});
  if (transposed) {
    std::swap(out, in);
    W = W.T().copy();
  }
  if (num_output != 0 && num_output != out)
    source.refuse("num_output is ", num_output, ", but W has ", out, " rows");
  LinearOptions o;
  o.nobias = !bias;
  o.initialW = W;
  o.flatten = true;
  if (bias) o.initial_bias = source.blob(1, "b", {out});
  b.add(Linear(in, out, o));
  return apply<Linear>();
}

// Its statistics are sums, which a third blob divides.
Step make_batch_norm(Builder& b) {
  const LayerSource& source = b.source;
  bool fixed = false;
  double decay = 0.999, eps = 1e-5;
  source.each_option([&](Message& m) {
    m.read(1, fixed);
    m.read(2, decay);
    m.read(3, eps);
  });
  const int64_t channels = source.blob(0, "the mean").count();
  const Array mean = source.blob(0, "the mean", {channels}),
              var = source.blob(1, "the variance", {channels});
  float factor = 1;
  if (source.blobs.size() > 2) {
    factor = source.blob(2, "the factor", {1}).reshape({}).item<float>();
    factor = factor == 0 ? 0 : 1 / factor;
  }
  BatchNormalization bn(channels,
                        {.decay = decay, .eps = eps, .use_gamma = false, .use_beta = false});
  bn.avg_mean.copy_from(mean * factor);
  bn.avg_var.copy_from(var * factor);
  b.add(std::move(bn));
  return [fixed](const LayerCall& call) {
    const auto& layer = dynamic_cast<const BatchNormalization&>(*call.function);
    return Variables{layer(call.bottoms[0], call.train && !fixed)};
  };
}

namespace {

// The same numbers as an array that broadcasts against x.
Variable along(const Variable& numbers, const Shape& x, int64_t axis) {
  const Shape& shape = numbers.shape();
  const int64_t ndim = int64_t(x.size()), first = axis < 0 ? axis + ndim : axis;
  bool fits = first >= 0 && first + int64_t(shape.size()) <= ndim;
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = x[size_t(first) + i] == shape[i];
  CATENA_CHECK(ShapeError, fits, "Scale: numbers of shape ", shape,
               " are expected along the axes of x from ", axis, " on, but x has shape ", x);
  Shape whole;
  for (int64_t i = 0; i < ndim; ++i) {
    const bool inside = i >= first && i < first + int64_t(shape.size());
    whole.push_back(inside ? shape[size_t(i - first)] : 1);
  }
  return numbers.reshape(whole);
}

// x * factors, and x + offsets, whose axes are those of x from `axis` on; negative ones count from
// the end. ShapeError where the extents differ.
Variable scaled(const Variable& x, const Variable& factors, int64_t axis) {
  return x * along(factors, x.shape(), axis);
}
Variable shifted(const Variable& x, const Variable& offsets, int64_t axis) {
  return x + along(offsets, x.shape(), axis);
}

}  // namespace

// Caffe's layer: y = x * W + b. W is undefined where the factors are an input, b where there is
// none.
class Scale : public Parameterized {
 public:
  Variable operator()(const Variable& x) const { return offset(scaled(x, W.variable(), axis)); }
  Variable operator()(const Variable& x, const Variable& factors) const {
    return offset(scaled(x, factors, axis));
  }
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override {
    if (W.defined()) visitor(prefix + "W", W);
    if (b.defined()) visitor(prefix + "b", b);
  }

  OwnedParameter W, b;
  int64_t axis = 1;

 private:
  Variable offset(const Variable& y) const {
    return b.defined() ? shifted(y, b.variable(), axis) : y;
  }
};

Step make_scale(Builder& b) {
  const LayerSource& source = b.source;
  int64_t axis = 1, axes = 1;
  bool bias = false;
  source.each_option([&](Message& m) {
    m.read(1, axis);
    m.read(2, axes);
    m.read(4, bias);
  });
  // The factors are the second bottom, or else the first blob.
  const bool given = source.bottoms.size() == 2;
  if (given && !bias)
    return [axis](const LayerCall& call) {
      return Variables{scaled(call.bottoms[0], call.bottoms[1], axis)};
    };
  const Blob& first = source.blob(0, given ? "b" : "W");
  const Shape shape = axes == 1   ? Shape{first.count()}
                      : axes == 0 ? Shape{}
                                  : Shape(first.dims.begin(), first.dims.end());
  Scale layer;
  layer.axis = axis;
  if (!given) layer.W = OwnedParameter(source.blob(0, "W", shape));
  if (bias) layer.b = OwnedParameter(source.blob(given ? 0 : 1, "b", shape));
  b.add(std::move(layer));
  return [](const LayerCall& call) {
    const auto& layer = dynamic_cast<const Scale&>(*call.function);
    return Variables{call.bottoms.size() == 2 ? layer(call.bottoms[0], call.bottoms[1])
                                              : layer(call.bottoms[0])};
  };
}

}  // namespace catena::functions::caffe
