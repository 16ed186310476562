// Records of rectifiers that are more than a row of the element-wise table.
#include "catena/functions/activation/elementwise.h"
#include "catena/functions/activation/maxout.h"
#include "catena/functions/activation/prelu.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord clipped_relu_record() {
  FunctionRecord r = elementwise_record("clipped_relu", {-30, 50},
                                        [](const Variable& x) { return F::clipped_relu(x); });
  r.errors = {error<ValueError>([](const Draw& draw) { F::clipped_relu(draw({3}), 0.0); },
                                "ClippedReLU: expected a bound z above 0, got 0"),
              error<ValueError>([](const Draw& draw) { F::clipped_relu(draw({3}), std::nan("")); },
                                "ClippedReLU: expected a bound z above 0, got nan")};
  return r;
}

FunctionRecords shrink_records() {
  FunctionRecord hard = elementwise_record(
      "hard_shrink", {-1, 1}, [](const Variable& x) { return F::hard_shrink(x, 0.25); });
  hard.errors = {error<ValueError>([](const Draw& draw) { F::hard_shrink(draw({3}), -1.0); },
                                   "HardShrink: expected a bound of at least 0, got -1")};
  FunctionRecord soft = elementwise_record(
      "soft_shrink", {-1, 1}, [](const Variable& x) { return F::soft_shrink(x, 0.25); });
  soft.errors = {error<ValueError>([](const Draw& draw) { F::soft_shrink(draw({3}), -1.0); },
                                   "SoftShrink: expected a bound of at least 0, got -1")};
  FunctionRecord half = elementwise_record("soft_shrink", {-4, 4},
                                           [](const Variable& x) { return F::soft_shrink(x); });
  half.variant = "bound left out";
  return {hard, soft, half};
}

// Slopes of shape () or of the axes behind the first.
FunctionRecord prelu_record(const char* variant, std::vector<Shapes> shapes) {
  FunctionRecord r;
  r.function = "prelu";
  r.variant = variant;
  r.ranges = {{-2, 2}, {-1, 1}};
  r.shapes = std::move(shapes);
  r.call = binary([](const Variable& x, const Variable& W) { return F::prelu(x, W); });
  r.forward_launches = 1;
  return r;
}

FunctionRecord prelu_errors() {
  FunctionRecord r = prelu_record("errors", {{{2, 3}, {3}}});
  r.errors = {
      type_error("PReLU", {{2, 4}, {3}},
                 "Expect: x.shape[1] == W.shape[0]\nActual: 4 != 3\nInputs: x float64 (2, 4), W "
                 "float64 (3,)\nThe slopes W, of shape (3,), cover the axes of x that follow the "
                 "first one; x has shape (2, 4)."),
      type_error("PReLU", {{2}, {3}},
                 "Expect: x.ndim >= W.ndim + 1\nActual: 1 < 2\nInputs: x float64 (2,), W float64 "
                 "(3,)\nThe slopes W, of shape (3,), cover the axes of x that follow the first "
                 "one; x has shape (2,)."),
      type_error("PReLU", {{2, 3}, {{3}, Dtype::kInt32}},
                 "Expect: W.dtype.kind == f\nActual: i != f\nInputs: x float64 (2, 3), W int32 "
                 "(3,)\nExpected is a floating dtype: convert W with .astype(dtype::float32)."),
  };
  return r;
}

FunctionRecord crelu_record(int64_t axis) {
  FunctionRecord r;
  r.function = "crelu";
  r.variant = message("axis ", axis);
  r.ranges = {{-2, 2}};
  r.shapes = {{{2, 3, 4}}, {{2, 3, 2, 2}}, {{0, 2, 3}}};
  r.call = unary([=](const Variable& x) { return axis == 1 ? F::crelu(x) : F::crelu(x, axis); });
  r.errors = {error<IndexError>([](const Draw& draw) { F::crelu(draw({3})); },
                                "CReLU: x has one axis, 0 or -1; the axis given is 1.")};
  return r;
}

FunctionRecord maxout_record(int64_t pool, int64_t axis) {
  FunctionRecord r;
  r.function = "maxout";
  r.variant = message("pools of ", pool, ", axis ", axis);
  r.ranges = {{-2, 2}};
  const int64_t n = 2 * pool;
  r.shapes = {{{n, n, n}}, {{n, n, 1, n}}, {{0, n, n}}};
  r.call = unary(
      [=](const Variable& x) { return axis == 1 ? F::maxout(x, pool) : F::maxout(x, pool, axis); });
  r.forward_launches = 1;
  r.backward_launches = 1;
  return r;
}

FunctionRecord maxout_errors() {
  FunctionRecord r = maxout_record(2, 1);
  r.variant = "errors";
  r.errors = {
      type_error("Maxout", {{2, 5}},
                 "Expect: x.shape[axis] % pool_size == 0\nActual: 1 != 0\nInputs: x float64 (2, "
                 "5)\nThe extent of axis 1 is expected as a multiple of pool_size, 2."),
      error<ValueError>(
          [](const Draw& draw) {
            F::maxout(draw({2, 4}), 0);
          },
          "Maxout: expected a pool_size of at least 1, got 0")};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(rectifier) {
  FunctionRecords records{
      clipped_relu_record(),
      elementwise_record("relu6", {-4, 11}, [](const Variable& x) { return F::relu6(x); }),
      elementwise_record("swish", {-5, 5}, [](const Variable& x) { return F::swish(x); }),
      prelu_record("one slope", {{{4, 3}, {}}, {{2}, {}}, {{0, 3}, {}}}),
      prelu_record("a slope a channel", {{{4, 3}, {3}}, {{2, 3, 4, 5}, {3}}, {{2, 0, 3}, {0}}}),
      prelu_record("slopes of two axes", {{{4, 3, 2}, {3, 2}}, {{2, 3, 4, 2}, {3, 4}}}),
      prelu_errors(),
      maxout_errors()};
  for (FunctionRecord& record : shrink_records()) records.push_back(std::move(record));
  for (const int64_t axis : {0, 1, -1}) {
    records.push_back(crelu_record(axis));
    records.push_back(maxout_record(3, axis));
  }
  records.push_back(maxout_record(1, 1));
  return records;
}

}  // namespace catena
