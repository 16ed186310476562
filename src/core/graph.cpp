#include "catena/core/graph.h"

#include <cstdlib>
#include <cstring>

#include "catena/core/backend.h"
#include "catena/core/error.h"

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
void Backend::destroy_graph(GraphState*) noexcept {}
bool Backend::is_capturing(const Stream&) { return false; }
void Backend::range_push(const char*) {}
void Backend::range_pop() {}

namespace cuda {

struct Graph::State {
  Device device;
  std::function<void()> step;  // kept: it may own what the recorded work reads
  GraphState* graph = nullptr;

  ~State() {
    if (graph) backend(device.type()).destroy_graph(graph);
  }
};

Graph Graph::capture(Device device, std::function<void()> step) {
  CATENA_CHECK(ValueError, bool(step), "Graph::capture: expected a function, got an empty one");
  CATENA_CHECK(DeviceError, device.is_cuda(), "Graph::capture: ", device,
               " cannot record graphs; expected a cuda device");
  Graph result;
  result.state_ = std::make_shared<State>();
  result.state_->device = device;
  result.state_->step = std::move(step);
  Stream stream = Stream::create(device);
  Backend& b = backend(device.type());
  b.begin_capture(device.index(), stream);
  try {
    StreamScope scope(stream);
    result.state_->step();
  } catch (...) {
    b.abort_capture(stream);
    throw;
  }
  result.state_->graph = b.end_capture(stream);
  return result;
}

void Graph::launch() {
  CATENA_CHECK(ValueError, state_ != nullptr,
               "Graph::launch: this Graph is empty; use Graph::capture");
  backend(state_->device.type()).launch_graph(state_->graph, current_stream(state_->device));
}

Device Graph::device() const {
  CATENA_CHECK(ValueError, state_ != nullptr,
               "Graph::device: this Graph is empty; use Graph::capture");
  return state_->device;
}

bool is_capturing(Device device) {
  return device.is_cuda() && backend(device.type()).is_capturing(current_stream(device));
}

namespace {

bool ranges_enabled() {
  static const bool enabled = [] {
    const char* text = std::getenv("CATENA_NVTX");
    return text && std::strcmp(text, "1") == 0;
  }();
  return enabled;
}

}  // namespace

Range::Range(const char* name) {
  if (!ranges_enabled()) return;
  if (Backend* b = find_backend(DeviceType::kCuda)) b->range_push(name);
}

Range::~Range() {
  if (!ranges_enabled()) return;
  if (Backend* b = find_backend(DeviceType::kCuda)) b->range_pop();
}

}  // namespace cuda
}  // namespace catena
