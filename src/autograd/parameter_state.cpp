// The gradient of a parameter, its 16-bit copy, and who observes it.
#include "catena/autograd/parameter_state.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "autograd/parameter_uses.h"
#include "catena/array/math.h"
#include "catena/autograd/function_hook.h"
#include "catena/autograd/parameter.h"
#include "catena/core/fork_mutex.h"
#include "catena/core/graph.h"
#include "catena/core/memory.h"

namespace catena {

namespace {

std::string shown_state(const ParameterState& state) {
  const std::string path = state.name.empty() ? path_of(state) : state.name;
  return path.empty() ? "a parameter (no model has listed it yet)" : "parameter '" + path + "'";
}

}  // namespace

void ParameterState::allocate_gradient() {
  CATENA_CHECK(GradientError, !gradient_is_released_, "the gradient of ", shown_state(*this),
               " is not in this process, which keeps a part of the gradients, until "
               "zero_grads(); the norm of all is compute_grads_norm(), and a multi-node optimizer "
               "with .sharding = Sharding::kNone keeps all");
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
  gradient_is_released_ = false;
  if (!memory.defined()) mark_zero();
}

void ParameterState::release_gradient() {
  gradient_ = {};
  gradient_is_released_ = true;
}

// 16-bit copy -------------------------------------------------------------------------------------

namespace {

// Guards the copies of all parameters: threads that compute with one model may ask at once.
ForkMutex& low_mutex() {
  static auto& mutex = *new ForkMutex;  // outlives parameters in static objects
  return mutex;
}

}  // namespace

bool ParameterState::is_low_current() const {
  return low_.defined() && low_.device() == variable.device() && low_writes_ == data->writes();
}

void ParameterState::mark_low_current() {
  const bool captures = low_.device().is_cuda() && cuda::is_capturing(low_.device());
  low_writes_ = data->writes();
  low_stream_ = captures ? Stream() : current_stream(low_.device());
}

void ParameterState::bind_low(const Array& memory) {
  low_ = memory;
  low_for_ = memory.defined() ? variable.data().raw_data() : nullptr;
  low_writes_.reset();
}

void ParameterState::make_low(Dtype dtype) {
  const Array& values = variable.data();
  if (!low_.defined() || low_.dtype() != dtype || low_.device() != values.device()) {
    low_ = values.astype(dtype);
    low_for_ = nullptr;
  } else {
    low_.assign(values);
  }
  mark_low_current();
}

// Replays do not see what the host has written to the parameter in between, nor does the host see
// what they write. The copy that updates write is current at the end of the capture, unless the
// captured step writes the parameter otherwise: then each replay does so, and leaves it out of
// date. Of a copy that no update writes that is not known.
void ParameterState::follow_launches(Dtype dtype, bool updates_write) {
  const uint64_t capture = cuda::capture_id();
  if (std::exchange(low_capture_, capture) == capture) return;
  struct Follower {
    IntrusivePtr<ParameterState> state;
    const void* memory;  // that the graph reads; null: it makes copies itself
    bool launched = false, leaves_it_old;
  };
  const auto follower = std::make_shared<Follower>(
      Follower{IntrusivePtr(this), updates_write ? low_.raw_data() : nullptr, false, true});
  const auto before = [follower, dtype] {
    ParameterState& state = *follower->state;
    if (follower->memory == nullptr) return;
    if (!std::exchange(follower->launched, true)) follower->leaves_it_old = !state.is_low_current();
    if (state.low_.raw_data() == follower->memory) state.low(dtype);
  };
  const auto after = [follower] {
    if (follower->leaves_it_old) follower->state->low_writes_.reset();
  };
  cuda::add_launch_hook(before, after);
}

Array ParameterState::low(Dtype dtype) {
  if (data->is_absent) bring("ParameterState::low");
  const Array& values = variable.data();
  if (values.dtype() == dtype) return values;
  CATENA_CHECK(DtypeError, is_narrow_float(dtype) && is_float(values.dtype()),
               "ParameterState::low: parameter '", name, "' holds ", values.dtype(),
               "; expected a floating parameter and float16 or bfloat16, got ", dtype);
  const std::lock_guard lock(low_mutex());
  const bool captures = values.device().is_cuda() && cuda::is_capturing(values.device());
  if (captures) {
    const bool updates_write =
        low_.defined() && low_.dtype() == dtype && low_for_ == values.raw_data();
    follow_launches(dtype, updates_write);
    if (!updates_write) return values.astype(dtype);
  }
  if (!is_low_current() || low_.dtype() != dtype) {
    make_low(dtype);
  } else if (const Stream stream = current_stream(low_.device());
             !captures && low_stream_.defined() && !(stream == low_stream_)) {
    stream.wait(low_stream_);
    record_use(*low_.storage(), stream);
  }
  return low_;
}

// Use ---------------------------------------------------------------------------------------------

namespace {

std::atomic<uint64_t> g_uses{0};
thread_local uint64_t t_use = 0;

}  // namespace

void begin_use() noexcept { t_use = g_uses.fetch_add(1, std::memory_order_relaxed) + 1; }
uint64_t current_use() noexcept { return t_use; }

bool ParameterState::before_use() {
  const Observers told = observers_;
  for (const auto& link : told)
    if (link->observer && link->observer->watches_uses()) link->observer->before_use(*this);
  return !data->is_absent;
}

void ParameterState::bring(const char* who) {
  const Observers told = observers_;
  for (const auto& link : told)
    if (link->observer) link->observer->before_read(*this);
  if (data->is_absent) fail_absent(who);
}

std::optional<KeptValues> ParameterState::kept_values() {
  if (!data->is_absent) return {};
  const Observers told = observers_;
  for (const auto& link : told)
    if (link->observer)
      if (auto kept = link->observer->kept_values(*this)) return kept;
  return {};
}

void ParameterState::fail_absent(const std::string& who) const {
  fail<ValueError>(who, ": the values of ", shown_state(*this),
                   " are not in this process, which keeps a part of the parameters; call "
                   "gather_parameters() of the multi-node optimizer on all ranks before, or bring "
                   "the data of its arena (ParameterArena::take_whole_data)");
}

// Graphs ------------------------------------------------------------------------------------------

namespace {

// A parameter that a captured step uses, and where it was.
struct CapturedUse {
  IntrusivePtr<ParameterState> state;
  uint64_t moves;
};
// Of one capture; its graph keeps them.
using CapturedUses = std::vector<CapturedUse>;

void refuse_moved(const CapturedUses& uses) {
  for (const CapturedUse& use : uses)
    CATENA_CHECK(Error, use.state->data->moves == use.moves,
                 "Graph::launch: ", shown_state(*use.state),
                 " has other memory than when the graph was captured: it was moved "
                 "(model.to(device)) or set up with an optimizer since, and the graph would work "
                 "on what it has left; capture the step again");
}

// The list of the graph that the thread captures.
CapturedUses& captured_uses(uint64_t capture) {
  thread_local uint64_t last_capture = 0;
  thread_local std::weak_ptr<CapturedUses> last;
  if (std::exchange(last_capture, capture) != capture) {
    const auto uses = std::make_shared<CapturedUses>();
    cuda::add_launch_hook([uses] { refuse_moved(*uses); });
    last = uses;
  }
  return *last.lock();  // the graph lives, as it is being captured
}

}  // namespace

void ParameterState::use_in_graph() {
  const uint64_t capture = cuda::capture_id();
  if (capture == 0 || captured_in_.exchange(capture, std::memory_order_relaxed) == capture) return;
  captured_uses(capture).push_back({IntrusivePtr(this), data->moves});
}

// Observers ---------------------------------------------------------------------------------------

std::optional<KeptValues> BackwardObserver::kept_values(ParameterState&) { return {}; }

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
