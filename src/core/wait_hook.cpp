// The hook into waits: in libcatena, as a plug-in exports no objects. Inline, each plug-in would
// have one, and nobody would call the one that is set. See wait_hook.h.
#include "catena/core/wait_hook.h"

namespace catena {

std::atomic<WaitHook>& wait_hook() {
  static std::atomic<WaitHook> hook{nullptr};
  return hook;
}

}  // namespace catena
