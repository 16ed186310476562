// Finds layers that were used although no model lists them.
#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "catena/autograd/parameter.h"
#include "catena/core/fork_mutex.h"
#include "catena/core/log.h"

namespace catena {
namespace {

// All parameters of the process.
struct Registry {
  ForkMutex mutex;
  std::unordered_set<ParameterState*> states;
  static Registry& get() {
    static Registry* registry = new Registry;  // outlives parameters in static objects
    return *registry;
  }
};

}  // namespace

ParameterState::ParameterState() {
  const std::lock_guard lock(Registry::get().mutex);
  Registry::get().states.insert(this);
}

ParameterState::~ParameterState() {
  const std::lock_guard lock(Registry::get().mutex);
  Registry::get().states.erase(this);
}

std::vector<std::string> forgotten_parameters() {
  std::vector<std::string> result;
  const std::lock_guard lock(Registry::get().mutex);
  for (ParameterState* state : Registry::get().states) {
    if (!state->used.load(std::memory_order_acquire) || state->listed.exchange(true)) continue;
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
                   " were used in a forward pass, but no model lists them; is a layer missing in "
                   "CATENA_FUNCTIONS?");
}

}  // namespace catena
