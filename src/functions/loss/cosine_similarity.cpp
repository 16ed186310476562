// cosine_similarity and cosine_embedding_loss, of element-wise functions and sums.
#include "catena/functions/loss/cosine_similarity.h"

#include "functions/common/axes.h"
#include "functions/common/loss_parts.h"

namespace catena::functions {
namespace {

// In the dtype in which losses are computed.
Variable cosine(const Variable& a, const Variable& b, Axis axis, double eps) {
  const Variable lengths =
      length_of(sum(square(a), axis), eps) * length_of(sum(square(b), axis), eps);
  return sum(a * b, axis) / lengths;
}

}  // namespace

Variable cosine_similarity(const VariableOperand& x0, const VariableOperand& x1, Axis axis,
                           double eps) {
  FunctionCall call("CosineSimilarity", Autocast::kFloat32, x0, x1);
  check_pair(call, "x0", "x1");
  const TypeOf in(call[0].data(), "x0");
  require_axis(call, in, axis);
  check_not_negative(call, "eps", eps);
  return cast(cosine(widened(call[0]), widened(call[1]), axis, eps), call[0].dtype());
}

Variable cosine_embedding_loss(const VariableOperand& x0, const VariableOperand& x1,
                               const VariableOperand& y, double margin, Reduction reduction) {
  FunctionCall call("CosineEmbeddingLoss", Autocast::kFloat32, x0, x1, y);
  check_pair_of_vectors(call, "x0", "x1");
  const TypeOf in(call[0].data(), "x0");
  Checks(call.named(), in)
      .advised([] { return "Expected are pairs of vectors, (n, size)."; })
      .require(in.ndim() == 2);
  check_sample_labels(call, "x0", "y", 0, 2);
  CATENA_CHECK(ValueError, margin >= -1 && margin <= 1, call.label(),
               ": expected a margin of [-1, 1], got ", margin);
  const Variable c = cosine(widened(call[0]), widened(call[1]), 1, 1e-8);
  const Variable losses = where(greater(call[2].data(), 0), 1.0 - c, relu(c - margin));
  return reduced(losses, reduction, call[0].dtype());
}

}  // namespace catena::functions
