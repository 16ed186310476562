// Records of layer, root-mean-square, group and instance normalization.
#include "catena/functions/normalization/group_normalization.h"
#include "catena/functions/normalization/layer_normalization.h"
#include "functions/function_record.h"

namespace catena {
namespace {

constexpr double kEps = 0.1;
const InputRange kX{-2, 3}, kGamma{0.5, 2}, kBeta{-1, 1};

double mean_square(const Numbers& x) {
  double total = 0;
  for (const double v : x) total += v * v;
  return total / double(x.size());
}

// (x - mean) / sqrt(var + eps) over the axes; without a mean unless centred.
Plain normalized(const Plain& x, bool centred, const Axes& axes) {
  const Plain mean = over_axes(x, axes, true, mean_of);
  const Plain var = over_axes(x, axes, true, centred ? variance_of : mean_square);
  return plain(x.shape, [&](Shape i) {
    const double value = x.at(i);
    for (const int64_t axis : axes) i[place_of(axis, x.shape)] = 0;
    return (value - (centred ? mean.at(i) : 0)) / std::sqrt(var.at(i) + kEps);
  });
}

// xhat * gamma + beta, whose index an element's channel(i) is.
Plain scaled(const Plain& xhat, const Plain& gamma, const Plain* beta,
             const std::function<Shape(const Shape& index)>& channel) {
  return plain(xhat.shape, [&](const Shape& i) {
    return xhat.at(i) * gamma.at(channel(i)) + (beta ? beta->at(channel(i)) : 0);
  });
}

Plains over_last_axes(const Plains& in, bool centred) {
  const int axes = in[1].shape.ndim();
  Axes last;
  for (int k = 1; k <= axes; ++k) last.push_back(-k);
  return {scaled(normalized(in[0], centred, last), in[1], in.size() > 2 ? &in[2] : nullptr,
                 [&](const Shape& i) { return Shape(i.end() - axes, i.end()); })};
}

Plains over_groups(const Plains& in, int64_t groups) {
  const Shape& x = in[0].shape;
  const int64_t size = element_count(Shape(x.begin() + 1, x.end())) / groups;
  Plain xhat = normalized({{x[0], groups, size}, in[0].values}, true, {2});
  xhat.shape = x;
  return {scaled(xhat, in[1], &in[2], [](const Shape& i) { return Shape{i[1]}; })};
}

FunctionRecord layer_record() {
  FunctionRecord r;
  r.function = "layer_normalization";
  r.ranges = {kX, kGamma, kBeta};
  r.shapes = {{{4, 3, 7}, {7}, {7}},
              {{5, 2, 3}, {2, 3}, {2, 3}},
              {{6}, {6}, {6}},
              {{0, 3}, {3}, {3}},
              {{3, 35}, {35}, {35}}};
  r.call = [](const Variables& v) {
    return Variables{F::layer_normalization(v[0], v[1], v[2], kEps)};
  };
  r.reference = [](const Plains& in) { return over_last_axes(in, true); };
  r.forward_launches = r.backward_launches = 1;
  const std::string label = "LayerNormalization";
  r.errors = {
      type_error(label, {{2, 4}, {3}, {3}},
                 "Expect: x.shape[1] == 3\nActual: 4 != 3\nInputs: x float64 (2, 4)\nExpected is "
                 "(..., 3), whose last axis is normalized."),
      type_error(label, {{3}, {2, 3}, {2, 3}},
                 "Expect: x.ndim >= 2\nActual: 1 < 2\nInputs: x float64 (3,)\nExpected is (..., "
                 "2, 3), whose last axes are normalized."),
      type_error(label, {{2, 3}, {3}, {4}},
                 "Expect: beta.shape[0] == 3\nActual: 4 != 3\nInputs: x float64 (2, 3), gamma "
                 "float64 (3,), beta float64 (4,)\nFor x of float64 gamma and beta are expected as "
                 "float64 (3,)."),
      type_error(label, {{{2, 3}, Dtype::kInt32}, {3}, {3}},
                 "Expect: x.dtype.kind == f\nActual: i != f\nInputs: x int32 (2, 3), gamma float64 "
                 "(3,), beta float64 (3,)\nExpected is a floating dtype: convert x with "
                 ".astype(dtype::float32)."),
      error<ValueError>(
          [](const Draw& draw) {
            F::layer_normalization(draw({2, 3}), draw({3}), draw({3}), -1);
          },
          "LayerNormalization: expected an eps of at least 0, got -1")};
  return r;
}

FunctionRecord rms_record() {
  FunctionRecord r;
  r.function = "rms_normalization";
  r.ranges = {kX, kGamma};
  r.shapes = {{{4, 3, 7}, {7}}, {{5, 2, 3}, {2, 3}}, {{6}, {6}}, {{0, 3}, {3}}, {{3, 35}, {35}}};
  r.call = [](const Variables& v) { return Variables{F::rms_normalization(v[0], v[1], kEps)}; };
  r.reference = [](const Plains& in) { return over_last_axes(in, false); };
  r.forward_launches = r.backward_launches = 1;
  r.errors = {type_error(
      "RMSNormalization", {{2, 4}, {3}},
      "Expect: x.shape[1] == 3\nActual: 4 != 3\nInputs: x float64 (2, 4)\nExpected is (..., 3), "
      "whose last axis is normalized.")};
  return r;
}

FunctionRecord group_record() {
  FunctionRecord r;
  r.function = "group_normalization";
  r.ranges = {kX, kGamma, kBeta};
  r.shapes = {
      {{3, 4, 2, 3}, {4}, {4}}, {{5, 6}, {6}, {6}}, {{2, 8, 17}, {8}, {8}}, {{0, 4, 2}, {4}, {4}}};
  r.call = [](const Variables& v) {
    return Variables{F::group_normalization(v[0], 2, v[1], v[2], kEps)};
  };
  r.reference = [](const Plains& in) { return over_groups(in, 2); };
  r.forward_launches = r.backward_launches = 1;
  const std::string label = "GroupNormalization";
  r.errors = {
      type_error(label, {{2, 3, 5}, {4}, {4}},
                 "Expect: x.shape[1] == 4\nActual: 3 != 4\nInputs: x float64 (2, 3, 5)\nExpected "
                 "is (n, 4, ...), n samples of 4 channels."),
      error<ValueError>(
          [](const Draw& draw) {
            F::group_normalization(draw({2, 4}), 3, draw({4}), draw({4}));
          },
          "GroupNormalization: 4 channels cannot be split into 3 equal groups; use a number of "
          "groups that divides the channels")};
  return r;
}

FunctionRecord instance_record() {
  FunctionRecord r = group_record();
  r.function = "instance_normalization";
  r.call = [](const Variables& v) {
    return Variables{F::instance_normalization(v[0], v[1], v[2], kEps)};
  };
  r.reference = [](const Plains& in) { return over_groups(in, in[0].shape[1]); };
  r.errors = {type_error(
      "InstanceNormalization", {{3}, {3}, {3}},
      "Expect: x.ndim >= 2\nActual: 1 < 2\nInputs: x float64 (3,)\nExpected is (n, 3, ...), n "
      "samples of 3 channels.")};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(row_normalization) {
  return {layer_record(), rms_record(), group_record(), instance_record()};
}

}  // namespace catena
