#include "catena/core/call_scope.h"

#include <string_view>
#include <vector>

#include "catena/core/trace.h"

namespace catena {
namespace {

struct EnteredCall {
  const char* name;
  bool traced;
};
thread_local std::vector<EnteredCall> t_calls;

// Names of backward calls say so (BackwardPass::call).
tracing::Category category_of(std::string_view name) {
  return name.starts_with("backward of ") ? tracing::Category::kBackward
                                          : tracing::Category::kFunction;
}

}  // namespace

namespace detail {

std::atomic<int> memory_profiles{0};

void enter_call(const char* name) {
  const bool traced = tracing::active();
  t_calls.push_back({name, traced});
  if (traced) tracing::begin(name, category_of(name));
}

void leave_call() noexcept {
  if (t_calls.back().traced) tracing::end();
  t_calls.pop_back();
}

std::string call_path() {
  if (t_calls.empty()) return "(unnamed)";
  std::string path;
  for (const EnteredCall& call : t_calls) {
    if (!path.empty()) path += '/';
    path += call.name;
  }
  return path;
}

}  // namespace detail
}  // namespace catena
