// backward: one pass through the graph behind several results.
#pragma once

#include <memory>

#include "catena/autograd/variable.h"

namespace catena {

// Runs the graph backward from all outputs at once: what is behind several of them is visited once,
// with the sum of what comes from each. Gradients are those of
//   sum over i of dot(outputs[i], gradients[i]).
//
// gradients[i] has the dtype (DtypeError), shape (ShapeError) and device (DeviceError) of
// outputs[i]. A null one means one, for an output of a single element; a larger one is a
// GradientError. No gradients at all: all are null. Otherwise there must be as many as outputs, and
// at least one output (ValueError).
//
// Outputs may be behind each other, listed twice (their gradients add up), or roots, which get
// their gradient directly. One that is undefined is a ValueError; one that is volatile, or of which
// nothing was recorded (under NoBackprop, or a function of constants alone), a GradientError. The
// checks come before anything is written.
//
// Afterwards gradients of roots are assigned, those of parameters have grown by it; outputs keep
// none, unless retain_grad asks for it, as all that has a creator. Observers of parameters are
// notified as of one pass. Everything runs on the current streams, in descending order of creation.
void backward(const Variables& outputs, const Arrays& gradients = {},
              const BackwardOptions& options = {});

// What passes with BackwardOptions::weights_later leave to backward_weights: the functions that
// parameters go into, with the gradients of their outputs. Keeps these alive, and what they saved.
//
//   DeferredWeights later;
//   loss.backward({.weights_later = &later});   // gradients of inputs: what others wait for
//   ...
//   backward_weights(later);                    // gradients of parameters
//
// Several passes may note in one object what they leave.
class DeferredWeights {
 public:
  DeferredWeights();
  ~DeferredWeights();
  DeferredWeights(DeferredWeights&&) noexcept;
  DeferredWeights& operator=(DeferredWeights&&) noexcept;
  // Whether nothing is left to do.
  bool empty() const;

  struct Rest;  // the library's own

 private:
  friend class BackwardPass;
  friend void backward_weights(DeferredWeights& later);
  std::unique_ptr<Rest> rest_;
};

// Adds the gradients of parameters that earlier passes have left, and empties `later`. Observers
// are notified as of one pass, here and not by the passes before. What functions saved must be
// unchanged until then (GradientError). If it fails, the rest is lost.
void backward_weights(DeferredWeights& later);

}  // namespace catena
