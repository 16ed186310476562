// Stream of numbers to which the blocks of a network add.
#pragma once

#include "catena/functions/normalization/layer_normalization.h"

namespace catena::functions {

// What goes through the blocks of a transformer, each of which adds to it: x + made, where made is
// what the last block made. It is added when the next block normalizes the sum, by the kernel that
// does that; a sum alone would read and write all numbers once more, forward and backward.
//
//   ResidualStream stream(x);
//   stream.add(attention(stream.normalized(norm1)));
//   stream.add(products(stream.normalized(norm2)));
//   return stream.sum();
class ResidualStream {
 public:
  explicit ResidualStream(const Variable& x) : x_(x) {}

  // The sum so far. With what is not added yet it is one more addition.
  Variable sum();
  // norm(sum).
  Variable normalized(const LayerNormalization& norm);
  Variable normalized(const RMSNormalization& norm);

  // Adds `made`, of x's shape and dtype. ValueError for an undefined variable; other errors are
  // those of the addition, which comes later.
  void add(const Variable& made);

 private:
  template <class Norm>
  Variable normalized_by(const Norm& norm);

  Variable x_, made_;  // made_: undefined where all is added
};

}  // namespace catena::functions
