#include "functions/common/checks.h"

namespace catena::functions {
namespace {

// "Inputs: x float32 (4, 5), W float32 (2, 3)", on a separate line.
std::string list_of(std::span<const TypeOf* const> inputs) {
  std::string text;
  for (const TypeOf* input : inputs) {
    if (input->array == nullptr) continue;
    text += message(text.empty() ? "\nInputs: " : ", ", input->text(), " ", input->array->dtype(),
                    " ", input->array->shape());
  }
  return text;
}

}  // namespace

void refuse_types(const std::string& label, const InvalidType& mismatch,
                  std::span<const TypeOf* const> inputs, const std::string& advice) {
  throw InvalidType(mismatch.expect(), mismatch.actual(),
                    message("Invalid operation is performed in: ", label, " (Forward)\n\n",
                            mismatch.what(), list_of(inputs), advice.empty() ? "" : "\n", advice));
}

std::string float_advice(const TypeOf& input) {
  return message("Expected is a floating dtype: convert ", input.text(),
                 " with .astype(dtype::float32).");
}

std::string NamedInput::text() const {
  return index < 0 ? std::string(name) : message(name, "[", index, "]");
}
std::string Ndim::text(int) { return ".ndim"; }
std::string DtypeAttribute::text(int) { return ".dtype"; }
std::string Kind::text(int) { return ".dtype.kind"; }
std::string Extent::text(int axis) { return message(".shape[", axis, "]"); }

void Extent::refuse_axis(const NamedInput& input, int axis) {
  throw InvalidType(message(input.text(), ".ndim > ", axis),
                    message(input.array->ndim(), " <= ", axis));
}

}  // namespace catena::functions
