// Records of the losses of classes.
#include "catena/functions/loss/focal_loss.h"
#include "catena/functions/loss/hinge.h"
#include "catena/functions/loss/kl_divergence.h"
#include "catena/functions/loss/negative_log_likelihood.h"
#include "catena/functions/loss/sigmoid_cross_entropy.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "functions/loss/reductions.h"

namespace catena {
namespace {

using F::Reduction;

const std::vector<double> kWeights = {0.5, 2, 1.25};

std::optional<Array> weights_on(const Variable& x, bool weighted) {
  if (!weighted) return {};
  return array(kWeights).astype(x.dtype()).to(x.device());
}

struct Options {
  Reduction reduction;
  bool weighted;
  double smoothing;
  bool normalize = true;
  int32_t ignored = -1;
};
std::string text(const Options& o) {
  return message(name_of(o.reduction), o.weighted ? ", class weights" : "",
                 o.smoothing > 0 ? ", smoothed" : "", o.normalize ? "" : ", by the batch");
}
F::SoftmaxCrossEntropyOptions options_of(const Options& o, const Variable& x) {
  return {.normalize = o.normalize,
          .ignore_label = o.ignored,
          .reduction = o.reduction,
          .class_weight = weights_on(x, o.weighted),
          .label_smoothing = o.smoothing};
}

FunctionRecord hard_record(const Options& o) {
  FunctionRecord r;
  r.function = "softmax_cross_entropy";
  r.variant = "options, " + text(o);
  r.ranges = {{-2, 2}, {-1, 3, Dtype::kInt32}};
  r.shapes = {{{6, 3}, {6}}, {{2, 3, 4}, {2, 4}}, {{0, 3}, {0}}};
  r.call = binary([=](const Variable& x, const Variable& t) {
    return F::softmax_cross_entropy(x, t, options_of(o, x));
  });
  r.backward_launches = {};
  return r;
}

FunctionRecord soft_record(const Options& o) {
  FunctionRecord r;
  r.function = "softmax_cross_entropy";
  r.variant = "distributions, " + text(o);
  r.ranges = {{-2, 2}, {0.1, 0.9}};
  r.shapes = {{{4, 3}, {4, 3}}, {{2, 3, 4}, {2, 3, 4}}, {{0, 3}, {0, 3}}};
  r.call = binary([=](const Variable& x, const Variable& t) {
    return F::softmax_cross_entropy(x, t, options_of(o, x));
  });
  return r;
}

// The call with two numbers instead of options.
FunctionRecord numbers_record(bool normalize, int32_t ignored, Dtype labels) {
  FunctionRecord r = hard_record({Reduction::kMean, false, 0, normalize, ignored});
  r.variant = message(labels, " labels, ", ignored, " ignored", normalize ? ", normalized" : "");
  r.ranges[1] = {ignored == -1 ? -1. : 0., 3, labels};
  r.shapes.push_back({{2, 3, 2, 3}, {2, 2, 3}});
  r.call = binary([=](const Variable& x, const Variable& t) {
    return F::softmax_cross_entropy(x, t, normalize, ignored);
  });
  r.forward_launches = labels == Dtype::kInt32 ? 1 : 2;
  r.backward_launches = 1;
  return r;
}

FunctionRecord softmax_cross_entropy_errors() {
  FunctionRecord r = numbers_record(true, -1, Dtype::kInt32);
  r.variant = "errors";
  const auto came = [](const char* labels) {
    return message(
        "Inputs: x float64 (4, 3), t ", labels,
        "\nExpected as labels are class numbers of 0 to 2 in int32 or int64, of shape (4,).");
  };
  const std::string label = "SoftmaxCrossEntropy";
  r.errors = {
      type_error(label, {{4, 3}, {{2}, Dtype::kInt32}},
                 "Expect: x.shape[0] == t.shape[0]\nActual: 4 != 2\n" + came("int32 (2,)")),
      type_error(label, {{4, 3}, {{4}, Dtype::kFloat32}},
                 "Expect: t.dtype == int32\nActual: float32 != int32\n" + came("float32 (4,)") +
                     " Convert the labels with .astype(dtype::int32)."),
      type_error(label, {{4, 3}, {{4, 1}, Dtype::kInt32}},
                 "Expect: t.ndim == x.ndim - 1\nActual: 2 != 1\n" + came("int32 (4, 1)") +
                     " Drop the last axis of the labels with t.reshape({-1})."),
      type_error(label, {{{4}, Dtype::kInt32}, {4, 3}},
                 "Expect: x.dtype.kind == f\nActual: i != f\nInputs: x int32 (4,), t float64 (4, "
                 "3)\nExpected are floating scores (n, classes) and "
                 "class numbers (n) in int32 or int64. The arguments look swapped: it is "
                 "softmax_cross_entropy(scores, labels)."),
      type_error(label, {{4, 3}, {{4, 3}, Dtype::kInt32}},
                 "Expect: t.ndim == x.ndim - 1\nActual: 2 != 1\n" + came("int32 (4, 3)") +
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

FunctionRecords softmax_cross_entropy_records() {
  FunctionRecords records{softmax_cross_entropy_errors(), numbers_record(true, 1, Dtype::kInt32)};
  for (const bool normalize : {false, true})
    for (const Dtype labels : {Dtype::kInt32, Dtype::kInt64})
      records.push_back(numbers_record(normalize, -1, labels));
  for (const Reduction reduction : kReductions) {
    for (const bool weighted : {false, true}) {
      for (const double smoothing : {0.0, 0.25}) {
        records.push_back(hard_record({reduction, weighted, smoothing}));
        if (weighted) records.push_back(soft_record({reduction, weighted, smoothing}));
      }
    }
  }
  records.push_back(hard_record({Reduction::kMean, true, 0.25, false}));
  records.push_back(soft_record({Reduction::kMean, false, 0, false}));
  // Options that are not used cost nothing.
  FunctionRecord plain_call = hard_record({Reduction::kMean, false, 0});
  plain_call.variant = "options, none used";
  plain_call.forward_launches = plain_call.backward_launches = 1;
  records.push_back(plain_call);
  const auto call = [](F::SoftmaxCrossEntropyOptions options) {
    return [=](const Draw& draw) {
      F::SoftmaxCrossEntropyOptions here = options;
      if (here.class_weight && here.class_weight->defined())
        here.class_weight = here.class_weight->to(draw.device());
      F::softmax_cross_entropy(draw({2, 3}), draw.labels({0, 1}, {2}), here);
    };
  };
  records.back().errors = {
      error<ValueError>(call({.label_smoothing = 1}),
                        "SoftmaxCrossEntropy: expected a label_smoothing of at least 0 and below "
                        "1, got 1"),
      error<ValueError>(call({.class_weight = ones({2}, dtype::float64)}),
                        "SoftmaxCrossEntropy: expected class_weight of 3 classes, (3,), got shape "
                        "(2,)"),
      error<DtypeError>(call({.class_weight = ones({3}, dtype::int32)}),
                        "SoftmaxCrossEntropy: expected a floating dtype for class_weight, got "
                        "int32"),
      error<ValueError>(call({.class_weight = Array()}),
                        "SoftmaxCrossEntropy: class_weight is an undefined array"),
  };
  return records;
}

// Scores without a softmax are logarithms of something.
FunctionRecord likelihood_record(Reduction reduction, bool weighted) {
  FunctionRecord r;
  r.function = "negative_log_likelihood";
  r.variant = message(name_of(reduction), weighted ? ", class weights" : "");
  const int32_t ignored = weighted ? 3 : -1;
  r.ranges = {{-2, 2},
              weighted ? InputRange{0, 4, Dtype::kInt64} : InputRange{-1, 3, Dtype::kInt32}};
  r.shapes = {{{6, 3}, {6}}, {{2, 3, 4}, {2, 4}}, {{0, 3}, {0}}};
  r.call = binary([=](const Variable& x, const Variable& t) {
    return F::negative_log_likelihood(
        x, t,
        {.ignore_label = ignored, .reduction = reduction, .class_weight = weights_on(x, weighted)});
  });
  return r;
}

FunctionRecords likelihood_records() {
  FunctionRecords records;
  for (const Reduction reduction : kReductions) {
    for (const bool weighted : {false, true})
      records.push_back(likelihood_record(reduction, weighted));
  }
  records.back().errors = {type_error(
      "NegativeLogLikelihood", {{4, 3}, {{2}, Dtype::kInt32}},
      "Expect: log_p.shape[0] == t.shape[0]\nActual: 4 != 2\nInputs: log_p float64 (4, 3), t int32 "
      "(2,)\nExpected as labels are class numbers of 0 to 2 in int32 or int64, of shape (4,).")};
  return records;
}

FunctionRecord divergence_record(Reduction reduction) {
  FunctionRecord r;
  r.function = "kl_divergence";
  r.variant = name_of(reduction);
  r.ranges = {{-2, -0.1}, {0.1, 0.9}};
  r.shapes = {{{4, 3}, {4, 3}}, {{2, 3, 4}, {2, 3, 4}}, {{0, 3}, {0, 3}}};
  r.call = binary(
      [=](const Variable& q, const Variable& p) { return F::kl_divergence(q, p, reduction); });
  return r;
}

FunctionRecord hinge_record(F::HingeNorm norm, Reduction reduction) {
  FunctionRecord r;
  r.function = "hinge";
  r.variant = message(norm == F::HingeNorm::kL1 ? "L1, " : "L2, ", name_of(reduction));
  r.ranges = {{-2, 2}, {0, 3, Dtype::kInt32}};
  r.shapes = {{{5, 3}, {5}}, {{0, 3}, {0}}};
  r.call =
      binary([=](const Variable& x, const Variable& t) { return F::hinge(x, t, norm, reduction); });
  r.errors = {
      type_error(
          "Hinge", {{4, 3}, {{2}, Dtype::kInt32}},
          "Expect: t.shape[0] == x.shape[0]\nActual: 2 != 4\nInputs: x float64 (4, 3), t int32 "
          "(2,)\nExpected is one integer a sample, (4,)."),
      type_error("Hinge", {{4, 3, 2}, {{2}, Dtype::kInt32}},
                 "Expect: x.ndim == 2\nActual: 3 != 2\nInputs: x float64 (4, 3, 2), t int32 "
                 "(2,)\nExpected are scores (n, classes)."),
  };
  return r;
}

// A factor of the positive loss for each of three columns.
const std::vector<double> kPositive = {2, 0.5, 3};

FunctionRecord sigmoid_record(bool soft, bool weighted, bool normalize, Reduction reduction) {
  FunctionRecord r;
  r.function = "sigmoid_cross_entropy";
  r.variant = message(soft ? "probabilities, " : "options, ", name_of(reduction),
                      weighted ? ", weighted" : "", normalize ? ", normalized" : "");
  const int32_t ignored = weighted ? 2 : -1;
  const int64_t least = std::min(ignored, 0);
  r.ranges = {
      {-2, 2},
      soft ? InputRange{0.1, 0.9} : InputRange{double(least), double(least + 3), Dtype::kInt32}};
  r.shapes = {{{4, 3}, {4, 3}}, {{0, 3}, {0, 3}}};
  r.call = binary([=](const Variable& x, const Variable& t) {
    F::SigmoidCrossEntropyOptions options{
        .normalize = normalize, .ignore_label = ignored, .reduction = reduction};
    if (weighted) options.pos_weight = array(kPositive).astype(x.dtype()).to(x.device());
    return F::sigmoid_cross_entropy(x, t, options);
  });
  return r;
}

FunctionRecord sigmoid_numbers_record(bool normalize) {
  FunctionRecord r = sigmoid_record(false, false, normalize, Reduction::kMean);
  r.variant = normalize ? "normalized" : "by the batch";
  r.shapes.push_back({{5}, {5}});
  r.call = binary([=](const Variable& x, const Variable& t) {
    return F::sigmoid_cross_entropy(x, t, normalize);
  });
  r.forward_launches = normalize ? 12 : 10;
  r.backward_launches = 5;
  r.errors = {
      type_error(
          "SigmoidCrossEntropy", {{2, 3}, {{2}, Dtype::kInt32}},
          "Expect: x.ndim == t.ndim\nActual: 2 != 1\nInputs: x float64 (2, 3), t int32 (2,)\n"
          "Expected are floating scores and labels 0 and 1 in an integer dtype, of one shape."),
      type_error(
          "SigmoidCrossEntropy", {{{2}, Dtype::kInt32}, {2}},
          "Expect: x.dtype.kind == f\nActual: i != f\nInputs: x int32 (2,), t float64 (2,)\n"
          "Expected are floating scores and labels 0 and 1 in an integer dtype, of one shape. The "
          "arguments look swapped: it is sigmoid_cross_entropy(scores, "
          "labels)."),
  };
  return r;
}

FunctionRecords sigmoid_records() {
  FunctionRecords records{sigmoid_numbers_record(false), sigmoid_numbers_record(true)};
  for (const Reduction reduction : kReductions) {
    for (const bool soft : {false, true}) {
      for (const bool weighted : {false, true})
        records.push_back(sigmoid_record(soft, weighted, weighted, reduction));
    }
  }
  records.back().errors = {
      error<ValueError>(
          [](const Draw& draw) {
            F::sigmoid_cross_entropy(draw({2, 3}), draw({2, 3}), {.pos_weight = draw({2, 2, 3})});
          },
          "SigmoidCrossEntropy: expected a pos_weight that broadcasts to (2, 3), got shape (2, 2, "
          "3)"),
      type_error(
          "SigmoidCrossEntropy", {{2}, {{2}, Dtype::kFloat32}},
          "Expect: t.dtype == x.dtype\nActual: float32 != float64\nInputs: x float64 (2,), t "
          "float32 (2,)\nExpected are scores and labels of one shape. Convert labels 0 and 1 with "
          ".astype(dtype::int32), probabilities with .astype(x.dtype())."),
  };
  return records;
}

FunctionRecord focal_record(bool soft, double gamma, Reduction reduction) {
  FunctionRecord r;
  r.function = "focal_loss";
  r.variant =
      message(soft ? "probabilities" : "labels", ", gamma ", gamma, ", ", name_of(reduction));
  r.ranges = {{-2, 2}, soft ? InputRange{0.1, 0.9} : InputRange{0, 2, Dtype::kInt32}};
  r.shapes = {{{4, 3}, {4, 3}}, {{5}, {5}}, {{}, {}}, {{0, 3}, {0, 3}}};
  r.call = binary([=](const Variable& x, const Variable& t) {
    return F::focal_loss(x, t, 0.25, gamma, reduction);
  });
  r.errors = {
      error<ValueError>([](const Draw& draw) { F::focal_loss(draw({2}), draw({2}), 1.5); },
                        "FocalLoss: expected an alpha of [0, 1], got 1.5"),
      error<ValueError>([](const Draw& draw) { F::focal_loss(draw({2}), draw({2}), 0.5, -1); },
                        "FocalLoss: expected a gamma of at least 0, got -1")};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(classification) {
  FunctionRecords records =
      joined({softmax_cross_entropy_records(), likelihood_records(), sigmoid_records()});
  for (const Reduction reduction : kReductions) {
    records.push_back(divergence_record(reduction));
    for (const F::HingeNorm norm : {F::HingeNorm::kL1, F::HingeNorm::kL2})
      records.push_back(hinge_record(norm, reduction));
    records.push_back(focal_record(false, 2, reduction));
  }
  for (const double gamma : {0.0, 1.0, 1.5})
    records.push_back(focal_record(true, gamma, Reduction::kMean));
  return records;
}

}  // namespace catena
