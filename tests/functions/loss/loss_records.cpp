// Records of the losses.
#include "catena/functions/loss.h"
#include "functions/function_record.h"

namespace catena {
namespace {

// -log softmax(x)[label] of each sample that counts; x: (n, classes, rest), t: (n, rest).
double softmax_cross_entropy_of(const Plain& x, const Plain& t, bool normalize, int ignored) {
  const int64_t n = x.shape[0], c = x.shape[1];
  const int64_t inner = n * c > 0 ? int64_t(x.values.size()) / (n * c) : 0;
  double total = 0, count = 0;
  for (int64_t i = 0; i < n * inner; ++i) {
    const auto at = [&](double j) {
      return x.values[size_t((i / inner * c + int64_t(j)) * inner + i % inner)];
    };
    const double label = t.values[size_t(i)];
    if (label == ignored) continue;
    double sum = 0;
    for (int64_t j = 0; j < c; ++j) sum += std::exp(at(double(j)));
    total += std::log(sum) - at(label);
    count += 1;
  }
  const double divisor = normalize ? count : double(n);
  return divisor > 0 ? total / divisor : 0;
}

FunctionRecord softmax_cross_entropy_record(bool normalize, int ignored, Dtype labels) {
  FunctionRecord r;
  r.function = "softmax_cross_entropy";
  r.variant = message(labels, " labels, ", ignored, " ignored", normalize ? ", normalized" : "");
  r.ranges = {{-2, 2}, {ignored == -1 ? -1. : 0., 3, labels}};
  r.shapes = {{{4, 3}, {4}}, {{4, 3, 2}, {4, 2}}, {{2, 3, 2, 3}, {2, 2, 3}}, {{0, 3}, {0}}};
  r.call = binary([=](const Variable& x, const Variable& t) {
    return F::softmax_cross_entropy(x, t, normalize, ignored);
  });
  r.reference = [=](const Plains& in) {
    return Plains{plain(softmax_cross_entropy_of(in[0], in[1], normalize, ignored))};
  };
  r.forward_launches = labels == Dtype::kInt32 ? 1 : 2;
  r.backward_launches = 1;
  return r;
}

FunctionRecord softmax_cross_entropy_errors() {
  FunctionRecord r = softmax_cross_entropy_record(true, -1, Dtype::kInt32);
  r.variant = "errors";
  const auto came = [](const char* scores, const char* shape, const char* dtype) {
    return message(
        "Inputs: x ", scores, " (4, 3), t ", dtype, " ", shape,
        "\nExpected as labels are class numbers of 0 to 2 in int32 or int64, of shape (4,).");
  };
  const std::string label = "SoftmaxCrossEntropy";
  r.errors = {
      type_error(
          label,
          [](const Draw& draw) {
            F::softmax_cross_entropy(draw({4, 3}), draw.labels({0, 1}, {2}));
          },
          "Expect: x.shape[0] == t.shape[0]\nActual: 4 != 2\n" + came("float64", "(2,)", "int32")),
      type_error(
          label,
          [](const Draw& draw) {
            F::softmax_cross_entropy(draw({4, 3}), draw({4}, 0, 3, 0, Dtype::kFloat32));
          },
          "Expect: t.dtype == int32\nActual: float32 != int32\n" +
              came("float64", "(4,)", "float32") +
              " Convert the labels with .astype(dtype::int32)."),
      type_error(
          label,
          [](const Draw& draw) {
            F::softmax_cross_entropy(draw({4, 3}), draw.labels({0, 1, 2, 0}, {4, 1}));
          },
          "Expect: t.ndim == x.ndim - 1\nActual: 2 != 1\n" + came("float64", "(4, 1)", "int32") +
              " Drop the last axis of the labels with t.reshape({-1})."),
      type_error(
          label,
          [](const Draw& draw) {
            F::softmax_cross_entropy(draw.labels({0, 1, 2, 0}, {4}), draw({4, 3}));
          },
          "Expect: x.dtype.kind == f\nActual: i != f\nInputs: x int32 (4,), t float64 (4, "
          "3)\nExpected are floating scores (n, classes) and "
          "class numbers (n) in int32 or int64. The arguments look swapped: it is "
          "softmax_cross_entropy(scores, labels)."),
      type_error(
          label,
          [](const Draw& draw) {
            F::softmax_cross_entropy(draw({4, 3}),
                                     draw.labels(std::vector<int32_t>(12, 0), {4, 3}));
          },
          "Expect: t.ndim == x.ndim - 1\nActual: 2 != 1\n" + came("float64", "(4, 3)", "int32") +
              " One-hot labels become numbers by argmax(t, 1)."),
      error<ValueError>(
          [](const Draw& draw) {
            F::softmax_cross_entropy(draw({4, 3}), Array());
          },
          "SoftmaxCrossEntropy: got an undefined array"),
      error<ValueError>(
          [](const Draw& draw) {
            F::softmax_cross_entropy(Variable(), draw({4, 3}));
          },
          "SoftmaxCrossEntropy: got an undefined variable"),
  };
  return r;
}

FunctionRecord sigmoid_cross_entropy_record(bool normalize) {
  FunctionRecord r;
  r.function = "sigmoid_cross_entropy";
  r.variant = normalize ? "normalized" : "by the batch";
  r.ranges = {{-2, 2}, {-1, 2, Dtype::kInt32}};
  r.shapes = {{{4, 3}, {4, 3}}, {{5}, {5}}, {{0, 3}, {0, 3}}};
  r.call = binary([=](const Variable& x, const Variable& t) {
    return F::sigmoid_cross_entropy(x, t, normalize);
  });
  r.reference = [=](const Plains& in) {
    double total = 0, count = 0;
    for (size_t i = 0; i < in[0].values.size(); ++i) {
      const double x = in[0].values[i], label = in[1].values[i];
      if (label == -1) continue;
      total += std::log1p(std::exp(x)) - x * label;
      count += 1;
    }
    return Plains{plain(total / std::max(normalize ? count : double(in[0].shape[0]), 1.0))};
  };
  r.forward_launches = normalize ? 12 : 10;
  r.backward_launches = 5;
  r.errors = {
      type_error(
          "SigmoidCrossEntropy",
          [](const Draw& draw) {
            F::sigmoid_cross_entropy(draw({2, 3}), draw.labels({0, 1}, {2}));
          },
          "Expect: x.ndim == t.ndim\nActual: 2 != 1\nInputs: x float64 (2, 3), t int32 (2,)\n"
          "Expected are floating scores and labels 0 and 1 in an integer dtype, of one shape."),
      type_error(
          "SigmoidCrossEntropy",
          [](const Draw& draw) {
            F::sigmoid_cross_entropy(draw.labels({0, 1}, {2}), draw({2}));
          },
          "Expect: x.dtype.kind == f\nActual: i != f\nInputs: x int32 (2,), t float64 (2,)\n"
          "Expected are floating scores and labels 0 and 1 in an integer dtype, of one shape. The "
          "arguments look swapped: it is sigmoid_cross_entropy(scores, "
          "labels)."),
  };
  return r;
}

FunctionRecord mean_squared_error_record() {
  FunctionRecord r;
  r.function = "mean_squared_error";
  r.shapes = {{{4, 3}, {4, 3}}, {{}, {}}, {{0, 3}, {0, 3}}};
  r.call = binary([](const Variable& a, const Variable& b) { return F::mean_squared_error(a, b); });
  r.reference = [](const Plains& in) {
    double total = 0;
    for (size_t i = 0; i < in[0].values.size(); ++i) {
      const double d = in[0].values[i] - in[1].values[i];
      total += d * d;
    }
    return Plains{plain(total / std::max(double(in[0].values.size()), 1.0))};
  };
  r.forward_launches = 3;
  r.backward_launches = 4;
  r.errors = {
      type_error(
          "MeanSquaredError",
          [](const Draw& draw) {
            F::mean_squared_error(draw({4, 3}), draw({3, 4}));
          },
          "Expect: x0.shape[0] == x1.shape[0]\nActual: 4 != 3\nInputs: x0 float64 (4, 3), x1 "
          "float64 (3, 4)\n"
          "Expected are two of one floating dtype and shape."),
      type_error(
          "MeanSquaredError",
          [](const Draw& draw) {
            F::mean_squared_error(draw({4, 3}), draw({4, 3}, 0, 1, 0, Dtype::kFloat32));
          },
          "Expect: x1.dtype == x0.dtype\nActual: float32 != float64\nInputs: x0 float64 (4, 3), x1 "
          "float32 (4, 3)\n"
          "Expected are two of one floating dtype and shape. The inputs are float64 and float32: "
          "convert the float64 one with "
          ".astype(dtype::float32), or make arrays of float32 by config().default_dtype = "
          "dtype::float32."),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(loss) {
  FunctionRecords records{softmax_cross_entropy_errors(), mean_squared_error_record()};
  for (const bool normalize : {false, true}) {
    records.push_back(sigmoid_cross_entropy_record(normalize));
    for (const Dtype labels : {Dtype::kInt32, Dtype::kInt64})
      records.push_back(softmax_cross_entropy_record(normalize, -1, labels));
  }
  records.push_back(softmax_cross_entropy_record(true, 1, Dtype::kInt32));
  return records;
}

}  // namespace catena
