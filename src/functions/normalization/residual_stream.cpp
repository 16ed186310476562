#include "catena/functions/normalization/residual_stream.h"

#include "catena/functions/math/elementwise.h"

namespace catena::functions {

Variable ResidualStream::sum() {
  if (made_.defined()) x_ = x_ + made_;
  made_ = {};
  return x_;
}

template <class Norm>
Variable ResidualStream::normalized_by(const Norm& norm) {
  if (!made_.defined()) return norm(x_);
  const AddNormalizationResult both = norm(x_, made_);
  x_ = both.sum;
  made_ = {};
  return both.y;
}

Variable ResidualStream::normalized(const LayerNormalization& norm) { return normalized_by(norm); }
Variable ResidualStream::normalized(const RMSNormalization& norm) { return normalized_by(norm); }

void ResidualStream::add(const Variable& made) {
  CATENA_CHECK(ValueError, made.defined(), "ResidualStream: add() got an undefined variable");
  sum();
  made_ = made;
}

}  // namespace catena::functions
