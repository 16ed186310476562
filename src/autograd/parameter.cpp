// Parameter handles: checked access to the state that they share.
#include "catena/autograd/parameter.h"

#include <cmath>
#include <mutex>

#include "autograd/tied_copies.h"
#include "core/part_storage.h"

#include "catena/autograd/placement.h"
#include "catena/core/entry_scope.h"
#include "catena/core/fork_mutex.h"

namespace catena {
namespace {

// "parameter '/l1/W'", or what can be said of one that is in no model.
std::string shown(const Parameter& p) {
  const std::string name = p.name().empty() ? path_of(*p.state()) : p.name();
  return name.empty() ? "the parameter (no model has listed it yet)" : "parameter '" + name + "'";
}

void check_fits(const Parameter& p, const Array& a) {
  check_defined(a);
  CATENA_CHECK(ShapeError, a.shape() == p.shape(), shown(p), " has shape ", p.shape(), ", got ",
               a.shape());
  CATENA_CHECK(DtypeError, a.dtype() == p.dtype(), shown(p), " has dtype ", p.dtype(), ", got ",
               a.dtype());
}

ForkMutex& path_mutex() {
  static auto& mutex = *new ForkMutex;  // outlives parameters in static objects
  return mutex;
}

}  // namespace

void note_path(ParameterState& state, const std::string& path) {
  const std::lock_guard lock(path_mutex());
  if (path.size() > state.path.size()) state.path = path;
}

std::string path_of(const ParameterState& state) {
  if (!state.name.empty()) return state.name.substr(state.name[0] == '/' ? 1 : 0);
  const std::lock_guard lock(path_mutex());
  return state.path;
}

void Parameter::fail_undefined(const char* who) {
  fail<ValueError>(who,
                   ": this parameter is undefined; was its layer moved from, or made without it "
                   "(nobias)?");
}

Parameter::Parameter(const Array& data, std::string name) : state_(new ParameterState) {
  check_defined("Parameter", data);
  CATENA_CHECK(DtypeError, is_float(data.dtype()), "Parameter: expected a floating dtype, got ",
               data.dtype());
  state_->variable = Variable(data);
  state_->data->replace(data, true);
  state_->variable.node()->parameter = state_.get();
  state_->name = std::move(name);
}

void ParameterState::destroy(ParameterState* state) {
  // Graphs may outlive the parameter. Without a variable its constructor has thrown.
  if (state->variable.defined()) state->variable.node()->parameter = nullptr;
  delete state;
}

const Array& Parameter::grad() const {
  ParameterState& state = known("Parameter::grad");
  state.is_read.store(true, std::memory_order_relaxed);
  return state.settle();
}

void Parameter::set_grad(const Array& grad) const {
  ParameterState& state = known("Parameter::set_grad");
  const EntryScope call("set_grad");
  check_fits(*this, grad);
  state.set_gradient(grad);
}

void Parameter::accumulate_grad(const Array& grad) const {
  ParameterState& state = known("Parameter::accumulate_grad");
  const EntryScope call("accumulate_grad");
  check_fits(*this, grad);
  if (state.is_stale())
    state.set_gradient(grad);  // from where it is, without a copy in between
  else
    state.add_gradient(grad.to(device()));
}

void Parameter::zero_grad() const { known("Parameter::zero_grad").mark_zero(); }

void Parameter::copy_from(const Array& source) const {
  known("Parameter::copy_from");
  const EntryScope call("copy_from");
  check_fits(*this, source);
  data().assign(source);
}

void Parameter::to(Device device) const {
  known("Parameter::to");
  if (device == this->device()) return;
  const Array moved = data().to(device);
  const Array& memory =
      state_->gradient_memory();  // none where the gradient is not in this process
  const Array grad = memory.defined() ? memory.to(device) : Array();
  rebind(moved, grad);
}

Parameter Parameter::clone() const {
  const ParameterState& state = known("Parameter::clone");
  const Parameter result(data().copy('K'), state.name);
  result.state()->is_packed = state.is_packed;
  result.state()->place(state.placement());
  return result;
}

void Parameter::place(const Placement& placement) const {
  ParameterState& state = known("Parameter::place");
  check_box("Parameter::place", shown(*this), shape(), placement);
  state.place(std::make_shared<const Placement>(placement));
}

void Parameter::rebind(const Array& data, const Array& grad) const {
  rebind_data(data);
  ++state_->data->moves;
  state_->bind_gradient(grad);
}

void Parameter::rebind_data(const Array& data) const {
  ParameterState& state = known("Parameter::rebind");
  state.variable.set_data(data);
  --state.data->moved_writes;  // a move, no write
  --state.data->moves;         // whoever knows better counts it
}

void Parameter::release_data() const {
  const ParameterState& state = known("Parameter::release_data");
  if (state.data->is_absent) return;
  Array& nothing = state.data->placeholder;
  if (!nothing.defined() || nothing.device() != device() || nothing.dtype() != dtype() ||
      nothing.shape() != shape())
    nothing = full(Shape(), NAN, {dtype(), device()}).broadcast_to(shape());
  rebind_data(nothing);
  state.data->set_absent(true);
}

OwnedParameter::OwnedParameter(const OwnedParameter& other) : Parameter(detail::copy_of(other)) {}

OwnedParameter& OwnedParameter::operator=(const OwnedParameter& other) {
  if (this == &other || !other.defined()) return *this;
  if (!defined())
    Parameter::operator=(other.clone());
  else
    copy_from(other.data());
  return *this;
}

namespace {

// Whether an optimizer has moved the parameter into an arena.
bool is_in_arena(const Parameter& p) { return whole_of(*p.data().storage()) != nullptr; }

}  // namespace

OwnedParameter& OwnedParameter::operator=(OwnedParameter&& other) {  // NOLINT: it may write
  if (this == &other) return *this;
  const bool writes = defined() && other.defined() && is_in_arena(*this) && !is_in_arena(other) &&
                      shape() == other.shape() && dtype() == other.dtype();
  if (writes) {
    copy_from(other.data());
    static_cast<Parameter&>(other) = Parameter();
  } else {
    Parameter::operator=(std::move(other));
  }
  return *this;
}

void OwnedParameter::tie_to(const Parameter& other) {
  const EntryScope call("tie_to");
  CATENA_CHECK(ValueError, defined(),
               "this layer has no such parameter; was it moved from, or made without it (nobias)?");
  CATENA_CHECK(ValueError, other.defined(),
               "the other parameter is undefined; was its layer moved from, or made without it "
               "(nobias)?");
  check_fits(*this, other.data());
  Parameter::operator=(other);
}

}  // namespace catena
