// Records of the cross entropy of a linear layer.
#include "catena/functions/loss/linear_cross_entropy.h"

#include "catena/functions/array/cast.h"
#include "functions/loss/reductions.h"

namespace catena {
namespace {

using F::Reduction;

constexpr int64_t kClasses = 5;

struct Variant {
  Reduction reduction = Reduction::kMean;
  bool bias = false;
  double smoothing = 0, z_loss = 0;
  std::optional<int64_t> chunk = {};
  int32_t ignored = -1;
  Dtype labels = Dtype::kInt32;
};

std::string text(const Variant& v) {
  return message(name_of(v.reduction), v.bias ? ", bias" : "", v.smoothing > 0 ? ", smoothed" : "",
                 v.z_loss > 0 ? ", z-loss" : "", v.chunk ? message(", chunks of ", *v.chunk) : "",
                 ", ", v.ignored, " ignored, ", v.labels);
}

// Results, float32 for 16 bits, are cast to the dtype of the inputs, as the suite expects it.
FunctionRecord record_of(const Variant& v) {
  FunctionRecord r;
  r.function = "linear_cross_entropy";
  r.variant = text(v);
  const InputRange labels{v.ignored == -1 ? -1. : 0., double(kClasses), v.labels};
  r.ranges = {{}, {-2, 2}};
  if (v.bias) r.ranges.push_back({});
  r.ranges.push_back(labels);
  const std::pair<Shape, Shape> shapes[] = {
      {{6, 3}, {6}}, {{2, 3, 4}, {2, 3}}, {{4}, {}}, {{0, 3}, {0}}, {{2, 0, 3}, {2, 0}}};
  for (const auto& [h, t] : shapes) {
    r.shapes.push_back({h, {kClasses, h.back()}});
    if (v.bias) r.shapes.back().push_back({kClasses});
    r.shapes.back().push_back(t);
  }
  r.call = [v](const Variables& in) {
    const F::LinearCrossEntropyOptions options{.ignore_label = v.ignored,
                                               .reduction = v.reduction,
                                               .label_smoothing = v.smoothing,
                                               .z_loss = v.z_loss,
                                               .chunk = v.chunk};
    const Variable loss = v.bias ? F::linear_cross_entropy(in[0], in[1], in[2], in[3], options)
                                 : F::linear_cross_entropy(in[0], in[1], in[2], options);
    return Variables{F::cast(loss, in[0].dtype())};
  };
  return r;
}

FunctionRecord errors() {
  FunctionRecord r = record_of({.bias = true});
  r.variant = "errors";
  const std::string label = "LinearCrossEntropy";
  const auto came = [](const char* h, const char* t) {
    return message("\nInputs: h float64 ", h, ", W float64 (5, 3), b float64 (5,), t ", t, "\n");
  };
  const std::string labels =
      "Expected as labels are class numbers of 0 to 4 in int32 or int64, of shape (4,), one for "
      "each token of h.";
  const auto call = [](F::LinearCrossEntropyOptions options) {
    return [=](const Draw& draw) {
      F::linear_cross_entropy(draw({2, 3}), draw({5, 3}), draw.labels({0, 1}, {2}), options);
    };
  };
  r.errors = {
      type_error(label, {{4, 2}, {5, 3}, {5}, {{4}, Dtype::kInt32}},
                 "Expect: h.shape[1] == W.shape[1]\nActual: 2 != 3" + came("(4, 2)", "int32 (4,)") +
                     "Expected is h of shape (..., 3), 3 numbers for each token; h has shape (4, "
                     "2)."),
      type_error(label, {{4, 3}, {5, 3}, {5}, {{3}, Dtype::kInt32}},
                 "Expect: t.shape[0] == h.shape[0]\nActual: 3 != 4" + came("(4, 3)", "int32 (3,)") +
                     labels),
      type_error(label, {{4, 3}, {5, 3}, {5}, {{4}, Dtype::kFloat64}},
                 "Expect: t.dtype == int32\nActual: float64 != int32" +
                     came("(4, 3)", "float64 (4,)") + labels +
                     " Convert the labels with .astype(dtype::int32)."),
      type_error(label, {{2, 2, 3}, {5, 3}, {5}, {{4}, Dtype::kInt32}},
                 "Expect: t.ndim == h.ndim - 1\nActual: 1 != 2" + came("(2, 2, 3)", "int32 (4,)") +
                     "Expected as labels are class numbers of 0 to 4 in int32 or int64, of shape "
                     "(2, 2), one for each token of h. Give the labels the leading axes of h with "
                     "t.reshape(shape)."),
      type_error(
          label, {{4, 3}, {5, 3}, {4}, {{4}, Dtype::kInt32}},
          "Expect: b.shape[0] == W.shape[0]\nActual: 4 != 5\nInputs: h float64 (4, 3), W "
          "float64 (5, 3), b float64 (4,), t int32 (4,)\nThe bias has one number for each of "
          "the 5 outputs of W, shape (5,); b has shape (4,)."),
      type_error(
          label, {{{4}, Dtype::kInt32}, {5, 3}, {5}, {4, 3}},
          "Expect: h.dtype.kind == f\nActual: i != f\nInputs: h int32 (4,), W float64 (5, "
          "3), b float64 (5,), t float64 (4, 3)\nThe arguments look swapped: expected are (h, W, "
          "labels)."),
      type_error(label, {{{4, 3}, Dtype::kFloat32}, {5, 3}, {5}, {{4}, Dtype::kInt32}},
                 "Expect: h.dtype == W.dtype\nActual: float32 != float64\nInputs: h float32 (4, "
                 "3), W float64 (5, 3), b float64 (5,), t int32 (4,)\nThe input is float32, the "
                 "layer float64: convert the input with .astype(dtype::float64), or make arrays of "
                 "float64 by config().default_dtype = dtype::float64."),
      error<ValueError>(call({.label_smoothing = 1}),
                        "LinearCrossEntropy: expected a label_smoothing of at least 0 and below 1, "
                        "got 1"),
      error<ValueError>(call({.chunk = 0}),
                        "LinearCrossEntropy: expected a chunk of at least one token, got 0; leave "
                        "chunk out for the default"),
      error<ValueError>(call({.z_loss = -1}),
                        "LinearCrossEntropy: expected a z_loss of at least 0, got -1"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(linear_cross_entropy) {
  FunctionRecords records{errors()};
  for (const Reduction reduction : kReductions) {
    records.push_back(record_of({.reduction = reduction}));
    records.push_back(record_of({reduction, true, 0.25, 0.1, 4, 2, Dtype::kInt64}));
  }
  records.push_back(record_of({.smoothing = 0.25, .chunk = 1}));
  records.push_back(record_of({.z_loss = 0.5, .chunk = 5}));
  return records;
}

}  // namespace catena
