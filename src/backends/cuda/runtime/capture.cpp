#include "backends/cuda/runtime/capture.h"

#include "backends/cuda/runtime/cuda_check.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/memory_pools.h"
#include "backends/cuda/runtime/streams.h"
#include "catena/core/wait_hook.h"

namespace catena::gpu {
namespace {

thread_local GraphState* t_capture = nullptr;

// Blocks from before the capture must not be reused, because replays read them.
bool keep_released_block(Block& block) {
  if (!t_capture || t_capture->memory->owns(block)) return false;
  t_capture->kept_blocks.push_back(&block);
  return true;
}

// Ends the capture on the stream. Returns null if CUDA found the capture invalid.
cudaGraph_t stop_recording(const Stream& stream, cudaError_t* error) {
  cudaGraph_t graph = nullptr;
  *error = cudaStreamEndCapture(native_stream(stream), &graph);
  if (*error != cudaSuccess) cudaGetLastError();
  return graph;
}

// Reports a wait that may need another rank: communicators watch it from here on.
void tell_watchers(int device) noexcept {
  try {
    if (const WaitHook hook = wait_hook().load(std::memory_order_acquire))
      hook(cuda_device(device), WaitPhase::kBegin);
  } catch (const std::exception&) {
    // The failure is reported where the result is used.
  }
}

}  // namespace

GraphState* thread_capture() { return t_capture; }

void refuse_during_capture(const char* call) {
  if (!t_capture) [[likely]]
    return;
  fail<Error>(call,
              ": this needs the host to wait for the device, which is not possible while a CUDA"
              " graph is captured on cuda:",
              t_capture->device,
              "; move it out of the captured step, or read the result after a launch");
}

void begin_capture(int index, const Stream& stream) {
  if (t_capture) {
    fail<Error>("Graph::capture: this thread already records a graph on cuda:", t_capture->device);
  }
  use_device(index);
  auto graph = std::make_unique<GraphState>();
  graph->device = index;
  graph->stream = stream;
  graph->memory = std::make_unique<PrivatePool>(device_pool(index));
  CATENA_CUDA_CHECK(cudaEventCreateWithFlags(&graph->last_launch, cudaEventDisableTiming));
  const cudaError_t error =
      cudaStreamBeginCapture(native_stream(stream), cudaStreamCaptureModeThreadLocal);
  if (error != cudaSuccess) {
    destroy_graph(graph.release());
    fail_cuda(error, "cudaStreamBeginCapture");
  }
  t_capture = graph.release();
  Pool::set_release_hook(&keep_released_block);
}

GraphState* end_capture(const Stream& stream) {
  CATENA_CHECK(Error, t_capture && t_capture->stream == stream,
               "Graph::capture: the stream is not being captured by this thread");
  use_device(t_capture->device);
  GraphState* state = std::exchange(t_capture, nullptr);
  cudaError_t error;
  cudaGraph_t graph = stop_recording(stream, &error);
  if (error == cudaSuccess) {
    error = cudaGraphInstantiate(&state->executable, graph, 0);
    cudaGraphDestroy(graph);
  }
  if (error != cudaSuccess) {
    destroy_graph(state);
    fail_cuda(error, "cudaStreamEndCapture and cudaGraphInstantiate of the captured step");
  }
  return state;
}

void abort_capture(const Stream& stream) noexcept {
  if (!t_capture || !(t_capture->stream == stream)) return;
  GraphState* state = std::exchange(t_capture, nullptr);
  cudaError_t error;
  cudaGraph_t graph = stop_recording(stream, &error);
  if (graph) cudaGraphDestroy(graph);
  destroy_graph(state);
}

void launch_graph(GraphState& graph, const Stream& stream) {
  refuse_during_capture("Graph::launch");
  use_device(graph.device);
  CATENA_CUDA_CHECK(cudaGraphLaunch(graph.executable, native_stream(stream)));
  // Launches of one graph run in order, so the event of the last one covers all.
  CATENA_CUDA_CHECK(cudaEventRecord(graph.last_launch, native_stream(stream)));
}

void destroy_graph(GraphState* graph) noexcept {
  RelaxedCapture relaxed;
  UseDevice use(graph->device);
  if (graph->last_launch) {
    tell_watchers(graph->device);
    cudaEventSynchronize(graph->last_launch);
    cudaEventDestroy(graph->last_launch);
  }
  if (graph->executable) cudaGraphExecDestroy(graph->executable);
  graph->kept_storages.clear();
  for (Block* block : graph->kept_blocks) Pool::give_back(*block);
  graph->memory.reset();
  for (StreamState* stream : graph->kept_streams) destroy_stream(stream);
  delete graph;
  cudaGetLastError();  // at process end the driver may be unloaded
}

bool is_capturing(const Stream& stream) {
  if (t_capture && t_capture->stream == stream) return true;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CATENA_CUDA_CHECK(cudaStreamIsCapturing(native_stream(stream), &status));
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace catena::gpu
