// Records of connectionist_temporal_classification.

#include "catena/functions/loss/connectionist_temporal_classification.h"
#include "functions/function_record.h"

namespace catena {
namespace {

constexpr int32_t kBlank = 3;  // labels are 0, 1 and 2

FunctionRecord ctc(F::Reduction reduction, const char* variant) {
  FunctionRecord r;
  r.function = "connectionist_temporal_classification";
  r.variant = variant;
  r.ranges = {{-2, 2}, {0, 3, Dtype::kInt32}};
  r.shapes = {{{5, 3, 4}, {3, 2}}, {{4, 1, 4}, {1, 1}}, {{3, 2, 4}, {2, 0}},
              {{5, 0, 4}, {0, 2}}, {{1, 2, 4}, {2, 1}}, {{6, 2, 4}, {2, 3}}};
  r.call = [=](const Variables& v) {
    return Variables{
        F::connectionist_temporal_classification(v[0], v[1], kBlank, {.reduction = reduction})};
  };
  r.twice_differentiable = false;
  return r;
}

FunctionRecord errors() {
  FunctionRecord r = ctc(F::Reduction::kMean, "errors");
  r.shapes = {{{5, 3, 4}, {3, 2}}};
  const std::string name = "ConnectionistTemporalClassification";
  const std::string advice =
      "\nExpected are scores (steps, batch, classes), or a list of (batch, classes), and labels "
      "(batch, labels).";
  const auto call = [](Shape x, Shape t, int32_t blank, Dtype labels = Dtype::kInt32) {
    return [=](const Draw& draw) {
      F::connectionist_temporal_classification(draw(x), draw(t, 2, 4, 1, labels), blank);
    };
  };
  r.errors = {
      type_error(
          name, call({4, 2}, {2, 1}, 1),
          "Expect: x.ndim == 3\nActual: 2 != 3\nInputs: x float64 (4, 2), t int32 (2, 1)" + advice),
      type_error(name, call({4, 2, 4}, {3, 1}, 1),
                 "Expect: x.shape[1] == t.shape[0]\nActual: 2 != 3\nInputs: x float64 (4, 2, 4), "
                 "t int32 (3, 1)" +
                     advice),
      type_error(name, call({4, 2, 4}, {2, 1}, 1, Dtype::kFloat32),
                 "Expect: t.dtype == int32\nActual: float32 != int32\nInputs: x float64 (4, 2, "
                 "4), t float32 (2, 1)" +
                     advice),
      error<ValueError>(call({4, 2, 4}, {2, 1}, 4),
                        name + ": blank_symbol 4 is outside [0, 4), the classes"),
      error<ValueError>(call({4, 2, 4}, {2, 1}, -1),
                        name + ": blank_symbol -1 is outside [0, 4), the classes"),
      error<ValueError>(call({0, 2, 4}, {2, 1}, 1),
                        name + ": expected at least one step, got none"),
      error<ValueError>(
          [](const Draw& draw) {
            F::connectionist_temporal_classification(Variables{}, draw.labels({1}, {1, 1}), 0);
          },
          name + ": expected at least one step, got none"),
      error<ShapeError>(
          [](const Draw& draw) {
            const Variable a(draw({2, 3})), b(draw({2, 4}));
            F::connectionist_temporal_classification(Variables{a, b}, draw.labels({1, 1}, {2, 1}),
                                                     0);
          },
          name + ": expected scores of one shape (batch, classes), got (2, 4) at step 1 and (2, 3) "
                 "at step 0"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(connectionist_temporal_classification) {
  return {ctc(F::Reduction::kMean, "mean"), ctc(F::Reduction::kSum, "sum"),
          ctc(F::Reduction::kNone, "none"), errors()};
}

}  // namespace catena
