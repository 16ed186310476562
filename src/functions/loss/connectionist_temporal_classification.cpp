// connectionist_temporal_classification: one kernel each way, which keeps the forward variables.
#include "catena/functions/loss/connectionist_temporal_classification.h"

#include "catena/functions/array/concat.h"
#include "catena/functions/array/reshape.h"
#include "catena/kernels/ctc.h"
#include "functions/common/advice.h"
#include "functions/common/labels.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

constexpr const char* kName = "ConnectionistTemporalClassification";

// What a call is made of, as the kernels take it; lengths may be undefined.
struct Problem {
  Array t, input_lengths, label_lengths;
  int32_t blank;
  double factor;
  Array norms, alpha, losses, loss;

  CtcCall call(const Array& x) const {
    return {&x,
            &t,
            input_lengths.defined() ? &input_lengths : nullptr,
            label_lengths.defined() ? &label_lengths : nullptr,
            blank,
            factor,
            &norms,
            &alpha,
            &losses,
            &loss};
  }
};

// Saves x, and the labels where the user's array serves the kernels.
class CtcNode final : public FunctionNode {
 public:
  CtcNode(Problem problem, bool watched) : problem_(std::move(problem)), watched_(watched) {}
  std::string label() const override { return kName; }
  bool is_differentiable() const override { return false; }

  void backward(BackwardContext& context) override {
    const Variable gloss = context.grad_output();
    if (!gloss.defined() || !context.needs(0)) return;
    if (watched_) context.input(1);  // GradientError if it was overwritten
    const Variable x = context.input(0);
    const Array xs = x.data().contiguous(), g = gloss.data().contiguous();
    give(context, 0, x.shape(), x.data(), [&](const Array& gx) {
      if (gx.size() == 0) return;
      kernels::ctc_grad(gx.device(), {problem_.call(xs), g, gx});
    });
  }

 private:
  Problem problem_;
  bool watched_;
};

void check_blank(const std::string& who, int32_t blank, int64_t classes) {
  CATENA_CHECK(ValueError, blank >= 0 && blank < classes, who, ": blank_symbol ", blank,
               " is outside [0, ", classes, "), the classes");
}

// Of the operands x and t.
void check_connectionist_classification(const FunctionCall& call, int32_t blank) {
  const Array &x = call[0].data(), &t = call[1].data();
  const TypeOf scores(x, "x"), labels(t, "t");
  const auto checks = Checks(call.named(), scores, labels).advised([] {
    return "Expected are scores (steps, batch, classes), or a list of (batch, classes), and labels "
           "(batch, labels).";
  });
  checks.require_float(scores);
  if (t.dtype() != Dtype::kInt64) checks.require(labels.dtype() == Dtype::kInt32);
  checks.require(scores.ndim() == 3, labels.ndim() == 2, scores.shape(1) == labels.shape(0));
  CATENA_CHECK(ValueError, x.shape()[0] > 0, call.label(),
               ": expected at least one step, got none");
  check_blank(call.label(), blank, x.shape()[2]);
}

// int32 lengths on the device of the labels, or undefined. A copy, which later writes to the given
// ones do not change before backward reads it.
Array lengths_of(const std::optional<Array>& given, const char* name, const Array& t) {
  if (!given) return {};
  CATENA_CHECK(ValueError, given->defined(), kName, ": ", name, " is an undefined array");
  CATENA_CHECK(ValueError, is_int(given->dtype()) && given->shape() == Shape{t.shape()[0]}, kName,
               ": expected ", name, " as integers of shape (", t.shape()[0], ",), got ",
               given->dtype(), " ", given->shape());
  CATENA_CHECK(DeviceError, given->device() == t.device(), kName, ": ", name, " is on ",
               given->device(), ", the labels are on ", t.device());
  if (given->dtype() == Dtype::kInt32) return given->copy();
  return Labels::as_int32(given->astype(Dtype::kInt64, false));
}

// The labels of one sample on the host.
struct HostLabels {
  const int64_t* values;
  int64_t count;

  void check(int64_t sample, int64_t classes, int32_t blank) const {
    for (int64_t k = 0; k < count; ++k) {
      CATENA_CHECK(ValueError, values[k] >= 0 && values[k] < classes, kName, ": label ", values[k],
                   " of sample ", sample, " is outside [0, ", classes, ")");
      CATENA_CHECK(ValueError, values[k] != blank, kName, ": a label of sample ", sample,
                   " is the blank_symbol ", blank);
    }
  }
  int64_t needed_steps() const {
    int64_t needed = count;
    for (int64_t k = 1; k < count; ++k) needed += values[k] == values[k - 1];
    return needed;
  }
};

int64_t length_at(const Array& lengths, int64_t i, int64_t all, const char* name) {
  if (!lengths.defined()) return all;
  const int64_t length = lengths.data<int32_t>()[i];
  CATENA_CHECK(ValueError, length >= 0 && length <= all, kName, ": ", name, " ", length,
               " of sample ", i, " is outside [0, ", all, "]");
  return length;
}

// On a CPU: t as it was given, so that errors show its labels, and lengths of int32.
void check_samples(const Array& given, const Array& input_lengths, const Array& label_lengths,
                   int64_t steps, int64_t classes, int32_t blank) {
  const Array t = given.astype(Dtype::kInt64, false).contiguous();
  for (int64_t i = 0; i < t.shape()[0]; ++i) {
    const int64_t own_steps = length_at(input_lengths, i, steps, "input_length");
    const HostLabels labels{t.data<int64_t>() + i * t.shape()[1],
                            length_at(label_lengths, i, t.shape()[1], "label_length")};
    labels.check(i, classes, blank);
    CATENA_CHECK(ValueError, labels.needed_steps() <= own_steps, kName, ": the ", labels.count,
                 " labels of sample ", i, " need at least ", labels.needed_steps(),
                 " steps, with a blank between equal neighbours, but it has ", own_steps);
  }
}

Variable apply_ctc(FunctionCall& call, int32_t blank,
                   const ConnectionistTemporalClassificationOptions& options) {
  check_connectionist_classification(call, blank);
  call.require_one_device();
  const Variable &x = call[0], &t = call[1];
  const int64_t steps = x.shape()[0], batch = x.shape()[1], classes = x.shape()[2];
  const Device device = x.device();
  Problem problem;
  problem.t = Labels::as_int32(t.data());
  problem.input_lengths = lengths_of(options.input_length, "input_length", problem.t);
  problem.label_lengths = lengths_of(options.label_length, "label_length", problem.t);
  problem.blank = blank;
  if (device.is_cpu())
    check_samples(t.data(), problem.input_lengths, problem.label_lengths, steps, classes, blank);
  const bool one_each = options.reduction == Reduction::kNone;
  problem.factor = options.reduction == Reduction::kMean && batch > 0 ? 1 / double(batch) : 1;
  const Dtype sums = compute_dtype(x.dtype());
  problem.norms = Array::uninitialized({2, steps, batch}, sums, device);
  problem.alpha = Array::uninitialized({batch, steps, 2 * t.shape()[1] + 1}, sums, device);
  problem.losses = Array::uninitialized({batch}, sums, device);
  problem.loss = Array::uninitialized(one_each ? Shape{batch} : Shape{}, x.dtype(), device);
  const Array loss = problem.loss;
  if (batch > 0)
    kernels::ctc(device, problem.call(x.data().contiguous()));
  else
    loss.fill(0.0);
  return call.record(loss, [&] {
    const bool watched = problem.t.same_body(t.data());
    auto node = make_node<CtcNode>(std::move(problem), watched);
    node->save_input(0, x);
    if (watched) node->save_input(1, t);
    return node;
  });
}

// (steps, batch, classes) of equal scores of each step.
Variable joined_steps(const Variables& xs) {
  CATENA_CHECK(ValueError, !xs.empty(), kName, ": expected at least one step, got none");
  for (size_t k = 0; k < xs.size(); ++k) {
    CATENA_CHECK(ValueError, xs[k].defined(), kName, ": got an undefined variable at step ", k);
    CATENA_CHECK(ShapeError, xs[k].ndim() == 2, kName,
                 ": expected scores (batch, classes) of each step, got shape ", xs[k].shape(),
                 " at step ", k);
    CATENA_CHECK(ShapeError, xs[k].shape() == xs[0].shape(), kName,
                 ": expected scores of one shape (batch, classes), got ", xs[k].shape(),
                 " at step ", k, " and ", xs[0].shape(), " at step 0");
  }
  const Shape& one = xs[0].shape();
  return reshape(concat(xs, 0), {int64_t(xs.size()), one[0], one[1]});
}

}  // namespace

Variable connectionist_temporal_classification(
    const VariableOperand& x, const VariableOperand& t, int32_t blank_symbol,
    const ConnectionistTemporalClassificationOptions& options) {
  FunctionCall call(kName, Autocast::kFloat32, x, t);
  return apply_ctc(call, blank_symbol, options);
}

Variable connectionist_temporal_classification(
    const Variables& xs, const VariableOperand& t, int32_t blank_symbol,
    const ConnectionistTemporalClassificationOptions& options) {
  return connectionist_temporal_classification(joined_steps(xs), t, blank_symbol, options);
}

void check_ctc_labels(const Array& t, int64_t steps, int64_t classes, int32_t blank_symbol,
                      const ConnectionistTemporalClassificationOptions& options) {
  CATENA_CHECK(ShapeError, t.ndim() == 2, kName, ": expected labels (batch, labels), got shape ",
               t.shape());
  CATENA_CHECK(DtypeError, t.dtype() == Dtype::kInt32 || t.dtype() == Dtype::kInt64, kName,
               ": expected labels of int32 or int64, got ", t.dtype());
  check_blank(kName, blank_symbol, classes);
  const Array labels = Labels::as_int32(t);
  const Array inputs = lengths_of(options.input_length, "input_length", labels),
              counts = lengths_of(options.label_length, "label_length", labels);
  check_samples(t.to_cpu(), inputs.defined() ? inputs.to_cpu() : inputs,
                counts.defined() ? counts.to_cpu() : counts, steps, classes, blank_symbol);
}

}  // namespace catena::functions
