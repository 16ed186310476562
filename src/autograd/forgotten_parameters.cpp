// Finds layers that were used, or trained, although no model lists them.
#include <algorithm>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/backward_pass.h"
#include "catena/autograd/parameter.h"
#include "catena/core/fork_mutex.h"
#include "catena/core/log.h"

namespace catena {
namespace {

// All parameters of the process, with the threads that made them: models of other threads are their
// affair.
struct Registry {
  ForkMutex mutex;
  std::unordered_map<ParameterState*, std::thread::id> makers;
  static Registry& get() {
    static Registry* registry = new Registry;  // outlives parameters in static objects
    return *registry;
  }
};

}  // namespace

ParameterState::ParameterState() {
  const std::lock_guard lock(Registry::get().mutex);
  Registry::get().makers.emplace(this, std::this_thread::get_id());
}

ParameterState::~ParameterState() {
  const std::lock_guard lock(Registry::get().mutex);
  Registry::get().makers.erase(this);
}

std::vector<std::string> forgotten_parameters() {
  std::vector<std::string> result;
  const std::lock_guard lock(Registry::get().mutex);
  for (const auto& [state, maker] : Registry::get().makers) {
    if (maker != std::this_thread::get_id() || !state->used.load(std::memory_order_acquire))
      continue;
    // One without a gradient belongs to a network that is only asked, such as a teacher.
    if (!state->has_gradient() || state->listed || state->warned_of.exchange(true)) continue;
    result.push_back(message(state->variable.shape(), " ", state->variable.dtype()));
  }
  std::sort(result.begin(), result.end());
  return result;
}

void warn_about_forgotten_parameters(const char* who) {
  std::string shapes;
  for (const std::string& shape : forgotten_parameters())
    shapes += (shapes.empty() ? "" : ", ") + shape;
  if (shapes.empty()) return;
  logging::warning(who, ": parameters of shape ", shapes,
                   " have a gradient, but no model listed them when the optimizer was set up; is a "
                   "layer missing in CATENA_FUNCTIONS, or was one added or replaced after setup? "
                   "Then call setup again. (A network that is not trained needs no graph.)");
}

// Gradients that no optimizer uses ----------------------------------------------------------------

namespace {
// Of the last pass that reached parameters of an optimizer.
struct LostGradients {
  std::vector<IntrusivePtr<ParameterState>> parameters;
  IntrusivePtr<ParameterState> trained;  // one of the optimizer's
};
thread_local LostGradients t_lost;
}  // namespace

void detail::note_lost_gradients(const std::vector<IntrusivePtr<ParameterState>>& unlisted,
                                 ParameterState* trained) {
  t_lost = {};
  for (const auto& state : unlisted)
    if (state->has_gradient()) t_lost.parameters.push_back(state);
  if (!t_lost.parameters.empty()) t_lost.trained = IntrusivePtr<ParameterState>(trained);
}

void require_no_lost_gradients(const char* who, const std::vector<Parameter>& held) {
  if (t_lost.parameters.empty() || std::none_of(held.begin(), held.end(), [](const Parameter& p) {
        return p.state() == t_lost.trained.get();
      }))
    return;
  std::set<std::string> shapes;
  for (const auto& state : std::exchange(t_lost, {}).parameters)
    if (!state->listed && !state->is_read)
      shapes.insert(message(state->variable.shape(), " ", state->variable.dtype()));
  if (shapes.empty()) return;
  std::string text;
  for (const std::string& shape : shapes) text += (text.empty() ? "" : ", ") + shape;
  fail<GradientError>(
      who, ": backward gave gradients to parameters of shape ", text,
      " that no model lists and no optimizer holds, so that nobody updates them. List their layer "
      "in CATENA_FUNCTIONS and set the optimizer up again. A lambda that captures a layer by value "
      "has a copy of it: capture a pointer or a reference to the layer. What is not to be trained "
      "needs no graph (NoBackprop). If you update a parameter by hand, read its grad() before");
}

}  // namespace catena
