// The thread that polls NCCL communicators while their ranks are busy or wait.
#pragma once

#include <memory>

#include "nccl_core.h"

namespace catena::comm::nccl {

// Polled every 100 ms until removed; a host wait may poll once more.
void watch(const std::shared_ptr<Core>& core);
void unwatch(const std::shared_ptr<Core>& core);

// Makes host waits for a GPU end when a communicator on it failed, and checks after each that the
// ranks still agree.
void install_wait_hook();

}  // namespace catena::comm::nccl
