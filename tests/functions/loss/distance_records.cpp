// Records of the losses of differences and distances.
#include "catena/functions/loss/contrastive.h"
#include "catena/functions/loss/cosine_similarity.h"
#include "catena/functions/loss/huber_loss.h"
#include "catena/functions/loss/mean_absolute_error.h"
#include "catena/functions/loss/mean_over.h"
#include "catena/functions/loss/mean_squared_error.h"
#include "catena/functions/loss/triplet.h"
#include "functions/loss/reductions.h"

namespace catena {
namespace {

using F::Reduction;

// A function of the difference of two elements.
FunctionRecord difference_record(
    const char* function, std::string variant, Reduction reduction,
    std::function<Variable(const Variable&, const Variable&, Reduction)> call) {
  FunctionRecord r;
  r.function = function;
  r.variant = message(variant, variant.empty() ? "" : ", ", name_of(reduction));
  r.shapes = {{{4, 3}, {4, 3}}, {{}, {}}, {{0, 3}, {0, 3}}};
  r.call = binary([=](const Variable& x, const Variable& t) { return call(x, t, reduction); });
  return r;
}

FunctionRecords difference_records(Reduction reduction) {
  FunctionRecord squared = difference_record(
      "mean_squared_error", "", reduction, [](const Variable& x, const Variable& t, Reduction how) {
        return F::mean_squared_error(x, t, how);
      });
  if (reduction == Reduction::kMean) {
    squared.forward_launches = 3;
    squared.backward_launches = 4;
  }
  squared.errors = {
      type_error(
          "MeanSquaredError", {{4, 3}, {3, 4}},
          "Expect: x0.shape[0] == x1.shape[0]\nActual: 4 != 3\nInputs: x0 float64 (4, 3), x1 "
          "float64 (3, 4)\n"
          "Expected are two of one floating dtype and shape."),
      type_error(
          "MeanSquaredError", {{4, 3}, {{4, 3}, Dtype::kFloat32}},
          "Expect: x1.dtype == x0.dtype\nActual: float32 != float64\nInputs: x0 float64 (4, 3), x1 "
          "float32 (4, 3)\n"
          "Expected are two of one floating dtype and shape. The inputs are float64 and float32: "
          "convert the float64 one with "
          ".astype(dtype::float32), or make arrays of float32 by config().default_dtype = "
          "dtype::float32."),
  };
  FunctionRecord absolute =
      difference_record("mean_absolute_error", "", reduction,
                        [](const Variable& x, const Variable& t, Reduction how) {
                          return F::mean_absolute_error(x, t, how);
                        });
  absolute.errors = {type_error(
      "MeanAbsoluteError", {{4, 3}, {3, 4}},
      "Expect: x0.shape[0] == x1.shape[0]\nActual: 4 != 3\nInputs: x0 float64 (4, 3), x1 float64 "
      "(3, 4)\nExpected are two of one floating dtype and shape.")};
  FunctionRecord huber_record = difference_record(
      "huber_loss", "", reduction, [](const Variable& x, const Variable& t, Reduction how) {
        return F::huber_loss(x, t, 0.4, how);
      });
  huber_record.errors = {
      error<ValueError>([](const Draw& draw) { F::huber_loss(draw({2}), draw({2}), 0); },
                        "HuberLoss: expected a finite delta above 0, got 0"),
      error<ValueError>([](const Draw& draw) { F::huber_loss(draw({2}), draw({2}), -1); },
                        "HuberLoss: expected a finite delta above 0, got -1"),
  };
  FunctionRecord smooth = difference_record(
      "smooth_l1", "", reduction, [](const Variable& x, const Variable& t, Reduction how) {
        return F::smooth_l1(x, t, 0.4, how);
      });
  FunctionRecord l1 = difference_record("smooth_l1", "beta 0", reduction,
                                        [](const Variable& x, const Variable& t, Reduction how) {
                                          return F::smooth_l1(x, t, 0, how);
                                        });
  return {squared, absolute, huber_record, smooth, l1};
}

const char* const kLabelError =
    "Expect: y.shape[0] == x0.shape[0]\nActual: 2 != 4\nInputs: x0 float64 (4, 3), y int32 "
    "(2,)\nExpected is one integer a sample, (4,).";

FunctionRecord contrastive_record(Reduction reduction) {
  FunctionRecord r;
  r.function = "contrastive";
  r.variant = name_of(reduction);
  r.ranges = {{}, {}, {0, 2, Dtype::kInt32}};
  r.shapes = {{{6, 3}, {6, 3}, {6}}, {{4, 2, 2}, {4, 2, 2}, {4}}, {{0, 3}, {0, 3}, {0}}};
  r.call = [=](const Variables& v) {
    return Variables{F::contrastive(v[0], v[1], v[2], 2.5, reduction)};
  };
  r.errors = {
      type_error("Contrastive", {{4, 3}, {4, 3}, {{2}, Dtype::kInt32}}, kLabelError),
      type_error("Contrastive", {{4}, {4}, {{4}, Dtype::kInt32}},
                 "Expect: x0.ndim >= 2\nActual: 1 < 2\nInputs: x0 float64 (4,), x1 float64 "
                 "(4,)\nExpected are two of one floating dtype and shape, (n, size) or with more "
                 "axes.")};
  return r;
}

FunctionRecord triplet_record(Reduction reduction) {
  FunctionRecord r;
  r.function = "triplet";
  r.variant = name_of(reduction);
  r.shapes = {
      {{6, 3}, {6, 3}, {6, 3}}, {{4, 2, 2}, {4, 2, 2}, {4, 2, 2}}, {{0, 3}, {0, 3}, {0, 3}}};
  r.call = [=](const Variables& v) {
    return Variables{F::triplet(v[0], v[1], v[2], 0.5, reduction)};
  };
  r.errors = {type_error(
      "Triplet", {{4, 3}, {4, 3}, {4, 2}},
      "Expect: anchor.shape[1] == negative.shape[1]\nActual: 3 != 2\nInputs: anchor float64 (4, "
      "3), negative float64 (4, 2)\nExpected are two of one floating dtype and shape, (n, size) "
      "or with more axes.")};
  return r;
}

FunctionRecord cosine_record(int64_t axis) {
  FunctionRecord r;
  r.function = "cosine_similarity";
  r.variant = message("axis ", axis);
  r.ranges = {{0.2, 1}, {-1, 1}};
  r.shapes = {{{4, 3}, {4, 3}}, {{0, 3}, {0, 3}}};
  r.call = binary(
      [=](const Variable& a, const Variable& b) { return F::cosine_similarity(a, b, axis); });
  if (axis == 1)
    r.errors = {error<IndexError>(
        {{3}, {3}}, "CosineSimilarity: x0 has one axis, 0 or -1; the axis given is 1.")};
  return r;
}

FunctionRecord cosine_loss_record(Reduction reduction) {
  FunctionRecord r;
  r.function = "cosine_embedding_loss";
  r.variant = name_of(reduction);
  r.ranges = {{0.2, 1}, {-1, 1}, {-1, 2, Dtype::kInt32}};
  r.shapes = {{{6, 3}, {6, 3}, {6}}, {{0, 3}, {0, 3}, {0}}};
  r.call = [=](const Variables& v) {
    return Variables{F::cosine_embedding_loss(v[0], v[1], v[2], 0.1, reduction)};
  };
  r.errors = {
      type_error("CosineEmbeddingLoss", {{4, 3}, {4, 3}, {{2}, Dtype::kInt32}}, kLabelError),
      error<ValueError>(
          [](const Draw& draw) {
            F::cosine_embedding_loss(draw({2, 3}), draw({2, 3}), draw.labels({1, -1}, {2}), 2);
          },
          "CosineEmbeddingLoss: expected a margin of [-1, 1], got 2")};
  return r;
}

FunctionRecord mean_over_record(double counted) {
  FunctionRecord r = unary_record(
      "mean_over", counted > 0 ? "" : "nothing counted", {{}, {1}}, [=](const Variable& x) {
        return F::mean_over(x, full({}, counted, {x.dtype(), x.device()}));
      });
  r.errors = {error<ShapeError>(
      [](const Draw& draw) { F::mean_over(draw({2}), draw({2})); },
      "MeanOver: expected a sum and a count of one element each, got shapes (2,) and (2,); reduce "
      "them with sum()")};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(distance) {
  FunctionRecords records{cosine_record(1), cosine_record(0), cosine_record(-1),
                          mean_over_record(4), mean_over_record(0)};
  for (const Reduction reduction : kReductions) {
    for (FunctionRecord& record : difference_records(reduction))
      records.push_back(std::move(record));
    records.push_back(contrastive_record(reduction));
    records.push_back(triplet_record(reduction));
    records.push_back(cosine_loss_record(reduction));
  }
  return records;
}

}  // namespace catena
