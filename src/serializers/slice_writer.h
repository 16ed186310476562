// Slices on their way to a file: copied to the host, then written while training goes on.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "catena/core/memory.h"
#include "serializers/slice_index.h"
#include "serializers/slice_plan.h"

namespace catena::serializers {

// Copies of pieces in host memory, which is kept for the next save: page-locked where arrays are on
// a GPU.
class StagedSlices {
 public:
  StagedSlices();
  ~StagedSlices();
  StagedSlices(const StagedSlices&) = delete;
  StagedSlices& operator=(const StagedSlices&) = delete;

  // Makes room for the pieces and touches it, so that the next copy() finds it.
  void reserve(const TensorParts& parts, const std::vector<Piece>& pieces);
  // Copies the pieces. Arrays on the CPU are copied when it returns. Copies from GPUs are queued on
  // side streams, and what the current streams get from here on waits for them.
  void copy(const TensorParts& parts, const std::vector<Piece>& pieces);
  // Writes the copies to a new file, by another thread too. Waits for the copies from GPUs first.
  // Ends early, with what it has, once `cancelled`. IoError with the path and the system's reason.
  std::vector<SliceRecord> write(const std::string& path, const std::atomic<bool>& cancelled);
  // Of the file that was written, gaps included.
  int64_t bytes() const { return bytes_; }
  // As far as write() has come, from any thread.
  int64_t written() const { return written_; }

 private:
  class Memory;
  struct Staged {
    TensorSlice slice;
    int64_t offset;  // in the memory, and in the file
  };
  char* place(int64_t offset) const;
  Stream side_stream(Device device);

  std::unique_ptr<Memory> memory_;
  std::vector<Staged> staged_;
  int64_t bytes_ = 0;
  std::atomic<int64_t> written_{0};
  std::vector<Stream> streams_;  // of each GPU
  std::vector<Event> copied_;    // on these
};

}  // namespace catena::serializers
