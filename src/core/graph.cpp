#include "catena/core/graph.h"

#include <atomic>
#include <utility>
#include <vector>

#include "catena/core/backend.h"
#include "catena/core/error.h"
#include "core/cached_memory.h"

namespace catena {

void Backend::make_current(int) {}
void Backend::begin_capture(int, const Stream& stream) {
  fail<DeviceError>("Graph::capture: ", stream.device(),
                    " cannot record graphs; expected a cuda device");
}
GraphState* Backend::end_capture(const Stream& stream) {
  fail<DeviceError>("Graph::capture: ", stream.device(), " does not record a graph");
}
void Backend::abort_capture(const Stream&) noexcept {}
void Backend::launch_graph(GraphState*, const Stream& stream) {
  fail<DeviceError>("Graph::launch: ", stream.device(),
                    " cannot launch graphs; expected a cuda device");
}
void Backend::order_launch(GraphState*, const Stream&) {}
void Backend::destroy_graph(GraphState*) noexcept {}
bool Backend::is_capturing(const Stream&) { return false; }
void Backend::range_push(const char*) {}
void Backend::range_pop() {}

namespace cuda {

std::atomic<int> detail::captures_going_on{0};

namespace {

// What eager steps keep cached is returned to the device before a capture, which has a pool of its
// own; less is not worth asking for again.
constexpr size_t kMostCached = size_t(32) << 20;

struct GoingOn {
  GoingOn() { ++detail::captures_going_on; }
  ~GoingOn() { --detail::captures_going_on; }
};

struct CaptureCheck {
  std::function<std::string()> problem;
  std::function<void(const std::string&)> refuse;
};

}  // namespace

struct Graph::State {
  Device device;
  std::function<void()> step;  // kept: it may own what the recorded work reads
  GraphState* graph = nullptr;
  std::vector<std::function<void()>> before_launch, after_launch;
  std::vector<CaptureCheck> checks;         // during the capture
  std::vector<std::shared_ptr<void>> kept;  // memory that replays use
  uint64_t id = 0;
  std::string destroyed;  // why, when somebody destroyed the recorded work

  void destroy() {
    if (graph) backend(device.type()).destroy_graph(std::exchange(graph, nullptr));
  }
  ~State() { destroy(); }
};

namespace {

// The graph that the calling thread is capturing. A void pointer, because State is private.
thread_local std::shared_ptr<void> t_capturing;
std::atomic<uint64_t> g_captures{0};

struct Refusal {
  std::string problem;
  std::function<void(const std::string&)> refuse;  // empty when nothing is wrong
};

Refusal first_refusal(std::vector<CaptureCheck> checks) {
  for (CaptureCheck& check : checks)
    if (std::string text = check.problem(); !text.empty())
      return {std::move(text), std::move(check.refuse)};
  return {};
}

}  // namespace

Graph Graph::capture(Device device, std::function<void()> step) {
  CATENA_CHECK(ValueError, bool(step), "Graph::capture: expected a function, got an empty one");
  CATENA_CHECK(DeviceError, device.is_cuda(), "Graph::capture: ", device,
               " cannot record graphs; expected a cuda device");
  Graph result;
  result.state_ = std::make_shared<State>();
  result.state_->device = device;
  result.state_->step = std::move(step);
  result.state_->id = g_captures.fetch_add(1) + 1;
  Stream stream = Stream::create(device);
  Backend& b = backend(device.type());
  give_back_cached(device, kMostCached);
  b.begin_capture(device.index(), stream);
  const GoingOn going_on;
  const auto outer = std::exchange(t_capturing, result.state_);
  Refusal refusal;
  try {
    StreamScope scope(stream);
    result.state_->step();
    refusal = first_refusal(std::exchange(result.state_->checks, {}));
  } catch (...) {
    t_capturing = outer;
    b.abort_capture(stream);
    throw;
  }
  t_capturing = outer;
  if (refusal.refuse) {
    b.abort_capture(stream);
    refusal.refuse(refusal.problem);
    fail<Error>("Graph::capture: ", refusal.problem);
  }
  if (!result.state_->destroyed.empty()) {
    b.abort_capture(stream);
    fail<Error>("Graph::capture: ", result.state_->destroyed, ", by the step itself");
  }
  result.state_->graph = b.end_capture(stream);
  return result;
}

void Graph::launch() {
  CATENA_CHECK(ValueError, state_ != nullptr,
               "Graph::launch: this Graph is empty; use Graph::capture");
  CATENA_CHECK(Error, state_->graph != nullptr,
               "Graph::launch: the recorded work is gone: ", state_->destroyed);
  Backend& b = backend(state_->device.type());
  const Stream stream = current_stream(state_->device);
  b.order_launch(state_->graph, stream);  // hooks write what launches on other streams may read
  for (const auto& hook : state_->before_launch) hook();
  b.launch_graph(state_->graph, stream);
  for (const auto& hook : state_->after_launch) hook();
}

Device Graph::device() const {
  CATENA_CHECK(ValueError, state_ != nullptr,
               "Graph::device: this Graph is empty; use Graph::capture");
  return state_->device;
}

uint64_t capture_id() {
  return t_capturing ? static_cast<Graph::State*>(t_capturing.get())->id : 0;
}

void add_capture_check(std::function<std::string()> problem,
                       std::function<void(const std::string&)> refuse) {
  CATENA_CHECK(Error, t_capturing != nullptr, "add_capture_check: this thread captures no graph");
  static_cast<Graph::State*>(t_capturing.get())
      ->checks.push_back({std::move(problem), std::move(refuse)});
}

void add_launch_hook(std::function<void()> before_launch, std::function<void()> after_launch) {
  CATENA_CHECK(Error, t_capturing != nullptr, "add_launch_hook: this thread captures no graph");
  auto& state = *static_cast<Graph::State*>(t_capturing.get());
  if (before_launch) state.before_launch.push_back(std::move(before_launch));
  if (after_launch) state.after_launch.push_back(std::move(after_launch));
}

void GraphDestroyer::operator()(const std::string& reason) const {
  if (const auto state = graph_.lock()) {
    state->destroyed = reason;
    state->destroy();
  }
}

void keep_with_graph(std::shared_ptr<void> memory) {
  CATENA_CHECK(Error, t_capturing != nullptr, "keep_with_graph: this thread captures no graph");
  static_cast<Graph::State*>(t_capturing.get())->kept.push_back(std::move(memory));
}

GraphDestroyer graph_destroyer() {
  CATENA_CHECK(Error, t_capturing != nullptr, "graph_destroyer: this thread captures no graph");
  GraphDestroyer result;
  result.graph_ = std::static_pointer_cast<Graph::State>(t_capturing);
  return result;
}

bool is_capturing(Device device) {
  return device.is_cuda() && backend(device.type()).is_capturing(current_stream(device));
}

}  // namespace cuda
}  // namespace catena
