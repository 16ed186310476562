// The function hooks of the calling thread.
#pragma once

#include "catena/autograd/function_hook.h"

namespace catena {

struct HookedThread {
  static FunctionHookScope*& innermost();

  // Calls a method of all hooks, outermost first, or innermost first.
  template <class Subject>
  static void tell(void (FunctionHook::*method)(const Subject&), const Subject& subject) {
    tell_up_to(innermost(), method, subject);
  }
  template <class Subject>
  static void tell_in_reverse(void (FunctionHook::*method)(const Subject&),
                              const Subject& subject) {
    for (FunctionHookScope* scope = innermost(); scope != nullptr; scope = scope->outer_)
      (scope->hook_.*method)(subject);
  }

 private:
  template <class Subject>
  static void tell_up_to(FunctionHookScope* scope, void (FunctionHook::*method)(const Subject&),
                         const Subject& subject) {
    if (scope == nullptr) return;
    tell_up_to(scope->outer_, method, subject);
    (scope->hook_.*method)(subject);
  }
};

}  // namespace catena
