#include "functions/common/loss_parts.h"

#include <cmath>

#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/functions/math/sum.h"
#include "functions/common/advice.h"

namespace catena::functions {
namespace {

std::string pair_advice(const Array& a, const Array& b, const char* expected) {
  const std::string conversion = dtype_advice(a, b);
  return message("Expected are two of one floating dtype and shape", expected, ".",
                 conversion.empty() ? "" : " ", conversion);
}

void check_pair(const FunctionCall& call, const char* name_a, const char* name_b, size_t a,
                size_t b, int least, const char* expected) {
  const Array &x0 = call[a].data(), &x1 = call[b].data();
  const TypeOf first(x0, name_a), second(x1, name_b);
  const auto checks =
      Checks(call.named(), first, second).advised([&] { return pair_advice(x0, x1, expected); });
  checks.require(first.kind() == 'f', second.dtype() == first.dtype(),
                 first.ndim() == second.ndim());
  if (least > 0) checks.require(first.ndim() >= least);
  for (int i = 0; i < x0.ndim(); ++i) checks.require(first.shape(i) == second.shape(i));
  call.require_one_device();
}

}  // namespace

Array weighs_nothing(const Array& weight, const Array& loss) {
  return logical_and(equal(weight, 0.0), isinf(loss));
}

Variable weighted(const Variable& weight, const Variable& loss) {
  return weight * where(weighs_nothing(weight.data(), loss.data()), 0.0, loss);
}

Variable reduced(const Variable& losses, Reduction reduction, Dtype dtype) {
  const double count = static_cast<double>(std::max<int64_t>(losses.size(), 1));
  return reduced(losses, reduction, dtype, count);
}

Variable reduced(const Variable& losses, Reduction reduction, Dtype dtype, double divisor) {
  switch (reduction) {
    case Reduction::kMean: return cast(sum(losses) * (1 / divisor), dtype);
    case Reduction::kSum: return cast(sum(losses), dtype);
    case Reduction::kNone: break;
  }
  return cast(losses, dtype);
}

void check_pair(const FunctionCall& call, const char* name_a, const char* name_b, size_t a,
                size_t b) {
  check_pair(call, name_a, name_b, a, b, 0, "");
}

void check_pair_of_vectors(const FunctionCall& call, const char* name_a, const char* name_b,
                           size_t a, size_t b) {
  check_pair(call, name_a, name_b, a, b, 2, ", (n, size) or with more axes");
}

void check_sample_labels(const FunctionCall& call, const char* name_x, const char* name_t, size_t x,
                         size_t t) {
  const Array &samples = call[x].data(), &labels = call[t].data();
  const TypeOf in(samples, name_x), label(labels, name_t);
  const auto checks = Checks(call.named(), in, label).advised([&] {
    return message("Expected is one integer a sample, (", samples.shape()[0], ",).",
                   is_int(labels.dtype()) ? "" : " Convert the labels with .astype(dtype::int32).");
  });
  if (!is_unsigned_int(labels.dtype())) checks.require(label.kind() == 'i');
  checks.require(label.ndim() == 1, label.shape(0) == in.shape(0));
}

void check_not_negative(const FunctionCall& call, const char* name, double value) {
  CATENA_CHECK(ValueError, std::isfinite(value) && value >= 0, call.label(), ": expected a ", name,
               " of at least 0, got ", value);
}

Array class_weights(const FunctionCall& call, const Array& weights, int64_t classes, Dtype dtype,
                    Device device) {
  const std::string who = call.label();
  CATENA_CHECK(ValueError, weights.defined(), who, ": class_weight is an undefined array");
  CATENA_CHECK(DtypeError, is_float(weights.dtype()), who,
               ": expected a floating dtype for class_weight, got ", weights.dtype());
  CATENA_CHECK(ValueError, weights.shape() == Shape{classes}, who, ": expected class_weight of ",
               classes, " classes, ", Shape{classes}, ", got shape ", weights.shape());
  CATENA_CHECK(DeviceError, weights.device() == device, who, ": class_weight is on ",
               weights.device().name(), ", the scores are on ", device.name(),
               "; move it with .to(x.device())");
  return weights.astype(dtype, false).contiguous();
}

}  // namespace catena::functions
