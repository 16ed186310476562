// negative_log_likelihood: the numbers of the labels, chosen by a linear map.
#include "catena/functions/loss/negative_log_likelihood.h"

#include <limits>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/reduction.h"
#include "catena/autograd/mean.h"
#include "catena/core/entry_scope.h"
#include "functions/common/advice.h"
#include "functions/common/along_axis.h"
#include "functions/common/loss_parts.h"
#include "functions/common/scored_labels.h"

namespace catena::functions {
namespace {

// From (n, classes, ...) to the element of each label, (n, ...).
struct PickLabels {
  static constexpr const char* kName = "PickLabels";
  Array labels;  // (n, 1, ...) of int32; those outside [0, classes) choose some class
  int64_t classes;

  Array forward(const Array& x) const {
    const Array positions = catena::clip(labels, 0, classes - 1);
    return pick_along_axis(x, positions, 1).squeeze(1);
  }
  Array adjoint(const Array& gy) const {
    Shape shape(size_t(labels.ndim()), 1);
    shape[1] = classes;
    const Array number = arange(classes, {Dtype::kInt32, gy.device()}).reshape(shape);
    return catena::where(equal(labels, number), gy.expand_dims(1), 0.0);
  }
};

void check_negative_log_likelihood(const FunctionCall& call) {
  const Array &x = call[0].data(), &t = call[1].data();
  const TypeOf scores(x, "log_p"), labels(t, "t");
  const auto checks = Checks(call.named(), scores, labels).advised([&] {
    return label_advice("negative_log_likelihood(log_p, labels)", x, t);
  });
  checks.require_float(scores);
  require_label_each(checks, scores, labels);
}

}  // namespace

Variable negative_log_likelihood(const VariableOperand& log_p, const VariableOperand& t_operand,
                                 const NegativeLogLikelihoodOptions& options) {
  FunctionCall call("NegativeLogLikelihood", Autocast::kFloat32, log_p, t_operand);
  check_negative_log_likelihood(call);
  call.require_one_device();
  const Variable x = widened(call[0]);
  const int64_t classes = x.shape()[1];
  const bool on_cpu = x.device().is_cpu();
  if (on_cpu) {
    const EntryScope named(call.name());
    Labels::check(call[1].data(), classes, options.ignore_label);
  }
  // A copy, which later writes to t do not change.
  const Array given = Labels::as_int32(call[1].data());
  const Array t = given.same_body(call[1].data()) ? given.copy() : given;
  const Array counts = not_equal(t, options.ignore_label);
  Array weights = counts.astype(x.dtype());
  if (options.class_weight) {
    const Array w = class_weights(call, *options.class_weight, classes, x.dtype(), x.device());
    weights =
        weights *
        (classes > 0 ? take(w, catena::clip(t, 0, classes - 1), 0, OutOfRange::kClip) : weights);
  }
  FunctionCall pick(PickLabels::kName, Autocast::kNone, x);
  const Variable picked = classes > 0 ? linear_map(pick, PickLabels{t.expand_dims(1), classes})
                                      : Variable::constant(weights);
  Variable losses = where(counts, weighted(Variable::constant(weights), negative(picked)), 0.0);
  if (!on_cpu) {
    const Array known = logical_or(logical_and(greater_equal(t, 0), less(t, classes)),
                                   equal(t, options.ignore_label));
    losses = where(known, losses, std::numeric_limits<double>::quiet_NaN());
  }
  if (options.reduction != Reduction::kMean)
    return reduced(losses, options.reduction, call[0].dtype());
  const Array total = catena::sum(weights);
  const Variable mean =
      cast(sum(losses) / catena::where(greater(total, 0.0), total, 1.0), call[0].dtype());
  declare_mean(mean, {total, static_cast<double>(t.size())});
  return mean;
}

}  // namespace catena::functions
