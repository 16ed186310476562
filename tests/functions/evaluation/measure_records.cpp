// Records of measures.
#include "catena/functions/evaluation/accuracy.h"
#include "catena/functions/evaluation/binary_accuracy.h"
#include "catena/functions/evaluation/confusion_matrix.h"
#include "catena/functions/evaluation/r2_score.h"
#include "catena/functions/evaluation/top_k_accuracy.h"
#include "functions/function_record.h"

namespace catena {
namespace {

using F::ClassAverage;

FunctionRecord measure_record(std::string function, std::string variant,
                              std::function<Variable(const Variable&, const Variable&)> call) {
  FunctionRecord r;
  r.function = std::move(function);
  r.variant = std::move(variant);
  r.ranges = {{-2, 2}, {-1, 3, Dtype::kInt32}};
  r.shapes = {{{12, 3}, {12}}, {{4, 3, 5}, {4, 5}}, {{0, 3}, {0}}};
  r.call = binary(std::move(call));
  r.result_dtype = Dtype::kFloat32;
  r.differentiable = false;
  return r;
}

FunctionRecord accuracy_record(std::optional<int> ignored, Dtype labels) {
  FunctionRecord r;
  r.function = "accuracy";
  r.variant = message(labels, " labels", ignored ? ", some ignored" : "");
  r.ranges = {{-2, 2}, {-1, 3, labels}};
  r.shapes = {{{6, 3}, {6}}, {{4, 3, 2}, {4, 2}}, {{4, 3, 1}, {4}}, {{0, 3}, {0}}};
  r.call = binary([=](const Variable& y, const Variable& t) { return F::accuracy(y, t, ignored); });
  // With ignored labels two more count those that are not.
  r.forward_launches = (labels == Dtype::kInt32 ? 1 : 2) + (ignored ? 2 : 0);
  r.result_dtype = Dtype::kFloat32;
  r.differentiable = false;
  return r;
}

const std::string kCame =
    "Expected as labels are class numbers of 0 to 2 in int32 or int64, of shape (4,).";

FunctionRecord accuracy_errors() {
  FunctionRecord r = accuracy_record({}, Dtype::kInt32);
  r.variant = "errors";
  r.errors = {
      type_error("Accuracy", {{4, 3}, {{2}, Dtype::kInt32}},
                 "Expect: y.shape[0] == t.shape[0]\nActual: 4 != 2\n"
                 "Inputs: y float64 (4, 3), t int32 (2,)\n" +
                     kCame),
      type_error(
          "Accuracy", {{{4}, Dtype::kInt32}, {4, 3}},
          "Expect: y.dtype.kind == f\nActual: i != f\n"
          "Inputs: y int32 (4,), t float64 (4, 3)\nExpected are "
          "floating scores (n, classes) and class numbers (n) in int32 or int64. The arguments "
          "look swapped: it is accuracy(scores, labels)."),
      type_error("Accuracy", {{4, 3}, {4, 3}},
                 "Expect: t.dtype == int32\nActual: float64 != int32\n"
                 "Inputs: y float64 (4, 3), t float64 (4, 3)\n" +
                     kCame + " One-hot labels become numbers by argmax(t, 1)."),
      type_error("Accuracy", {{2, 3, 2}, {{2}, Dtype::kInt32}},
                 "Expect: y.shape[2] == 1\nActual: 2 != 1\n"
                 "Inputs: y float64 (2, 3, 2), t int32 (2,)\nExpected as labels "
                 "are class numbers of 0 to 2 in int32 or int64, of shape (2, 2)."),
  };
  return r;
}

using Measure = Variable (*)(const VariableOperand&, const VariableOperand&, ClassAverage,
                             std::optional<int32_t>);
const std::pair<const char*, Measure> kMeasures[] = {
    {"precision", F::precision}, {"recall", F::recall}, {"f1_score", F::f1_score}};

FunctionRecords class_records() {
  FunctionRecords records;
  for (const std::optional<int> ignored : {std::optional<int>(), std::optional<int>(1)}) {
    records.push_back(measure_record(
        "confusion_matrix", ignored ? "a class ignored" : "",
        [=](const Variable& y, const Variable& t) { return F::confusion_matrix(y, t, ignored); }));
    records.back().result_dtype = Dtype::kInt64;
    if (ignored) records.back().ranges = {{-2, 2}, {0, 3, Dtype::kInt32}};
    for (const auto& [name, measure] : kMeasures) {
      for (const ClassAverage average :
           {ClassAverage::kNone, ClassAverage::kMacro, ClassAverage::kMicro}) {
        records.push_back(measure_record(
            name, message("average ", int(average), ignored ? ", a class ignored" : ""),
            [=, call = measure](const Variable& y, const Variable& t) {
              return call(y, t, average, ignored);
            }));
        if (ignored) records.back().ranges = {{-2, 2}, {0, 3, Dtype::kInt32}};
      }
    }
  }
  records.back().errors = {type_error(
      "F1Score", {{4, 3}, {{2}, Dtype::kInt32}},
      "Expect: y.shape[0] == t.shape[0]\nActual: 4 != 2\nInputs: y float64 (4, 3), t int32 "
      "(2,)\nExpected as labels are class numbers of 0 to 2 in int32 or int64, of shape (4,).")};
  return records;
}

FunctionRecord top_k_record(int64_t k, std::optional<int> ignored) {
  FunctionRecord r = measure_record(
      "top_k_accuracy", message(k, ignored ? ", some ignored" : ""),
      [=](const Variable& y, const Variable& t) { return F::top_k_accuracy(y, t, k, ignored); });
  r.errors = {error<ValueError>(
      [](const Draw& draw) {
        F::top_k_accuracy(draw({2, 3}), draw.labels({0, 1}, {2}), 0);
      },
      "TopKAccuracy: expected a k of at least 1, got 0")};
  return r;
}

// Of scores -1 and 0.
FunctionRecord binary_record() {
  FunctionRecord r = measure_record(
      "binary_accuracy", "",
      [](const Variable& y, const Variable& t) { return F::binary_accuracy(floor(y.data()), t); });
  r.ranges = {{-1, 1}, {-1, 2, Dtype::kInt32}};
  r.shapes = {{{40}, {40}}, {{4, 3}, {4, 3}}, {{}, {}}, {{0}, {0}}};
  r.errors = {type_error(
      "BinaryAccuracy", {{2}, {2}},
      "Expect: t.dtype.kind == i\nActual: f != i\nInputs: y float64 (2,), t float64 (2,)\nExpected "
      "are floating scores and labels 0 and 1 in an integer dtype, of one shape.")};
  return r;
}

FunctionRecord r2_record(bool raw) {
  FunctionRecord r =
      measure_record("r2_score", raw ? "each output" : "",
                     [=](const Variable& y, const Variable& t) { return F::r2_score(y, t, raw); });
  r.ranges = {};
  r.shapes = {{{6, 2}, {6, 2}}, {{5}, {5}}};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(measure) {
  return joined({{accuracy_record({}, Dtype::kInt32), accuracy_record(-1, Dtype::kInt32),
                  accuracy_record(-1, Dtype::kInt64), accuracy_errors(), binary_record(),
                  r2_record(false), r2_record(true), top_k_record(1, {}), top_k_record(2, -1),
                  top_k_record(3, {}), top_k_record(5, {})},
                 class_records()});
}

}  // namespace catena
