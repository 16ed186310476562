#include "backends/cuda/runtime/capture.h"

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "backends/cuda/runtime/cuda_check.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/faults.h"
#include "backends/cuda/runtime/memory_pools.h"
#include "backends/cuda/runtime/streams.h"
#include "catena/core/wait_hook.h"

namespace catena::gpu {
namespace {

thread_local GraphState* t_capture = nullptr;
std::atomic<int> g_captures[kMaxDevices];  // that go on, of all threads

// Held from the question whether a GPU is captured until its work has been waited for. Never
// destroyed: a thread may wait for a kernel that hangs.
std::timed_mutex& waiting_mutex(int index) {
  static auto* const mutexes = new std::timed_mutex[kMaxDevices];
  return mutexes[index];
}

// CUDA ends a capture when somebody begins to wait for its GPU, but not when somebody waits
// already: a wait that was about to begin has begun after this.
void let_waits_begin(int index) {
  constexpr std::chrono::milliseconds kLongEnough{100};
  const std::unique_lock<std::timed_mutex> lock(waiting_mutex(index), kLongEnough);
}

// The capture of this thread is about to end.
GraphState* take_capture() { return std::exchange(t_capture, nullptr); }

// Blocks from before the capture must not be reused, because replays read them.
bool keep_released_block(Block& block) {
  if (!t_capture || t_capture->memory->owns(block)) return false;
  t_capture->kept_blocks.push_back(&block);
  return true;
}

void* driver_function(const char* name, unsigned version) noexcept {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found) ==
      cudaSuccess)
    return address;
  cudaGetLastError();
  return nullptr;
}

// Ends the capture on the stream. Returns null if CUDA found the capture invalid.
cudaGraph_t stop_recording(const Stream& stream, cudaError_t* error) {
  cudaGraph_t graph = nullptr;
  *error = cudaStreamEndCapture(native_stream(stream), &graph);
  --g_captures[stream.device().index()];
  if (*error != cudaSuccess) cudaGetLastError();
  return graph;
}

// The graph into which the stream records. CUDA refuses the question where its answer leaves out
// the kinds of edges, so all is asked for.
cudaGraph_t graph_of(cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  constexpr auto kAsk = &cudaStreamGetCaptureInfo;
#else
  constexpr auto kAsk = &cudaStreamGetCaptureInfo_v3;
#endif
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  CATENA_CUDA_CHECK(kAsk(stream, &status, &id, &graph, &nodes, &edges, &count));
  return graph;
}

void count_work(cudaGraph_t graph, RecordedWork& work) {
  size_t count = 0;
  CATENA_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  CATENA_CUDA_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    CATENA_CUDA_CHECK(cudaGraphNodeGetType(node, &type));
    work.kernels += type == cudaGraphNodeTypeKernel;
    work.transfers += type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
    if (type != cudaGraphNodeTypeGraph) continue;
    cudaGraph_t inner = nullptr;
    CATENA_CUDA_CHECK(cudaGraphChildGraphNodeGetGraph(node, &inner));
    count_work(inner, work);
  }
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
bool is_captured(int index) { return g_captures[index].load(std::memory_order_acquire) != 0; }
bool synchronize_unless_captured(int index) noexcept {
  const std::lock_guard lock(waiting_mutex(index));
  if (is_captured(index)) return false;
  UseDevice use(index);
  if (cudaDeviceSynchronize() != cudaSuccess) cudaGetLastError();
  return true;
}
bool record_unless_captured(int index, cudaEvent_t event) noexcept {
  static const auto record_all =
      reinterpret_cast<decltype(&cuCtxRecordEvent)>(driver_function("cuCtxRecordEvent", 12050));
  static const auto get_context =
      reinterpret_cast<decltype(&cuCtxGetCurrent)>(driver_function("cuCtxGetCurrent", 4000));
  // Who holds it waits for the GPU, which may take long.
  const std::unique_lock<std::timed_mutex> lock(waiting_mutex(index), std::try_to_lock);
  if (!lock || is_captured(index)) return false;
  UseDevice use(index);
  if (!record_all || !get_context) {  // a driver older than the function
    if (cudaDeviceSynchronize() == cudaSuccess && cudaEventRecord(event, nullptr) == cudaSuccess)
      return true;
    cudaGetLastError();
    return false;
  }
  CUcontext context = nullptr;
  return get_context(&context) == CUDA_SUCCESS && context != nullptr &&
         record_all(context, event) == CUDA_SUCCESS;
}
bool is_captured(cudaStream_t stream) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) cudaGetLastError();
  return status != cudaStreamCaptureStatusNone;
}

void refuse_during_capture(const char* call) {
  if (!t_capture) [[likely]]
    return;
  fail<Error>(call,
              ": this needs the host to wait for the device, which is not possible while a CUDA"
              " graph is captured on cuda:",
              t_capture->device,
              "; move it out of the captured step, or read the result after a launch");
}

RecordedWork recorded_work() {
  CATENA_CHECK(Error, t_capture != nullptr, "recorded_work: this thread captures no graph");
  RecordedWork work;
  count_work(graph_of(native_stream(t_capture->stream)), work);
  return work;
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
  ++g_captures[index];  // before CUDA knows of it, so that nobody begins to wait for the GPU
  let_waits_begin(index);
  const cudaError_t error =
      cudaStreamBeginCapture(native_stream(stream), cudaStreamCaptureModeThreadLocal);
  if (error != cudaSuccess) {
    --g_captures[index];
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
  GraphState* state = take_capture();
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
  GraphState* state = take_capture();
  cudaError_t error;
  cudaGraph_t graph = stop_recording(stream, &error);
  if (graph) cudaGraphDestroy(graph);
  destroy_graph(state);
}

void order_launch(GraphState& graph, const Stream& stream) {
  refuse_during_capture("Graph::launch");
  if (graph.launched_on.empty() || graph.launched_on.front() == stream) return;
  use_device(graph.device);
  CATENA_CUDA_CHECK(cudaStreamWaitEvent(native_stream(stream), graph.last_launch, 0));
}

void launch_graph(GraphState& graph, const Stream& stream) {
  refuse_during_capture("Graph::launch");
  use_device(graph.device);
  if (graph.launched_on.empty() || !(graph.launched_on.front() == stream)) {
    std::erase(graph.launched_on, stream);
    graph.launched_on.insert(graph.launched_on.begin(), stream);
  }
  CATENA_CUDA_CHECK(cudaGraphLaunch(graph.executable, native_stream(stream)));
  static const std::string& replay = *new std::string("those of a captured graph");
  note_user_kernel(replay, graph.device, native_stream(stream));
  // Launches of one graph run in order, so the event of the last one covers all.
  CATENA_CUDA_CHECK(cudaEventRecord(graph.last_launch, native_stream(stream)));
}

namespace {

// Results may still be read on the streams that launched the graph, and what ran eagerly beside the
// capture may use its memory: that goes to the stream of the last launch, after the work of the
// others.
void leave_memory(GraphState& graph) noexcept {
  const bool inherits =
      !graph.launched_on.empty() && !is_captured(native_stream(graph.launched_on.front()));
  const Stream next = inherits ? graph.launched_on.front() : Stream(default_stream(graph.device));
  std::vector<Stream> users = graph.memory->streams();
  users.insert(users.end(), graph.launched_on.begin(), graph.launched_on.end());
  std::erase_if(users, [&](const Stream& user) { return user == next || user == graph.stream; });
  try {
    for (const Stream& user : users)
      if (!is_captured(native_stream(user))) next.wait(user);
  } catch (const std::exception&) {
    // At process end the driver may be unloaded, and no work runs any more.
  }
  graph.memory->leave_to(next, users);
}

}  // namespace

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
  leave_memory(*graph);
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
