#include "functions/loss/gradient_in_place.h"

#include <utility>

#include "catena/array/checks.h"
#include "catena/autograd/parameter.h"
#include "catena/autograd/parameter_state.h"
#include "catena/kernels/loss.h"

namespace catena::functions {
namespace {

// The array of a vertex; undefined when its variable is gone.
Array array_of(const VariableNode& v) {
  if (v.parameter) return v.parameter->data->array;
  return v.body ? v.body->data : Array();
}

// The input of the function that shows the storage, or null.
const VariableNode* shown_input(const FunctionNode& function, const Storage* storage) {
  for (const auto& input : function.inputs()) {
    const Array a = array_of(*input);
    if (a.defined() && a.storage().get() == storage) return input.get();
  }
  return nullptr;
}

// The root whose memory the variable shows, or null.
const VariableNode* root_behind(const Variable& x) {
  const Storage* storage = x.data().storage().get();
  const VariableNode* v = x.node();
  while (v && v->creator) v = shown_input(*v->creator, storage);
  return v;
}

}  // namespace

void check_may_overwrite(const FunctionCall& call, const Variable& x) {
  const VariableNode* root = root_behind(x);
  CATENA_CHECK(ValueError, root == nullptr, call.label(), ": gradient_in_place would overwrite ",
               root->parameter ? "parameter '" + path_of(*root->parameter) + "'"
                               : std::string("a variable that was given and not computed"),
               ", which the scores (shape ", x.shape(), ", ", x.dtype(),
               ") are or show; give scores that a function computes, or leave gradient_in_place "
               "out");
  check_writable(call.label().c_str(), x.data());
}

void GradientInPlaceNode::backward(BackwardContext& context) {
  const Variable gloss = context.grad_output();
  if (!gloss.defined() || !context.needs(0)) return;
  CATENA_CHECK(GradientError, !context.create_graph(), name_,
               ": create_graph needs the scores, which gradient_in_place has overwritten; leave "
               "gradient_in_place out");
  CATENA_CHECK(GradientError, gradient_.defined(), name_,
               ": backward came a second time, but gradient_in_place keeps the gradient for one; "
               "leave it out, or call the loss anew on scores computed anew");
  if (watches_) context.input(0);  // a GradientError if somebody has written to it
  const Array g = std::exchange(gradient_, Array());
  const Shape& shape = g.shape();
  const Array factors =
      gloss.ndim() == 0 ? gloss.data() : gloss.data().contiguous().reshape({shape[0], shape[2]});
  kernels::scale_samples(g.device(), {g, factors, expected_.defined() ? &expected_ : nullptr});
  g.note_write();
  context.set_grad(0, Variable::constant(g.reshape(inputs()[0]->shape)));
}

}  // namespace catena::functions
