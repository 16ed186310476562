// The gradient of a parameter, and who observes it.
#include "catena/autograd/parameter_state.h"

#include <algorithm>

#include "catena/array/math.h"
#include "catena/autograd/function_hook.h"
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

// 16-bit copy -------------------------------------------------------------------------------------

bool ParameterState::is_low_current() const {
  const Array& data = variable.data();
  return low_.defined() && low_of_ == data.raw_data() && low_.device() == data.device() &&
         low_writes_ == data.storage()->version.load(std::memory_order_relaxed);
}

void ParameterState::mark_low_current() {
  const Array& data = variable.data();
  low_of_ = data.raw_data();
  low_writes_ = data.storage()->version.load(std::memory_order_relaxed);
}

void ParameterState::bind_low(const Array& memory) {
  low_ = memory;
  low_of_ = nullptr;
}

const Array& ParameterState::low(Dtype dtype) {
  const Array& data = variable.data();
  if (data.dtype() == dtype) return data;
  CATENA_CHECK(DtypeError, is_float(dtype) && itemsize(dtype) == 2 && is_float(data.dtype()),
               "ParameterState::low: parameter '", name, "' holds ", data.dtype(),
               "; expected a floating parameter and float16 or bfloat16, got ", dtype);
  if (!low_.defined() || low_.dtype() != dtype || low_.device() != data.device())
    bind_low(data.astype(dtype));
  else if (!is_low_current())
    low_.assign(data);
  mark_low_current();
  return low_;
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

void BackwardObserver::watch_uses(bool on) {
  if (on == watches_uses_) return;
  watches_uses_ = on;
  detail::call_watchers.fetch_add(on ? 1 : -1, std::memory_order_relaxed);
}

void BackwardObserver::stop_observing() {
  link_->observer = nullptr;
  link_ = IntrusivePtr(new detail::ObserverLink(this));
}

}  // namespace catena
