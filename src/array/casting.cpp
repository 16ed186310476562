#include "catena/array/casting.h"

#include "catena/array/creation.h"
#include "catena/array/elementwise.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/elementwise_ops.h"

namespace catena {

Dtype result_type(std::initializer_list<Operand> operands) {
  const EntryScope call("result_type");
  CATENA_CHECK(ValueError, operands.size() > 0, "expected at least one operand");
  std::optional<Dtype> d;
  for (const Operand& operand : operands) {
    if (const Array* a = operand.array()) d = d ? promote(*d, a->dtype()) : a->dtype();
  }
  const bool any_array = d.has_value();
  for (const Operand& operand : operands) {
    if (operand.array()) continue;
    const Scalar& value = operand.scalar();
    d = any_array ? promote(*d, value)
        : d       ? promote(*d, value.default_dtype())
                  : value.default_dtype();
  }
  return *d;
}

Dtype common_type(std::initializer_list<Array> arrays) {
  const EntryScope call("common_type");
  CATENA_CHECK(ValueError, arrays.size() > 0, "expected at least one array");
  std::optional<Dtype> common;
  for (const Array& a : arrays) {
    CATENA_CHECK(DtypeError, a.dtype() != Dtype::kBool, "an array of bool has no floating type");
    const Dtype d = is_float(a.dtype()) ? a.dtype() : Dtype::kFloat64;
    common = common ? promote(*common, d) : d;
  }
  return *common;
}

namespace {

// The source as an array that can be assigned.
Array castable(const Array& destination, const Operand& source, Casting casting) {
  const Dtype to = destination.dtype();
  if (const Array* a = source.array()) {
    CATENA_CHECK(DtypeError, can_cast(a->dtype(), to, casting), "cannot cast ", a->dtype(), " to ",
                 to, " by the rule '", casting, "'; give another rule or use astype");
    return *a;
  }
  const Scalar& value = source.scalar();
  CATENA_CHECK(DtypeError, casting == Casting::kUnsafe || value.kind() <= kind_of(to),
               "cannot cast the number ", value, " to ", to, " by the rule '", casting, "'");
  CATENA_CHECK(ValueError, casting == Casting::kUnsafe || value.fits(to), value, " does not fit ",
               to);
  return full({}, value, {to, destination.device()});
}

}  // namespace

void copyto(const Array& destination, const Operand& source, Casting casting,
            const OptionalArray& where) {
  const EntryScope call("copyto");
  const Array from = castable(destination, source, casting);
  if (!where.given()) return destination.assign(from);
  CATENA_CHECK(DtypeError, where.dtype() == Dtype::kBool, "expected a bool mask, got ",
               where.dtype());
  check_same_device(destination, from);
  const Array mask = where.broadcast_to(destination.shape());
  elementwise(ops::where,
              {mask, from.astype(destination.dtype(), false).broadcast_to(destination.shape()),
               destination},
              destination);
}

}  // namespace catena
