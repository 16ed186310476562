#include "catena/autograd/parameter.h"

#include "catena/array/math.h"

namespace catena {
namespace {

Array new_gradient(const Parameter& p) {
  return Array::uninitialized(p.shape(), p.dtype(), p.device());
}

void check_fits(const char* who, const Parameter& p, const Array& a) {
  CATENA_CHECK(ShapeError, a.shape() == p.shape(), who, ": parameter '", p.name(), "' has shape ",
               p.shape(), ", got ", a.shape());
  CATENA_CHECK(DtypeError, a.dtype() == p.dtype(), who, ": parameter '", p.name(), "' has dtype ",
               p.dtype(), ", got ", a.dtype());
}

}  // namespace

Parameter::Parameter(const Array& data, std::string name) : state_(new ParameterState) {
  CATENA_CHECK(DtypeError, is_float(data.dtype()), "Parameter: expected a floating dtype, got ",
               data.dtype());
  state_->variable = Variable(data);
  state_->variable.node()->parameter = state_.get();
  state_->name = std::move(name);
}

void ParameterState::destroy(ParameterState* state) {
  state->variable.node()->parameter = nullptr;  // graphs may outlive the parameter
  delete state;
}

const Array& Parameter::grad() const {
  if (!state_->grad.defined()) state_->grad = new_gradient(*this);
  if (state_->zero_pending) {
    state_->grad.fill(0);
    state_->zero_pending = false;
  }
  return state_->grad;
}

void Parameter::set_grad(const Array& grad) const {
  check_fits("set_grad", *this, grad);
  if (!state_->grad.defined()) state_->grad = new_gradient(*this);
  state_->grad.assign(grad);
  state_->zero_pending = false;
  state_->reached = true;
}

void Parameter::accumulate_grad(const Array& grad) const {
  if (!state_->grad.defined() || state_->zero_pending) return set_grad(grad);
  check_fits("accumulate_grad", *this, grad);
  add(state_->grad, grad.to(device()), state_->grad);
  state_->reached = true;
}

void Parameter::zero_grad() const {
  state_->zero_pending = true;
  state_->reached = false;
}

void Parameter::copy_from(const Array& source) const {
  check_fits("copy_from", *this, source);
  data().assign(source);
}

void Parameter::to(Device device) const {
  if (device == this->device()) return;
  const Array moved = data().to(device);
  const Array grad = state_->grad.defined() ? state_->grad.to(device) : Array();
  rebind(moved, grad);
}

Parameter Parameter::clone() const { return Parameter(data().copy(), name()); }

void Parameter::rebind(const Array& data, const Array& grad) const {
  state_->variable.set_data(data);
  state_->grad = grad;
}

OwnedParameter& OwnedParameter::operator=(const OwnedParameter& other) {
  if (this == &other || !other.defined()) return *this;
  if (!defined())
    Parameter::operator=(other.clone());
  else
    copy_from(other.data());
  return *this;
}

}  // namespace catena
