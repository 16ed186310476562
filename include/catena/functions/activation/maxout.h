// The largest of several linear functions: maxout and the layer Maxout.
#pragma once

#include <cstdint>

#include "catena/functions/connection/linear.h"

namespace catena::functions {

// The largest of each `pool_size` elements that follow each other along an axis, which becomes that
// much shorter (I. Goodfellow et al., Maxout Networks, 2013). x: floats, with an extent that
// pool_size divides, else InvalidType. IndexError for an axis out of range, ValueError for a
// pool_size below 1. The gradient goes to every element that equals the largest one, as that of
// max.
Variable maxout(const VariableOperand& x, int64_t pool_size, Axis axis = 1);

// Those of the Linear inside.
using MaxoutOptions = LinearOptions;

// maxout, along the last axis, of a fully connected layer with out_size * pool_size results: (...,
// in_size) to (..., out_size), or as the layer flattens.
// Errors are those of Linear and maxout.
class Maxout : public Parameterized {
 public:
  // initialW is (out_size * pool_size, in_size) or Chainer's (out_size, pool_size, in_size),
  // initial_bias (out_size * pool_size) or (out_size, pool_size).
  Maxout(int64_t in_size, int64_t out_size, int64_t pool_size, const MaxoutOptions& options = {});
  Variable operator()(const VariableOperand& x) const;
  int64_t pool_size() const { return pool_size_; }

  Linear linear;  // in_size to out_size * pool_size
  CATENA_FUNCTIONS(linear)

 private:
  int64_t pool_size_;
};

}  // namespace catena::functions
