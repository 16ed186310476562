// Vectors of ids: embed_id and the layer EmbedID.
#pragma once

#include <optional>

#include "catena/autograd/function_set.h"
#include "catena/functions/initializers.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// y[i..., :] = W[x[i...], :], the vectors of ids. x: integers of any dtype, shape and layout; W:
// (ids, size) floats. Result of shape x.shape + (size,), of W's dtype, or of an AutocastScope's 16
// bits, in which case the sums of W's gradient are of float32; a W that is not contiguous is copied
// first. Vectors of `ignore_label` are zero, and no gradient flows to its row; it may be
// a row's number or any other. An id outside [0, ids) is a ValueError on a CPU; on a GPU, where
// looking would wait for the device, its vector is NaN, it has no gradient, and check_ids says
// where it is. InvalidType for other dtypes and shapes, DeviceError for operands on different
// devices. No gradient flows to x. W's gradient is written or added straight to its place; 16-bit
// gradients are summed in float32, equal ids in the order of x with config().deterministic and on a
// CPU. One kernel forward, one backward, which does not wait: it can be captured.
Variable embed_id(const VariableOperand& x, const VariableOperand& W,
                  std::optional<int64_t> ignore_label = {});
// Throws the ValueError above on any device, which it waits for. DtypeError unless x has integers.
void check_ids(const Array& x, int64_t ids, std::optional<int64_t> ignore_label = {});

// Start values, the ignored id and the dtype of an EmbedID.
struct EmbedIDOptions {
  InitialValue initialW = {};  // (in, out); taken without a copy where dtypes agree
  std::optional<int64_t> ignore_label = {};
  std::optional<Dtype> dtype = {};  // float32, or that of an array initialW
};

// A vector of out_size numbers for each of in_size ids, on the current device, from a normal
// distribution of deviation 1 unless given. The gradient has the size of W, and an update reads all
// of it, whichever ids were used. ShapeError for an initialW of another shape, ValueError for sizes
// below 1, DtypeError for integer dtypes.
class EmbedID : public Parameterized {
 public:
  EmbedID(int64_t in_size, int64_t out_size, const EmbedIDOptions& options = {});

  // The vectors of ids; errors are those of embed_id().
  Variable operator()(const VariableOperand& x) const;
  // The number of ids, the size of a vector, and the id that has none.
  int64_t in_size() const { return W.shape()[0]; }
  int64_t out_size() const { return W.shape()[1]; }
  std::optional<int64_t> ignore_label() const { return ignore_label_; }

  OwnedParameter W;  // (in, out)
  CATENA_PARAMETERS(W)

 private:
  std::optional<int64_t> ignore_label_;
};

}  // namespace catena::functions
