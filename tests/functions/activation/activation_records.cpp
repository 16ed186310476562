// Records of the activation functions.
#include "catena/functions/activation/elementwise.h"
#include "catena/functions/activation/softmax.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord softmax_record(bool log, int64_t axis) {
  FunctionRecord r;
  r.function = log ? "log_softmax" : "softmax";
  r.variant = message("axis ", axis);
  r.ranges = {{-3, 3}};
  r.shapes = {{{2, 3, 4}}, {{0, 3, 2}}, {{2, 0, 3}}, {{1, 1, 1}}};
  r.call =
      unary([=](const Variable& x) { return log ? F::log_softmax(x, axis) : F::softmax(x, axis); });
  r.forward_launches = r.backward_launches = 1;
  return r;
}

// The default axis, and what is refused.
FunctionRecord softmax_of_rows(bool log) {
  FunctionRecord r = softmax_record(log, 1);
  r.variant = "default axis";
  r.shapes = {{{4, 3}}};
  r.call = unary([=](const Variable& x) { return log ? F::log_softmax(x) : F::softmax(x); });
  const std::string label = log ? "LogSoftmax" : "Softmax";
  const auto call = [=](const Array& x, int64_t axis) {
    log ? F::log_softmax(x, axis) : F::softmax(x, axis);
  };
  r.errors = {
      error<IndexError>(
          [=](const Draw& draw) { call(draw({3}), 1); },
          label + ": x has one axis, 0 or -1; "
                  "the axis given is 1. It is 1 where none is given: give 0 for one sample."),
      error<IndexError>([=](const Draw& draw) { call(draw({3}), -2); },
                        label + ": x has one axis, 0 or -1; the axis given is -2."),
      integers_refused(label, {3, 2}),
  };
  return r;
}

FunctionRecord softplus_record() {
  FunctionRecord r = elementwise_record("softplus", {-2, 2},
                                        [](const Variable& x) { return F::softplus(x, 1.5); });
  r.variant = "beta 1.5";
  r.forward_launches = r.backward_launches = 3;
  r.errors = {error<ValueError>([](const Draw& draw) { F::softplus(draw({3}), 0.0); },
                                "softplus: expected a beta other than 0")};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(activation) {
  FunctionRecords records{softplus_record()};
  for (const bool log : {false, true}) {
    records.push_back(softmax_of_rows(log));
    for (const int64_t axis : {0, 1, 2, -1}) records.push_back(softmax_record(log, axis));
  }
  return records;
}

}  // namespace catena
