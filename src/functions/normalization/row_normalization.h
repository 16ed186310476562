// Parts of layer, root-mean-square, group and instance normalization: the call of their kernels,
// its record in the graph, and the start values of their layers.
#pragma once

#include "catena/autograd/function_set.h"
#include "catena/kernels/row_normalization.h"
#include "functions/common/layout.h"
#include "functions/common/support.h"

namespace catena::functions {

// What one call normalizes.
struct RowPlan {
  RowLayout layout;
  BatchLayout batch_layout;  // of x, y and their gradients
  Shape channels;            // the shape of gamma and beta
  double eps;
  bool centred;

  // Rows over the last axes of x, which `size` says.
  static RowPlan of_last_axes(const Array& x, const Shape& size, double eps, bool centred);
  // Rows over the positions of x and a group of the channels of axis 1.
  static RowPlan of_groups(const Array& x, int64_t groups, double eps);
};

// gamma and beta of a call; null: none.
struct RowParameters {
  const Variable *gamma, *beta;
};

// InvalidType unless x is of a floating dtype, and gamma and beta, if there are any, have the shape
// `channels` and the dtype of x or of statistics.
void check_row_types(const FunctionCall& call, const RowParameters& parameters,
                     const Shape& channels);
// The normalized x as a variable; ends the call, whose operands are x and the parameters. With
// `added` the last operand is a residual, like x, and the results are the normalized sum and the
// sum.
Variables normalize_rows(FunctionCall& call, const RowPlan& plan, const RowParameters& parameters,
                         bool added = false);

// ValueErrors of `layer` for numbers that make no sense.
void check_eps(const char* layer, double eps);
void check_size(const char* layer, const Shape& size);
// The parameter's variable, or null where the layer has none. ValueError if it was moved from.
const Variable* used_parameter(const char* layer, const OwnedParameter& parameter, bool used);

}  // namespace catena::functions
