// The products at each position of Llama and its successors.
#pragma once

#include <cstdint>

#include "catena/autograd/function_set.h"
#include "catena/functions/connection/linear.h"

namespace catena::functions {

// What is multiplied into the numbers of a GatedMlp.
enum class Gate : uint8_t { kSilu, kGelu, kGeluTanh };

// Options of a GatedMlp.
struct GatedMlpOptions {
  Gate gate = Gate::kSilu;
  bool nobias = true;
  InitialValue initialW = {};  // of all products; that of Linear unless given
  Dtype dtype = Dtype::kFloat32;
};

// down_proj(gate(gate_proj(x)) * up_proj(x)), with silu "SwiGLU" (Shazeer 2020). x: (..., size). By
// NameMap::from_pytorch() parameters have the names that Hugging Face's models give them.
// ShapeError for x of another size, ValueError for sizes below 1 and for an array initialW.
class GatedMlp : public FunctionSet {
 public:
  GatedMlp(int64_t size, int64_t inner, const GatedMlpOptions& options = {});
  Variable operator()(const VariableOperand& x) const;

  // The products.
  Linear gate_proj, up_proj, down_proj;
  CATENA_FUNCTIONS(gate_proj, up_proj, down_proj)

 private:
  Gate gate_;
};

}  // namespace catena::functions
