// Records of measures.
#include "catena/functions/evaluation.h"
#include "functions/function_record.h"

namespace catena {
namespace {

// The share of the labels that are the number of the largest score.
double accuracy_of(const Plain& y, const Plain& t, std::optional<int> ignored) {
  const int64_t inner = y.shape.ndim() == 3 ? y.shape[2] : 1;
  double right = 0, count = 0;
  for (int64_t n = 0; n < y.shape[0]; ++n) {
    for (int64_t k = 0; k < inner; ++k) {
      const auto score = [&](int64_t c) {
        return y.values[size_t((n * y.shape[1] + c) * inner + k)];
      };
      const double label = t.values[size_t(n * inner + k)];
      if (ignored && label == *ignored) continue;
      int64_t best = 0;
      for (int64_t c = 1; c < y.shape[1]; ++c) best = score(c) > score(best) ? c : best;
      right += double(best) == label;
      count += 1;
    }
  }
  return count > 0 ? right / count : 0;
}

FunctionRecord accuracy_record(std::optional<int> ignored, Dtype labels) {
  FunctionRecord r;
  r.function = "accuracy";
  r.variant = message(labels, " labels", ignored ? ", some ignored" : "");
  r.ranges = {{-2, 2}, {-1, 3, labels}};
  r.shapes = {{{6, 3}, {6}}, {{4, 3, 2}, {4, 2}}, {{4, 3, 1}, {4}}, {{0, 3}, {0}}};
  r.call = binary([=](const Variable& y, const Variable& t) { return F::accuracy(y, t, ignored); });
  r.reference = [=](const Plains& in) { return Plains{plain(accuracy_of(in[0], in[1], ignored))}; };
  r.forward_launches = labels == Dtype::kInt32 ? 1 : 2;
  r.result_dtype = Dtype::kFloat32;
  r.differentiable = false;
  return r;
}

const std::string kCame =
    "Expected as labels are class numbers of 0 to 2 in int32 or int64, of shape (4,).";

FunctionRecord with_errors() {
  FunctionRecord r = accuracy_record({}, Dtype::kInt32);
  r.variant = "errors";
  r.errors = {
      type_error(
          "Accuracy",
          [](const Draw& draw) {
            F::accuracy(draw({4, 3}), draw.labels({1, 0}, {2}));
          },
          "Expect: y.shape[0] == t.shape[0]\nActual: 4 != 2\n"
          "Inputs: y float64 (4, 3), t int32 (2,)\n" +
              kCame),
      type_error(
          "Accuracy",
          [](const Draw& draw) {
            F::accuracy(draw.labels({0, 1, 2, 0}, {4}), draw({4, 3}));
          },
          "Expect: y.dtype.kind == f\nActual: i != f\n"
          "Inputs: y int32 (4,), t float64 (4, 3)\nExpected are "
          "floating scores (n, classes) and class numbers (n) in int32 or int64. The arguments "
          "look swapped: it is accuracy(scores, labels)."),
      type_error(
          "Accuracy",
          [](const Draw& draw) {
            F::accuracy(draw({4, 3}), draw({4, 3}));
          },
          "Expect: t.dtype == int32\nActual: float64 != int32\n"
          "Inputs: y float64 (4, 3), t float64 (4, 3)\n" +
              kCame + " One-hot labels become numbers by argmax(t, 1)."),
      type_error(
          "Accuracy",
          [](const Draw& draw) {
            F::accuracy(draw({2, 3, 2}), draw.labels({1, 0}, {2}));
          },
          "Expect: y.shape[2] == 1\nActual: 2 != 1\n"
          "Inputs: y float64 (2, 3, 2), t int32 (2,)\nExpected as labels "
          "are class numbers of 0 to 2 in int32 or int64, of shape (2, 2)."),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(evaluation) {
  return {accuracy_record({}, Dtype::kInt32), accuracy_record(-1, Dtype::kInt32),
          accuracy_record(-1, Dtype::kInt64), with_errors()};
}

}  // namespace catena
