// Accumulation of gradients over several backward passes before the ranks average them.
#pragma once

#include <utility>

#include "catena/comm/internals.h"

namespace catena::parallel {

// While such a scope lives, backward passes only add to this rank's gradients: no gradients are
// averaged over the communicator. Scopes may nest. Made by MultiNodeOptimizer::no_sync(). The
// communicator must not be destroyed before the scope.
class NoSync {
 public:
  explicit NoSync(Communicator& comm) : scopes_(&comm::internals(comm).no_sync_scopes()) {
    ++*scopes_;
  }
  ~NoSync() {
    if (scopes_ != nullptr) --*scopes_;
  }
  NoSync(NoSync&& other) noexcept : scopes_(std::exchange(other.scopes_, nullptr)) {}
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  int* scopes_;
};

// Whether backward passes average their gradients over the communicator: no scope is alive.
inline bool synchronizes(const Communicator& comm) {
  return comm::internals(comm).no_sync_scopes() == 0;
}

}  // namespace catena::parallel
