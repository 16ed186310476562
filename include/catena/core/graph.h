// cuda::Graph: a step of work recorded once and launched again with one call.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "catena/core/device.h"
#include "catena/core/profiler_range.h"

namespace catena::cuda {

// The work that a function enqueued on a GPU, as one CUDA graph.
//
// Run the step a few times before it is captured, so that kernels are compiled and memory is there.
// During the capture the step runs on the host as usual, but its device work is recorded instead of
// done. A replay repeats the same kernels on the same addresses, without the host code between
// them. What changes from replay to replay must therefore be on the device (see StepValue).
// Whatever needs a result on the host (item(), printing, copies to the host, synchronize()) throws
// during a capture and names the call; so does work on another device than the captured one.
//
// Memory: the step allocates from the graph's private pool, which nobody else uses while the graph
// exists. The device's own pool first gives back what it has cached, so that the step's memory is
// not there twice. Arrays that remain after the step may be read after a launch. Arrays that exist
// before the capture must be kept by the caller or by the step itself, which the graph keeps.
//
// Parameters that functions or an update of the step use stay where they are: a launch after
// model.to(device), or after another setup of an optimizer, is an Error that names a parameter.
class Graph {
 public:
  Graph() = default;  // empty: only assignable
  // Calls step() once and records it. The thread's current stream of the device is another one
  // meanwhile. Throws DeviceError for a CPU device, Error when a call cannot be recorded; what the
  // step throws comes through, and nothing is left captured.
  static Graph capture(Device device, std::function<void()> step);

  // Enqueues the recorded work on the thread's current stream of the device. Does not wait.
  void launch();
  bool defined() const { return bool(state_); }
  Device device() const;

  struct State;  // the library's own

 private:
  std::shared_ptr<State> state_;
};

// True while the calling thread's current stream of the device records a graph.
bool is_capturing(Device device);

// A number of the graph that the calling thread captures, never used again; 0 when it captures
// none.
uint64_t capture_id();

namespace detail {
extern std::atomic<int> captures_going_on;
}
// Whether any thread captures a graph: one load, for calls that are made often.
inline bool anybody_captures() {
  return detail::captures_going_on.load(std::memory_order_relaxed) != 0;
}

// For code that takes part in a captured step; these throw Error when the calling thread captures
// nothing.
// A condition on everything that was recorded; collectives require that all ranks recorded the
// same. When the step has returned, `problem` runs on the host while the capture is still open, so
// it must not use the device. If it returns a text, capture() discards what was recorded and calls
// `refuse` with the text, which throws. Checks run in the order of their addition.
void add_capture_check(std::function<std::string()> problem,
                       std::function<void(const std::string& problem)> refuse);
// Run on the host before and after every launch of the graph, with the stream it is launched on as
// the current one. Either may be empty.
void add_launch_hook(std::function<void()> before_launch,
                     std::function<void()> after_launch = nullptr);

// Keeps memory that the captured step lets go: replays use it. It is let go with the graph.
void keep_with_graph(std::shared_ptr<void> memory);

// Destroys the recorded work of a graph, after which launch() throws an Error with the given
// reason: for work that must be destroyed before something the graph uses, such as a communicator.
// Does not keep the graph alive. During the capture it makes capture() throw with the reason when
// the step ends.
class GraphDestroyer {
 public:
  void operator()(const std::string& reason) const;
  bool gone() const { return graph_.expired(); }  // the graph, and this with nothing to do

 private:
  friend GraphDestroyer graph_destroyer();
  std::weak_ptr<Graph::State> graph_;
};
// Of the graph that the calling thread captures; throws Error when it captures nothing.
GraphDestroyer graph_destroyer();

// Your own named range on a profiler's time line; see profiler_range.h.
using Range = ProfilerRange;

}  // namespace catena::cuda
