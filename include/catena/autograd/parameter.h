// Parameter: a trainable variable with a persistent gradient array, shared by handle.
#pragma once

#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/autograd/parameter_state.h"

namespace catena {

// Parameters made by this thread that have a gradient although no set lists them: most likely a
// layer is missing in CATENA_FUNCTIONS. "(3, 4) float32" for each, once.
std::vector<std::string> forgotten_parameters();
// Stores and returns where a model has the parameter: "l1/W", or "" when no model has listed it
// yet. For messages; any thread.
void note_path(ParameterState& state, const std::string& path);
std::string path_of(const ParameterState& state);
// Logs a warning that names them; called by optimizers and files. `who` is "setup", "save", ...
void warn_about_forgotten_parameters(const char* who);
class Parameter;
// GradientError if the last backward pass of this thread over parameters of an optimizer reached
// one of `held` and also gave gradients to others that no model lists and no optimizer holds: these
// would never be updated. Exempt is whose grad() was read: somebody updates it by hand.
void require_no_lost_gradients(const char* who, const std::vector<Parameter>& held);

// Optimizers, arenas and communicators hold Parameters, never arrays: data and gradient may move
// (to_gpu, setup) and every holder sees it. An undefined one (default-constructed, of a layer that
// was moved from, the bias of a layer without one) may be assigned, compared and asked whether it
// is defined(); anything else is a ValueError that names the call.
class Parameter {
 public:
  Parameter() = default;
  // Takes the array as initial value.
  explicit Parameter(const Array& data, std::string name = "");

  // The value, the variable that functions see, and its properties; a ValueError for an undefined
  // handle. Where the value is not in this process (release_data), data() asks
  // ParameterState::bring for it, from one thread at a time, and is a ValueError if nobody brings
  // it.
  bool defined() const { return bool(state_); }
  const Array& data() const {
    ParameterState& state = known("Parameter::data");
    if (state.data->is_absent) [[unlikely]]
      state.bring("Parameter::data");
    return state.variable.data();
  }
  const Variable& variable() const { return known("Parameter::variable").variable; }
  operator const Variable&() const { return variable(); }
  const std::string& name() const { return known("Parameter::name").name; }
  Dtype dtype() const { return known("Parameter::dtype").variable.dtype(); }
  const Shape& shape() const { return known("Parameter::shape").variable.shape(); }
  int64_t size() const { return known("Parameter::size").variable.size(); }
  Device device() const { return known("Parameter::device").variable.device(); }

  // The gradient array; zeros when nothing has flowed since zero_grads. Allocated on first use.
  // GradientError where it is not in this process (ParameterState::release_gradient).
  const Array& grad() const;
  // Copies into the gradient array (DtypeError, ShapeError; from any device).
  void set_grad(const Array& grad) const;
  // Adds to the gradient array, from any device.
  void accumulate_grad(const Array& grad) const;
  // Sets a flag: the next contribution overwrites, so no kernel runs.
  void zero_grad() const;

  // Copies the values of `source` into this parameter, from any device; the array stays.
  void copy_from(const Array& source) const;
  // Moves data and gradient to another device. Inside an arena: move the model instead.
  void to(Device device) const;
  // An independent parameter with the same values (gradients are not copied).
  Parameter clone() const;

  // Asks arenas to lay the parameter next to the other packed ones of its layer, in the order of
  // declaration and without gaps, as libraries want the weights of recurrent layers. Copies of the
  // layer ask for the same. Call it before setup.
  void pack() const { known("Parameter::pack").is_packed = true; }

  // Says how the parameter lies over ranks (placement.h), for all handles: layers do so when they
  // make it, before an optimizer is set up. ShapeError for a box in which it does not fit.
  void place(const Placement& placement) const;
  // Null: it is whole on every rank.
  const Placement* placement() const { return known("Parameter::placement").placement().get(); }

  // Re-seats data and gradient, for the arena of an optimizer; values are not copied.
  void rebind(const Array& data, const Array& grad) const;
  // The same for the data alone, by the arena that the parameter is in.
  void rebind_data(const Array& data) const;
  // Lets the values go, for an arena that keeps a part of them: shape, dtype and device stay, and
  // graphs that refer to the parameter. Until rebind_data brings the values, functions that use
  // them, forward or backward, ask ParameterState::before_use; what it does not bring is a
  // ValueError that names the parameter. A variable or array taken before shows numbers that are
  // not numbers, or what the memory holds by then.
  void release_data() const;

  // The shared state, for optimizers and arenas; null when undefined.
  ParameterState* state() const { return state_.get(); }
  friend bool operator==(const Parameter& a, const Parameter& b) { return a.state_ == b.state_; }

 private:
  ParameterState& known(const char* who) const {
    if (!state_) [[unlikely]]
      fail_undefined(who);
    return *state_;
  }
  [[noreturn, gnu::cold]] static void fail_undefined(const char* who);

  IntrusivePtr<ParameterState> state_;
};

// A Parameter that is a member of a layer: copying the layer makes a new parameter, moving it keeps
// the parameter, assigning writes into the existing one. Assigning a temporary, `m.l2 = Linear(8,
// 3)`, writes too where an optimizer holds the existing parameter and shape and dtype agree; else
// the new parameter takes its place.
//
// That is for layers and models. The compiler warns where one parameter is copied or assigned by
// itself: head.W.tie_to(wte.W) makes two layers share it, head.W.copy_from(wte.W.data()) copies its
// values, and Parameter W = wte.W is one more handle of it.
class OwnedParameter : public Parameter {
 public:
  OwnedParameter() = default;
  explicit OwnedParameter(const Array& data) : Parameter(data) {}
  OwnedParameter(const OwnedParameter& other);
  [[deprecated("makes a new parameter; Parameter W = layer.W is one more handle of the same")]]  //
  OwnedParameter(OwnedParameter& other)
      : OwnedParameter(static_cast<const OwnedParameter&>(other)) {}
  OwnedParameter(OwnedParameter&&) noexcept = default;
  OwnedParameter& operator=(const OwnedParameter& other);
  [[deprecated("copies values; a.tie_to(b) shares, a.copy_from(b.data()) copies")]]  //
  OwnedParameter&
  operator=(OwnedParameter& other) {
    return *this = static_cast<const OwnedParameter&>(other);
  }
  // ValueError where it would write and the values are not in this process (release_data).
  OwnedParameter& operator=(OwnedParameter&& other);  // NOLINT: it may write

  // Ties: from now on this layer has the other layer's parameter, and what it had is gone. A model
  // lists a tied parameter under all its names, in named_parameters(); parameters(), gradients(),
  // optimizers, files and counts have it once, under the first name. Copies of a model are tied
  // as the model is; assigning a model writes values and leaves ties as they are.
  //
  // Call it before setup: an optimizer that is set up goes on holding what was there, until its
  // setup is called again. ShapeError or DtypeError unless both agree; ValueError where one is
  // undefined, for instance the bias of a layer without one.
  void tie_to(const Parameter& other);
};

}  // namespace catena
