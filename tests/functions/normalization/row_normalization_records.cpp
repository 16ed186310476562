// Records of layer, root-mean-square, group and instance normalization.
#include "catena/functions/normalization/group_normalization.h"
#include "catena/functions/normalization/layer_normalization.h"
#include "functions/function_record.h"

namespace catena {
namespace {

constexpr double kEps = 0.1;
const InputRange kX{-2, 3}, kGamma{0.5, 2}, kBeta{-1, 1};

// The mean of value(i) over the indices i for which same(i) holds.
double mean_where(const Shape& x, const std::function<bool(const Shape&)>& same,
                  const std::function<double(const Shape&)>& value) {
  double total = 0, count = 0;
  plain(x, [&](const Shape& i) {
    if (same(i)) total += value(i), ++count;
    return 0.0;
  });
  return total / count;
}

// (x - mean) / sqrt(var + eps) over the elements that share row(i) with an element; without a mean
// unless centred.
Plain normalized(const Plain& x, bool centred,
                 const std::function<Shape(const Shape& index)>& row) {
  return plain(x.shape, [&](const Shape& at) {
    const Shape own = row(at);
    const auto same = [&](const Shape& i) { return row(i) == own; };
    const double mean =
        centred ? mean_where(x.shape, same, [&](const Shape& i) { return x.at(i); }) : 0;
    const double var = mean_where(
        x.shape, same, [&](const Shape& i) { return (x.at(i) - mean) * (x.at(i) - mean); });
    return (x.at(at) - mean) / std::sqrt(var + kEps);
  });
}

// xhat * gamma + beta, whose index an element's channel(i) is.
Plain scaled(const Plain& xhat, const Plain& gamma, const Plain* beta,
             const std::function<Shape(const Shape& index)>& channel) {
  return plain(xhat.shape, [&](const Shape& i) {
    return xhat.at(i) * gamma.at(channel(i)) + (beta ? beta->at(channel(i)) : 0);
  });
}

Shape leading(const Shape& i, int axes) { return Shape(i.begin(), i.end() - axes); }
Shape trailing(const Shape& i, int axes) { return Shape(i.end() - axes, i.end()); }

Plains over_last_axes(const Plains& in, bool centred) {
  const int axes = in[1].shape.ndim();
  const Plain xhat = normalized(in[0], centred, [&](const Shape& i) { return leading(i, axes); });
  return {scaled(xhat, in[1], in.size() > 2 ? &in[2] : nullptr,
                 [&](const Shape& i) { return trailing(i, axes); })};
}

Plains over_groups(const Plains& in, int64_t groups) {
  const int64_t of_group = in[0].shape[1] / groups;
  const Plain xhat = normalized(in[0], true, [&](const Shape& i) {
    return Shape{i[0], i[1] / of_group};
  });
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
  const auto call = [](Shape x, Shape gamma, Shape beta, Dtype dtype = Dtype::kFloat64) {
    return [=](const Draw& draw) {
      F::layer_normalization(draw(x, 0, 5, 0, dtype), draw(gamma), draw(beta));
    };
  };
  const std::string label = "LayerNormalization";
  r.errors = {
      type_error(label, call({2, 4}, {3}, {3}),
                 "Expect: x.shape[1] == 3\nActual: 4 != 3\nInputs: x float64 (2, 4)\nExpected is "
                 "(..., 3), whose last axis is normalized."),
      type_error(label, call({3}, {2, 3}, {2, 3}),
                 "Expect: x.ndim >= 2\nActual: 1 < 2\nInputs: x float64 (3,)\nExpected is (..., "
                 "2, 3), whose last axes are normalized."),
      type_error(label, call({2, 3}, {3}, {4}),
                 "Expect: beta.shape[0] == 3\nActual: 4 != 3\nInputs: x float64 (2, 3), gamma "
                 "float64 (3,), beta float64 (4,)\nFor x of float64 gamma and beta are expected as "
                 "float64 (3,)."),
      type_error(label, call({2, 3}, {3}, {3}, Dtype::kInt32),
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
      "RMSNormalization",
      [](const Draw& draw) {
        F::rms_normalization(draw({2, 4}), draw({3}));
      },
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
      type_error(
          label,
          [](const Draw& draw) {
            F::group_normalization(draw({2, 3, 5}), 2, draw({4}), draw({4}));
          },
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
      "InstanceNormalization",
      [](const Draw& draw) { F::instance_normalization(draw({3}), draw({3}), draw({3})); },
      "Expect: x.ndim >= 2\nActual: 1 < 2\nInputs: x float64 (3,)\nExpected is (n, 3, ...), n "
      "samples of 3 channels.")};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(row_normalization) {
  return {layer_record(), rms_record(), group_record(), instance_record()};
}

}  // namespace catena
