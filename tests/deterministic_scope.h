// Deterministic kernels for a part of a test.
#pragma once

#include "catena/core/config.h"

namespace catena {

// While it lives, config().deterministic is `on`.
class DeterministicScope {
 public:
  explicit DeterministicScope(bool on = true) : before_(config().deterministic) {
    config().deterministic = on;
  }
  ~DeterministicScope() { config().deterministic = before_; }
  DeterministicScope(const DeterministicScope&) = delete;
  DeterministicScope& operator=(const DeterministicScope&) = delete;

 private:
  const bool before_;
};

}  // namespace catena
