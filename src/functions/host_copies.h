// Arrays that are in pinned host memory between a part's forward and its backward.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "catena/autograd/variable.h"
#include "catena/core/fork_mutex.h"
#include "catena/core/stream.h"

namespace catena::functions {

// The arrays that a part of a model keeps for backward, in the order of add(). Those on a GPU are
// copied to the host and back on two side streams, beside the work of the parts around it. Those on
// a CPU stay where they are.
//
// Device memory is let go when the array's stream waits for the copy. It then returns to the pool
// in that stream's order: what the host enqueues later may reuse it although no copy has run yet.
class HostCopies {
 public:
  HostCopies() = default;
  ~HostCopies();
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // Begins to copy behind what the current stream of the array's device holds. Nobody writes to the
  // array any more. OutOfMemoryError for want of pinned memory; ValueError in a capture.
  void add(const Array& a);
  // All arrays are added, and the part has run forward: what this thread has completed before lets
  // its device memory go. This part's copies have the next part's time to run.
  static void complete(const std::shared_ptr<HostCopies>& copies);

  // Begins to copy back what is not on its device, behind what the current streams hold.
  void prefetch();
  // The arrays on their devices, for work on the current streams. GradientError if somebody has
  // written to one while it was being copied.
  Arrays arrays();
  // Lets the device memory go. arrays() brings the arrays again.
  void release() noexcept;

 private:
  // An array here, there, or on its way.
  struct Copy {
    Array device;         // undefined: on the host alone
    StoragePtr host;      // null: the array stays on its device
    bool is_own = false;  // `device` is no longer the array that was added
    uint64_t writes = 0;  // of that array when it was added
    Stream stream;        // in whose order `device` is let go
    Event done;           // the last copy from or into `device`
    Shape shape;
    Dtype dtype{};
    Device place;
    MemoryOrder order;
  };
  static void bring(Copy& copy);
  static void use_here(const Copy& copy);

  ForkMutex mutex_;  // another thread's backward may meet this thread's next forward
  std::vector<Copy> copies_;
  bool was_written_ = false;
};

}  // namespace catena::functions
