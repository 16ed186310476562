// Memory that is registered with NCCL as a symmetric window, for which it has faster kernels (2.27
// and later).
#pragma once

#include <memory>

#include "nccl_core.h"

namespace catena::comm::nccl {

class NcclWindow {
 public:
  // Collective: new memory of the current GPU, of the same size on all ranks. Null where NCCL, or
  // one of the ranks, cannot do it. Without the core's mutex.
  static std::unique_ptr<NcclWindow> create(Core& core, Communicator& control, size_t bytes);
  // Frees nothing, see free().
  ~NcclWindow() = default;
  NcclWindow(const NcclWindow&) = delete;
  NcclWindow& operator=(const NcclWindow&) = delete;

  void* data() const { return data_; }
  // Collective, with all work done, under the core's mutex.
  void close(Core& core);
  // The memory, after close().
  void free();

 private:
  NcclWindow() = default;
  bool allocate(size_t bytes);
  bool enter(Core& core, size_t bytes);

  void* data_ = nullptr;
  void* window_ = nullptr;  // NCCL's, null: not registered
};

}  // namespace catena::comm::nccl
