// Records of reductions that are more than a sum, and of running sums.
#include <limits>

#include "catena/functions/math/cumsum.h"
#include "catena/functions/math/logsumexp.h"
#include "catena/functions/math/moments.h"
#include "catena/functions/math/norm.h"
#include "catena/functions/math/prod.h"
#include "functions/function_record.h"

namespace catena {
namespace {

struct Kind {
  const char *function, *label, *variant;
  std::function<Variable(const Variable&, const ReduceAxes&, bool)> call;
  std::vector<Shapes> more = {};
};

#define CATENA_CALL(...) \
  [](const Variable& x, const ReduceAxes& axes, bool keep) { return __VA_ARGS__; }
const Kind kKinds[] = {
    {"logsumexp", "LogSumExp", "", CATENA_CALL(F::logsumexp(x, axes, keep)), {{{0, 3, 2}}}},
    {"var", "Var", "", CATENA_CALL(F::var(x, axes, keep))},
    {"var", "Var", "unbiased", CATENA_CALL(F::var(x, axes, keep, 1))},
    {"std", "Std", "", CATENA_CALL(F::std(x, axes, keep))},
    {"norm", "Norm", "2", CATENA_CALL(F::norm(x, axes, keep)), {{{0, 3, 2}}}},
    {"norm", "Norm", "1", CATENA_CALL(F::norm(x, axes, keep, 1))},
    {"norm", "Norm", "3", CATENA_CALL(F::norm(x, axes, keep, 3))},
    {"norm", "Norm", "infinity",
     CATENA_CALL(F::norm(x, axes, keep, std::numeric_limits<double>::infinity()))},
    {"prod", "Prod", "", CATENA_CALL(F::prod(x, axes, keep)), {{{}}, {{0, 3, 2}}}},
};
#undef CATENA_CALL

FunctionRecord kind_record(const Kind& f, const Axes& axes, bool keepdims) {
  FunctionRecord r;
  r.function = f.function;
  r.variant = message(f.variant, " axes ", axes, keepdims ? ", kept" : "");
  r.shapes = {{{3, 4, 2}}};
  r.shapes.insert(r.shapes.end(), f.more.begin(), f.more.end());
  if (!axes.empty())
    std::erase_if(r.shapes, [](const Shapes& shapes) { return shapes[0].empty(); });
  r.call = unary([=](const Variable& x) { return f.call(x, axes, keepdims); });
  r.errors = {
      error<IndexError>(
          [=](const Draw& draw) {
            f.call(draw({4, 3}), 2, false);
          },
          message(f.label,
                  ": x has 2 axes, 0 to 1, "
                  "or -2 to -1 from the end; the axis given is 2.")),
      integers_refused(f.label, {4, 3, 2}),
  };
  return r;
}

FunctionRecord cumsum_record(std::optional<int64_t> axis, Shapes shapes) {
  FunctionRecord r;
  r.function = "cumsum";
  r.variant = axis ? message("axis ", *axis) : "flattened";
  for (const Shape& shape : shapes) r.shapes.push_back({shape});
  r.call = unary([=](const Variable& x) { return F::cumsum(x, axis); });
  r.forward_launches = 1;
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(reduction) {
  FunctionRecords records{cumsum_record({}, {{2, 3}, {}}), cumsum_record(0, {{3, 2}, {0, 2}}),
                          cumsum_record(-1, {{3, 4}, {2, 3, 2}})};
  for (const Kind& f : kKinds) {
    for (const Axes& axes : {Axes{}, Axes{1}, Axes{-1, 0}}) {
      for (const bool keepdims : {false, true}) records.push_back(kind_record(f, axes, keepdims));
    }
  }
  return records;
}

}  // namespace catena
