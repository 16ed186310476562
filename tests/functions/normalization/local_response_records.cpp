// Records of local response normalization.
#include "catena/functions/normalization/local_response_normalization.h"
#include "functions/function_record.h"

namespace catena {
namespace {

struct Rule {
  int64_t n;
  double k, alpha, beta;
};

FunctionRecord record(const char* variant, const Rule& rule) {
  FunctionRecord r;
  r.function = "local_response_normalization";
  r.variant = variant;
  r.ranges = {{-2, 2}};
  r.shapes = {{{2, 7, 3, 2}}, {{3, 6}}, {{2, 1, 4}}, {{0, 3, 2}}, {{2, 40, 5}}};
  r.call = unary([rule](const Variable& x) {
    return F::local_response_normalization(x, rule.n, rule.k, rule.alpha, rule.beta);
  });
  r.forward_launches = r.backward_launches = 1;
  return r;
}

FunctionRecord with_errors(FunctionRecord r) {
  const std::string label = "LocalResponseNormalization";
  r.errors = {
      type_error(label, {{3}},
                 "Expect: x.ndim >= 2\nActual: 1 < 2\nInputs: x float64 (3,)\nExpected is (n, "
                 "channels, ...): the channels are axis 1."),
      integers_refused(label, {2, 3}),
      error<ValueError>(
          [](const Draw& draw) {
            F::local_response_normalization(draw({2, 3}), 0);
          },
          "LocalResponseNormalization: expected a window of at least 1 channel, got "
          "n = 0")};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(local_response) {
  return {with_errors(record("", {5, 2, 0.3, 0.75})), record("n 4", {4, 1, 0.5, 0.6}),
          record("n 1", {1, 1, 0.5, 1}), record("wide", {21, 2, 0.1, 0.75})};
}

}  // namespace catena
