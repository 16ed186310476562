// The gradient of a parameter, and who observes it.
#include "catena/autograd/parameter_state.h"

#include <algorithm>

#include "catena/array/math.h"
#include "catena/autograd/parameter.h"

namespace catena {

void ParameterState::allocate_gradient() {
  const Array& data = variable.data();
  gradient_ = Array::uninitialized(data.shape(), data.dtype(), data.device(), data.order());
}

const Array& ParameterState::settle() {
  accumulate_target();
  if (is_stale()) {
    gradient_.fill(0);
    mark_filled();
  }
  return gradient_;
}

void ParameterState::set_gradient(const Array& gradient) {
  accumulate_target().array->assign(gradient);
  mark_written();
}

void ParameterState::add_gradient(const Array& gradient) {
  const GradientTarget target = accumulate_target();
  if (target.accumulate)
    add(*target.array, gradient, *target.array);
  else
    target.array->assign(gradient);
  mark_written();
}

void ParameterState::bind_gradient(const Array& memory) {
  gradient_ = memory;
  if (!memory.defined()) mark_zero();
}

// Observers ---------------------------------------------------------------------------------------

void BackwardObserver::observe(const Parameter& parameter) {
  CATENA_CHECK(ValueError, parameter.defined(),
               "BackwardObserver::observe: the parameter is undefined; was its layer moved from, "
               "or made without it (nobias)?");
  auto& observers = parameter.state()->observers_;
  if (std::find(observers.begin(), observers.end(), link_) != observers.end()) return;
  const auto gone = [](const auto& link) { return link->observer == nullptr; };
  observers.erase(std::remove_if(observers.begin(), observers.end(), gone), observers.end());
  observers.push_back(link_);
}

void BackwardObserver::stop_observing(const Parameter& parameter) {
  if (!parameter.defined()) return;
  auto& observers = parameter.state()->observers_;
  observers.erase(std::remove(observers.begin(), observers.end(), link_), observers.end());
}

void BackwardObserver::stop_observing() {
  link_->observer = nullptr;
  link_ = IntrusivePtr(new detail::ObserverLink(this));
}

}  // namespace catena
