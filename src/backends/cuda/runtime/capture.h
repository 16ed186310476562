// The graph that the calling thread captures, and what is forbidden meanwhile.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "backends/cuda/companion.h"
#include "backends/cuda/runtime/pool.h"
#include "catena/core/backend.h"

namespace catena {

// One graph from begin_capture to destroy_graph.
struct GraphState {
  int device = 0;
  Stream stream;                             // the captured stream
  std::unique_ptr<gpu::PrivatePool> memory;  // what the step allocated
  std::vector<gpu::Block*> kept_blocks;    // older blocks that the step released; replays use them
  std::vector<StoragePtr> kept_storages;   // used by other streams of the capture
  std::vector<StreamState*> kept_streams;  // streams that the step created and released
  std::vector<std::shared_ptr<void>> kept_functions;  // functions that replays call on the host
  std::vector<Stream> launched_on;                    // the last one first
  cudaGraphExec_t executable = nullptr;
  cudaEvent_t last_launch = nullptr;
};

}  // namespace catena

namespace catena::gpu {

// The graph that the calling thread captures, or null.
GraphState* thread_capture();

// Whether any thread captures a graph on the GPU: what would wait for all of it is not possible.
bool is_captured(int index);
// Waits for all work of the GPU, unless any thread captures a graph on it, which that would break:
// false. Captures that begin meanwhile are not broken either. For threads that capture nothing.
bool synchronize_unless_captured(int index) noexcept;
// Records all work that the GPU has in the event. False where that is not possible now: any thread
// captures a graph on it, which that would break, or waits for the GPU. A capture of another
// library is not known here, and CUDA ends it.
bool record_unless_captured(int index, cudaEvent_t event) noexcept;
// Whether any thread captures the stream.
bool is_captured(cudaStream_t stream) noexcept;

// Throws Error naming `call` if the calling thread captures a graph.
void refuse_during_capture(const char* call);

// A RelaxedMode while the calling thread captures a graph; costs nothing otherwise.
class RelaxedCapture : public RelaxedMode {
 public:
  RelaxedCapture() : RelaxedMode(thread_capture() != nullptr) {}
};

// What the calling thread's capture has recorded so far, graphs inside of it included.
struct RecordedWork {
  int kernels = 0;
  int transfers = 0;  // copies and fills
};
// Throws Error if the thread captures nothing.
RecordedWork recorded_work();

void begin_capture(int index, const Stream& stream);
GraphState* end_capture(const Stream& stream);
void abort_capture(const Stream& stream) noexcept;
// Work that the stream gets from here on runs after the graph's launches on other streams.
void order_launch(GraphState& graph, const Stream& stream);
void launch_graph(GraphState& graph, const Stream& stream);
void destroy_graph(GraphState* graph) noexcept;
bool is_capturing(const Stream& stream);

}  // namespace catena::gpu
