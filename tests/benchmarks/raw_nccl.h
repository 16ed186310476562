// NCCL called without the framework, and copies between two GPUs. Errors are exceptions.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace bench::raw {

// A communicator of our own beside the framework's, on the device that is current. share() hands
// rank 0's text to all ranks.
class Nccl {
 public:
  Nccl(int rank, int size, const std::function<std::string(const std::string&)>& share);
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  // In place, sum of float32.
  void all_reduce(void* data, size_t count, void* stream) const;
  static std::string version();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void copy_to_peer(void* to, int to_device, const void* from, int from_device, size_t bytes,
                  void* stream);

}  // namespace bench::raw
