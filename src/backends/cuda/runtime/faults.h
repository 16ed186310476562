// Handling of failed work of a GPU, and of the end of the process.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace catena::gpu {

// A GPU works behind the program: a kernel that fails, by an access to memory that is not its own,
// is reported by some later call. Kernels of users are the likely ones, so the last ones that were
// launched since the host last waited for their stream are remembered; others cost nothing.

// `name` must live as long as the process.
void note_user_kernel(const std::string& name, int device, cudaStream_t stream);
// The host has waited for all work of the stream, or of the GPU, and it was good.
void forget_user_kernels(cudaStream_t stream) noexcept;
void forget_user_kernels(int device) noexcept;

// "; work that was queued before ..." for an error that work of the current GPU has left, of the
// runtime or, with the same number, the driver; "" for an error of the call itself.
std::string describe_fault(int error);

// From here on the end of the process is watched. Behind the first call of CUDA, so that exit()
// comes to this before it unloads CUDA.
void watch_exit();
// For a thread whose call of CUDA has failed with `error`: while another thread is in exit(), CUDA
// is being unloaded. The thread then waits for the end of the process, so that its exception does
// not become that end; at most 5 s, in case exit() waits for the thread.
void let_process_end(int error) noexcept;

}  // namespace catena::gpu
