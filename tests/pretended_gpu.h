// A GPU that tests pretend to have, whose memory is the host's: captures of graphs are counted, and
// copies and kernels do nothing. Its backend takes the place of the real one, so it is for
// executables of its own.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catena/core/backend.h"

namespace catena::testing {

struct PretendedCaptures {
  std::atomic<int> begun{0}, ended{0}, given_up{0}, launched{0}, destroyed{0};
};

// Only what communicators, captures and kernels use; the rest is never called.
class PretendedGpu : public Backend {
 public:
  PretendedCaptures captures;

  int device_count() override { return 8; }
  std::string describe(int) override { return {}; }
  void synchronize(int) override {}
  StoragePtr allocate(int index, size_t bytes) override {
    const std::shared_ptr<char[]> memory(new char[bytes + 1]);
    return borrow(cuda_device(index), memory.get(), bytes, memory);
  }
  StoragePtr allocate_pinned(Device, size_t) override { throw std::logic_error("pinned"); }
  void record_use(const Storage& storage, const Stream& stream) override {
    uses().emplace_back(&storage, stream);
  }
  // By this thread, which is one rank.
  static std::vector<std::pair<const Storage*, Stream>>& uses() {
    thread_local std::vector<std::pair<const Storage*, Stream>> all;
    return all;
  }
  PoolStatistics statistics(int) override { return {}; }
  PoolStatistics pinned_statistics() override { return {}; }
  void free_all_blocks(int) override {}
  void free_all_pinned_blocks() override {}
  void set_limit(int, size_t) override {}
  void reset_peak(int) override {}

  StreamState* default_stream(int index) override {
    static const std::array<Stream, 8> streams = [this] {
      std::array<Stream, 8> all;
      for (int i = 0; i < 8; ++i) all[size_t(i)] = Stream(create_stream(i, 0));
      return all;
    }();
    return streams[size_t(index)].state();
  }
  StreamState* create_stream(int index, int) override {
    auto* state = new StreamState;
    state->device = cuda_device(index);
    return state;
  }
  void destroy_stream(StreamState* state) override { delete state; }
  void synchronize_stream(StreamState*) override {}
  bool query_stream(StreamState*) override { return true; }
  void stream_wait_event(StreamState*, EventState*) override {}
  EventState* create_event(int index, bool) override {
    auto* state = new EventState;
    state->device = cuda_device(index);
    return state;
  }
  void destroy_event(EventState* state) override { delete state; }
  void record_event(EventState*, StreamState*) override {}
  void synchronize_event(EventState*) override {}
  bool query_event(EventState*) override { return true; }
  double elapsed_ms(EventState*, EventState*) override { return 0; }
  void copy_bytes(void*, Device, const void*, Device, size_t, const Stream&) override {}

  void begin_capture(int, const Stream&) override { ++captures.begun; }
  GraphState* end_capture(const Stream&) override {
    ++captures.ended;
    return reinterpret_cast<GraphState*>(this);  // anything but null
  }
  void launch_graph(GraphState*, const Stream&) override { ++captures.launched; }
  void destroy_graph(GraphState*) noexcept override { ++captures.destroyed; }
  void abort_capture(const Stream&) noexcept override { ++captures.given_up; }

  void range_push(const char* name) override { ranges().append(name).append("("); }
  void range_pop() override { ranges().append(")"); }
  static std::string& ranges() {
    thread_local std::string text;
    return text;
  }
};

inline PretendedGpu& pretended_gpu() {
  static auto* one = [] {
    auto* made = new PretendedGpu;
    register_backend(DeviceType::kCuda, made);
    return made;
  }();
  return *one;
}

}  // namespace catena::testing
