// negative_sampling and its layer.
#include "catena/functions/loss/negative_sampling.h"

#include <cmath>
#include <limits>

#include "functions/common/advice.h"
#include "functions/common/labels.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"
#include "functions/loss/sampled_logistic.h"

namespace catena::functions {
namespace {

// x (batch, size), labels of `ndim` axes and W (n, size).
void check_negative_sampling(const FunctionCall& call, const char* labels_name, int ndim) {
  const Array &x = call[0].data(), &t = call[1].data(), &W = call[2].data();
  const TypeOf in(x, "x"), labels(t, labels_name), weight(W, "W");
  const Checks checks(call.named(), in, labels, weight);
  checks.require_float(in);
  checks.advised([&] { return dtype_advice(x, W); }).require(weight.dtype() == in.dtype());
  if (t.dtype() != Dtype::kInt64) checks.require(labels.dtype() == Dtype::kInt32);
  checks.require(in.ndim() == 2, labels.ndim() == ndim, weight.ndim() == 2,
                 in.shape(0) == labels.shape(0), in.shape(1) == weight.shape(1));
}

// On a CPU; a GPU would be waited for.
void check_rows(const FunctionCall& call, const Array& rows, int64_t n) {
  const int32_t* values = rows.data<int32_t>();
  for (int64_t i = 0; i < rows.size(); ++i) {
    CATENA_CHECK(ValueError, values[i] >= 0 && values[i] < n, call.label(), ": row ", values[i],
                 " at position ", i, " is outside [0, ", n, ")");
  }
}

Variable apply_given(FunctionCall& call) {
  check_negative_sampling(call, "samples", 2);
  call.require_one_device();
  const Array& samples = call[1].data();
  const Array rows = Labels::as_int32(samples);
  if (rows.device().is_cpu()) check_rows(call, rows, call[2].shape()[0]);
  return apply_sampled_logistic(call, rows, nullptr, rows.same_body(samples));
}

void check_sample_size(const std::string& who, int64_t sample_size) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  CATENA_CHECK(ValueError, sample_size >= 1 && sample_size <= kMost, who,
               ": expected a sample_size from 1 to ", kMost, ", got ", sample_size);
}

void check_sampler(const FunctionCall& call, const WalkerAlias& sampler, int64_t sample_size) {
  check_sample_size(call.label(), sample_size);
  CATENA_CHECK(ValueError, sampler.threshold.defined(), call.label(),
               ": the sampler has no tables; it was moved from");
  const int64_t rows = call[2].shape()[0];
  CATENA_CHECK(ValueError, sampler.size() == rows, call.label(), ": the sampler draws from ",
               sampler.size(), " rows, but W has ", rows);
  CATENA_CHECK(DeviceError, sampler.threshold.device() == call[0].device(), call.label(),
               ": the sampler is on ", sampler.threshold.device(), ", the operands are on ",
               call[0].device(), "; move it with .to()");
}

// Draws a column for t as well, which takes its place: one copy less.
Variable apply_drawn(FunctionCall& call, const WalkerAlias& sampler, int64_t sample_size) {
  check_negative_sampling(call, "t", 1);
  call.require_one_device();
  check_sampler(call, sampler, sample_size);
  const Array t = Labels::as_int32(call[1].data());
  if (t.device().is_cpu()) check_rows(call, t, call[2].shape()[0]);
  const Array rows = sampler.sample({t.size(), sample_size + 1});
  if (rows.size() > 0) rows(Slice(), 0).assign(t);
  return apply_sampled_logistic(call, rows, nullptr, false);
}

std::vector<double> powers_of(const std::vector<double>& counts, double power) {
  std::vector<double> result;
  result.reserve(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    CATENA_CHECK(ValueError, std::isfinite(counts[i]) && counts[i] >= 0, "NegativeSampling: count ",
                 counts[i], " at position ", i, " is negative or not finite");
    result.push_back(std::pow(counts[i], power));
    CATENA_CHECK(ValueError, std::isfinite(result.back()), "NegativeSampling: count ", counts[i],
                 " at position ", i, " to the power ", power, " is ", result.back(),
                 ", expected a finite number");
  }
  return result;
}

Array initial_sampled_rows(int64_t in, int64_t rows, const NegativeSamplingOptions& options) {
  CATENA_CHECK(ValueError, in > 0 && rows > 0,
               "NegativeSampling: expected an in_size and counts of at least 1, got ", in, " and ",
               rows);
  return initial_weight("NegativeSampling", {rows, in}, "(rows, in)", options.initialW,
                        options.dtype, 0);
}

}  // namespace

Variable negative_sampling(const VariableOperand& x, const VariableOperand& t,
                           const VariableOperand& W, const WalkerAlias& sampler,
                           int64_t sample_size) {
  FunctionCall call("NegativeSampling", Autocast::kFloat32, x, t, W);
  return apply_drawn(call, sampler, sample_size);
}

Variable negative_sampling(const VariableOperand& x, const VariableOperand& samples,
                           const VariableOperand& W) {
  FunctionCall call("NegativeSampling", Autocast::kFloat32, x, samples, W);
  return apply_given(call);
}

NegativeSampling::NegativeSampling(int64_t in_size, const std::vector<double>& counts,
                                   int64_t sample_size, const NegativeSamplingOptions& options)
    : W(initial_sampled_rows(in_size, int64_t(counts.size()), options)),
      sampler(powers_of(counts, options.power)),
      sample_size_(sample_size) {
  check_sample_size("NegativeSampling", sample_size);
}

Variable NegativeSampling::operator()(const VariableOperand& x, const VariableOperand& t) const {
  CATENA_CHECK(ValueError, W.defined(),
               "NegativeSampling: this layer has no weights; it was moved from");
  FunctionCall call("NegativeSampling", Autocast::kFloat32, x, t, W.variable());
  return apply_drawn(call, sampler, sample_size_);
}

}  // namespace catena::functions
