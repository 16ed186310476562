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

// Calls f(sample in C order, index of the sample in t).
void for_samples(const Plain& t, const std::function<void(const Shape&)>& f) {
  plain(t.shape, [&](const Shape& i) {
    f(i);
    return 0.0;
  });
}
double score(const Plain& y, Shape sample, int64_t c) {
  sample.insert(sample.begin() + 1, c);
  return y.at(sample);
}
int64_t answer_of(const Plain& y, const Shape& sample) {
  int64_t best = 0;
  for (int64_t c = 1; c < y.shape[1]; ++c)
    best = score(y, sample, c) > score(y, sample, best) ? c : best;
  return best;
}

// Rows: labels; columns: answers.
Plain matrix_of(const Plain& y, const Plain& t, std::optional<int> ignored) {
  Plain counts = plain({3, 3}, [](const Shape&) { return 0; });
  for_samples(t, [&](const Shape& i) {
    const double label = t.at(i);
    if (label < 0 || (ignored && label == *ignored)) return;
    counts.values[size_t(label) * 3 + size_t(answer_of(y, i))] += 1;
  });
  return counts;
}

FunctionRecord measure_record(std::string function, std::string variant,
                              std::function<Variable(const Variable&, const Variable&)> call,
                              std::function<Plain(const Plain&, const Plain&)> reference) {
  FunctionRecord r;
  r.function = std::move(function);
  r.variant = std::move(variant);
  r.ranges = {{-2, 2}, {-1, 3, Dtype::kInt32}};
  r.shapes = {{{12, 3}, {12}}, {{4, 3, 5}, {4, 5}}, {{0, 3}, {0}}};
  r.call = binary(std::move(call));
  r.reference = [=](const Plains& in) { return Plains{reference(in[0], in[1])}; };
  r.result_dtype = Dtype::kFloat32;
  r.differentiable = false;
  return r;
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

// The share of the labels that are the number of the largest score.
double accuracy_of(const Plain& y, const Plain& t, std::optional<int> ignored) {
  const int64_t inner = y.shape.ndim() == 3 ? y.shape[2] : 1;
  const Plain scores{{y.shape[0], y.shape[1], inner}, y.values},
      labels{{y.shape[0], inner}, t.values};
  double right = 0, count = 0;
  for_samples(labels, [&](const Shape& i) {
    if (ignored && labels.at(i) == *ignored) return;
    right += double(answer_of(scores, i)) == labels.at(i);
    count += 1;
  });
  return ratio(right, count);
}

FunctionRecord accuracy_record(std::optional<int> ignored, Dtype labels) {
  FunctionRecord r;
  r.function = "accuracy";
  r.variant = message(labels, " labels", ignored ? ", some ignored" : "");
  r.ranges = {{-2, 2}, {-1, 3, labels}};
  r.shapes = {{{6, 3}, {6}}, {{4, 3, 2}, {4, 2}}, {{4, 3, 1}, {4}}, {{0, 3}, {0}}};
  r.call = binary([=](const Variable& y, const Variable& t) { return F::accuracy(y, t, ignored); });
  r.reference = [=](const Plains& in) { return Plains{plain(accuracy_of(in[0], in[1], ignored))}; };
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
struct ClassMeasure {
  const char* name;
  Measure call;
  double factor;
  bool by_answers, by_samples;  // what the right answers are divided by
};
const ClassMeasure kMeasures[] = {{"precision", F::precision, 1, true, false},
                                  {"recall", F::recall, 1, false, true},
                                  {"f1_score", F::f1_score, 2, true, true}};

Plain class_measure(const ClassMeasure& m, ClassAverage average, const Plain& counts) {
  double rights = 0, wholes = 0, sum = 0, occurring = 0;
  const Plain each = plain({3}, [&](const Shape& i) {
    double answers = 0, samples = 0;
    for (int64_t k = 0; k < 3; ++k) {
      answers += counts(k, i[0]);
      samples += counts(i[0], k);
    }
    const double right = m.factor * counts(i[0], i[0]);
    const double whole = (m.by_answers ? answers : 0) + (m.by_samples ? samples : 0);
    rights += right;
    wholes += whole;
    sum += ratio(right, whole);
    occurring += answers + samples > 0;
    return ratio(right, whole);
  });
  if (average == ClassAverage::kNone) return each;
  return plain(average == ClassAverage::kMicro ? ratio(rights, wholes) : ratio(sum, occurring));
}

FunctionRecords class_records() {
  FunctionRecords records;
  for (const std::optional<int> ignored : {std::optional<int>(), std::optional<int>(1)}) {
    records.push_back(measure_record(
        "confusion_matrix", ignored ? "a class ignored" : "",
        [=](const Variable& y, const Variable& t) { return F::confusion_matrix(y, t, ignored); },
        [=](const Plain& y, const Plain& t) { return matrix_of(y, t, ignored); }));
    records.back().result_dtype = Dtype::kInt64;
    if (ignored) records.back().ranges = {{-2, 2}, {0, 3, Dtype::kInt32}};
    for (const ClassMeasure& m : kMeasures) {
      for (const ClassAverage average :
           {ClassAverage::kNone, ClassAverage::kMacro, ClassAverage::kMicro}) {
        records.push_back(measure_record(
            m.name, message("average ", int(average), ignored ? ", a class ignored" : ""),
            [=](const Variable& y, const Variable& t) { return m.call(y, t, average, ignored); },
            [=](const Plain& y, const Plain& t) {
              return class_measure(m, average, matrix_of(y, t, ignored));
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
      [=](const Variable& y, const Variable& t) { return F::top_k_accuracy(y, t, k, ignored); },
      [=](const Plain& y, const Plain& t) {
        double right = 0, count = 0;
        for_samples(t, [&](const Shape& i) {
          const auto label = int64_t(t.at(i));
          if (ignored && label == *ignored) return;
          count += 1;
          if (label < 0) return;
          int64_t better = 0;
          for (int64_t c = 0; c < 3; ++c) better += score(y, i, c) > score(y, i, label);
          right += better < k;
        });
        return plain(ratio(right, count));
      });
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
      [](const Variable& y, const Variable& t) { return F::binary_accuracy(floor(y.data()), t); },
      [](const Plain& y, const Plain& t) {
        double right = 0, count = 0;
        for (size_t i = 0; i < y.values.size(); ++i) {
          if (t.values[i] == -1) continue;
          count += 1;
          right += (std::floor(y.values[i]) >= 0) == (t.values[i] == 1);
        }
        return plain(ratio(right, count));
      });
  r.ranges = {{-1, 1}, {-1, 2, Dtype::kInt32}};
  r.shapes = {{{40}, {40}}, {{4, 3}, {4, 3}}, {{}, {}}, {{0}, {0}}};
  r.errors = {type_error(
      "BinaryAccuracy", {{2}, {2}},
      "Expect: t.dtype.kind == i\nActual: f != i\nInputs: y float64 (2,), t float64 (2,)\nExpected "
      "are floating scores and labels 0 and 1 in an integer dtype, of one shape.")};
  return r;
}

FunctionRecord r2_record(bool raw) {
  FunctionRecord r = measure_record(
      "r2_score", raw ? "each output" : "",
      [=](const Variable& y, const Variable& t) { return F::r2_score(y, t, raw); },
      [=](const Plain& y, const Plain& t) {
        const int64_t n = y.shape[0], outputs = y.shape.ndim() > 1 ? y.shape[1] : 1;
        double sum = 0;
        std::vector<double> each;
        for (int64_t k = 0; k < outputs; ++k) {
          const auto at = [&](const Plain& x, int64_t i) {
            return x.values[size_t(i * outputs + k)];
          };
          double mean = 0, residual = 0, spread = 0;
          bool varies = false;
          for (int64_t i = 0; i < n; ++i) mean += at(t, i) / double(n);
          for (int64_t i = 0; i < n; ++i) {
            residual += (at(y, i) - at(t, i)) * (at(y, i) - at(t, i));
            spread += (at(t, i) - mean) * (at(t, i) - mean);
            varies |= at(t, i) != at(t, 0);
          }
          each.push_back(varies ? 1 - residual / spread : 0);
          sum += each.back();
        }
        const Shape shape = y.shape.ndim() > 1 ? Shape{outputs} : Shape{};
        return raw ? Plain{shape, each} : plain(sum / double(outputs));
      });
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
