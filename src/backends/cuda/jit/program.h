// Loaded programs (cubins) and their launch. A program belongs to an architecture, not to a device:
// its kernels are context-independent and load on each device at their first use there.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "catena/core/device.h"

namespace catena::jit {

inline constexpr int kProgramKernels = 4;

struct Program {
  std::string what;                              // names the operation in errors
  std::array<void*, kProgramKernels> kernels{};  // CUkernel
  std::atomic<uint64_t> ready{0};                // bit d: loaded on device d
  void* library = nullptr;                       // CUlibrary
  // launch_program() may launch its kernels before the previous kernel of the stream has ended
  // (programmatic dependent launch): they begin with wait_for_previous_kernel().
  bool early = false;
};

struct JitStatistics {
  uint64_t bundle_hits = 0, disk_hits = 0, compiled = 0, missing = 0;
};
JitStatistics jit_statistics();
// Describes where kernels come from: bundle file and number of entries, cache folder, NVRTC.
std::string describe_jit(int device);

// The architecture of a device, 90 for 9.0, and a small number for each architecture in use.
int device_arch(int device);
inline constexpr int kMaxArchs = 4;
int arch_slot(int device);

// Finds the text's cubin in the bundle or the disk cache, or compiles it, and loads it. Throws what
// compile() throws, and Error while the thread captures a graph. Programs live as long as the
// process. `options` are passed to the compiler after the library's own. Kernels that
// launch_program() will launch begin with wait_for_previous_kernel().
Program* make_program(int device, const std::string& what, const std::string& source,
                      std::initializer_list<const char*> kernels,
                      const std::vector<std::string>& options = {});
// Loads a cubin, fatbin or PTX from another source; `image` must stay alive.
Program* load_image(int device, const std::string& what, const std::string& image,
                    std::initializer_list<const char*> kernels);
// One kernel of a loaded program as a separate program that shares its variables.
Program* program_kernel(const Program& library, const std::string& name);
// The address and size in bytes of a variable of a program on a device; DeviceError if it has none.
std::pair<void*, size_t> program_global(Program& program, int device, const std::string& name);
// Like make_program without compiling: null if neither bundle nor disk cache has the cubin.
Program* find_program(int device, const std::string& what, const std::string& source,
                      std::initializer_list<const char*> kernels);

// Programs by a 64-bit key. Reading takes no lock, filling takes one.
class ProgramTable {
 public:
  Program* find(uint64_t key) const {
    for (uint64_t at = key * 0x9e3779b97f4a7c15u >> 52;; at = (at + 1) % kSlots) {
      const uint64_t stored = slots_[at].key.load(std::memory_order_acquire);
      if (stored == key) return slots_[at].program.load(std::memory_order_relaxed);
      if (stored == 0) return nullptr;
    }
  }
  // Calls make() unless another thread has done so; a null result is not stored.
  Program* get(uint64_t key, const std::function<Program*()>& make);

 private:
  static constexpr uint64_t kSlots = 4096;
  struct Slot {
    std::atomic<uint64_t> key{0};  // 0: free
    std::atomic<Program*> program{nullptr};
  };
  std::array<Slot, kSlots> slots_;
  std::atomic<uint64_t> used_{0};
};

// The first use on a device: loads the kernels there. Throws Error during a capture.
void prepare_program(Program& program, int device);

// Enqueues kernel `index` with one struct argument (and more, if given).
void launch_program(Program& program, int index, int device, uint64_t blocks_x, unsigned blocks_y,
                    unsigned threads, void** arguments, cudaStream_t stream);

struct LaunchDims {
  unsigned x = 1, y = 1, z = 1;
};
// Launches a user's kernel with the given grid, blocks and shared memory.
void launch_raw(Program& program, int device, LaunchDims grid, LaunchDims block,
                unsigned shared_memory, void** arguments, cudaStream_t stream);

template <class Args>
void launch(Program& program, int index, int device, uint64_t blocks_x, unsigned blocks_y,
            unsigned threads, const Args& args, cudaStream_t stream) {
  void* arguments[] = {const_cast<Args*>(&args)};
  launch_program(program, index, device, blocks_x, blocks_y, threads, arguments, stream);
}

}  // namespace catena::jit
