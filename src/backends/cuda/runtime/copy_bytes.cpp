#include "backends/cuda/runtime/copy_bytes.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "backends/cuda/runtime/capture.h"
#include "backends/cuda/runtime/cuda_check.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/memory_pools.h"
#include "backends/cuda/runtime/streams.h"
#include "catena/core/memory.h"
#include "core/environment.h"

namespace catena::gpu {
namespace {

constexpr size_t kStageBytes = size_t{4} << 20;  // two of them are in flight

enum Access : char { kUnknown, kDirect, kStaged };
std::atomic<Access> g_access[kMaxDevices][kMaxDevices];
std::mutex g_access_mutex;

bool is_pinned(const void* memory) {
  cudaPointerAttributes attributes;
  const cudaError_t error = cudaPointerGetAttributes(&attributes, memory);
  cudaGetLastError();
  return error == cudaSuccess && attributes.type == cudaMemoryTypeHost;
}

bool switched_off() {
  static const bool off = !switch_from_environment("CATENA_P2P", true);
  return off;
}

bool is_reachable(int index, int peer) {
  if (switched_off()) return false;
  int possible = 0;
  CATENA_CUDA_CHECK(cudaDeviceCanAccessPeer(&possible, index, peer));
  return possible != 0;
}

Access enable_access(int index, int peer) {
  if (!is_reachable(index, peer)) return kStaged;
  RelaxedCapture relaxed;
  UseDevice use(index);
  const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaSuccess || error == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return kDirect;
  }
  cudaGetLastError();  // for example too many peers: slower, but not wrong
  return kStaged;
}

// The stream on which a GPU sends bytes to the host for another GPU; one for each GPU, never
// destroyed.
const Stream& staging_stream(int index) {
  static std::mutex mutex;
  static Stream* streams[kMaxDevices] = {};
  std::lock_guard lock(mutex);
  if (!streams[index]) streams[index] = new Stream(create_stream(index, 0));
  return *streams[index];
}

// Copies from one GPU through pinned memory to another GPU, in pieces, each on a stream of its GPU.
void copy_staged(char* dst, int dst_index, const char* src, int src_index, size_t bytes,
                 const Stream& stream) {
  const bool pull = stream.device().index() == dst_index;
  const Stream& other = staging_stream(pull ? src_index : dst_index);
  const Stream& sender = pull ? other : stream;
  const Stream& receiver = pull ? stream : other;
  const size_t piece = std::min(bytes, kStageBytes);
  StoragePtr stage = gpu::allocate_pinned(cpu(0), 2 * piece);
  gpu::record_use(*stage, sender);
  gpu::record_use(*stage, receiver);
  other.wait(stream);
  Event received[2];
  for (size_t done = 0, i = 0; done < bytes; done += piece, ++i) {
    char* half = static_cast<char*>(stage->data) + (i % 2) * piece;
    const size_t count = std::min(piece, bytes - done);
    sender.wait(received[i % 2]);
    {
      UseDevice use(src_index);
      CATENA_CUDA_CHECK(
          cudaMemcpyAsync(half, src + done, count, cudaMemcpyDeviceToHost, native_stream(sender)));
    }
    receiver.wait(sender);
    UseDevice use(dst_index);
    CATENA_CUDA_CHECK(
        cudaMemcpyAsync(dst + done, half, count, cudaMemcpyHostToDevice, native_stream(receiver)));
    received[i % 2] = receiver.record();
  }
  stream.wait(other);
}

void copy_between_gpus(void* dst, int dst_index, const void* src, int src_index, size_t bytes,
                       const Stream& stream) {
  const int here = stream.device().index();
  const int there = here == dst_index ? src_index : dst_index;
  // Both directions, because the driver chooses which engine moves the bytes.
  if (!peer_access(here, there) || !peer_access(there, here)) {
    copy_staged(static_cast<char*>(dst), dst_index, static_cast<const char*>(src), src_index, bytes,
                stream);
    return;
  }
  use_device(here);
  CATENA_CUDA_CHECK(
      cudaMemcpyPeerAsync(dst, dst_index, src, src_index, bytes, native_stream(stream)));
}

}  // namespace

bool can_reach_peer(int index, int peer) { return is_reachable(index, peer); }

bool peer_access(int index, int peer) {
  Access found = g_access[index][peer].load(std::memory_order_acquire);
  if (found != kUnknown) return found == kDirect;
  std::lock_guard lock(g_access_mutex);
  found = g_access[index][peer].load(std::memory_order_acquire);
  if (found == kUnknown) {
    found = enable_access(index, peer);
    g_access[index][peer].store(found, std::memory_order_release);
  }
  return found == kDirect;
}

void copy_bytes(void* dst, Device dst_device, const void* src, Device src_device, size_t bytes,
                const Stream& stream) {
  if (bytes == 0) return;
  if (dst_device.is_cuda() && src_device.is_cuda() && !(dst_device == src_device)) {
    return copy_between_gpus(dst, dst_device.index(), src, src_device.index(), bytes, stream);
  }
  use_device(stream.device().index());
  const cudaStream_t native = native_stream(stream);
  if (dst_device.is_cpu()) {
    refuse_during_capture("copy from a GPU to the host");
    // A copy to memory that is not pinned returns when the bytes have arrived.
    CATENA_CUDA_CHECK(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, native));
  } else if (src_device.is_cpu()) {
    // A replay would read the host memory again, when it may already hold something else.
    if (thread_capture() && !is_pinned(src)) {
      refuse_during_capture("copy from host memory that is not pinned to a GPU");
    }
    CATENA_CUDA_CHECK(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, native));
  } else {
    CATENA_CUDA_CHECK(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, native));
  }
}

}  // namespace catena::gpu
