// one_hot: labels compared with the numbers of the classes.
#include "catena/functions/array/one_hot.h"

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "functions/common/support.h"

namespace catena::functions {

Variable one_hot(const VariableOperand& t, int64_t classes, Dtype dtype) {
  FunctionCall call("OneHot", Autocast::kNone, t);
  const Array& labels = call[0].data();
  const TypeOf in(labels, "t");
  const auto checks = Checks(call.named(), in).advised([] {
    return "Labels are integers: convert them with .astype(dtype::int32).";
  });
  if (!is_unsigned_int(labels.dtype())) checks.require(in.kind() == 'i');
  CATENA_CHECK(ValueError, classes >= 0, "OneHot: expected a number of classes, got ", classes);
  const Array number = arange(classes, {Dtype::kInt64, labels.device()});
  return call.unrecorded(equal(labels.expand_dims(-1), number).astype(dtype));
}

}  // namespace catena::functions
