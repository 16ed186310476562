#include "core/cpu_backend.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "catena/core/config.h"
#include "catena/core/error.h"

namespace catena {
namespace {

// The work before a record is done when it is called: an event is the time of its record.
struct CpuEvent : EventState {
  std::chrono::steady_clock::time_point time;
};

class CpuBackend final : public Backend {
 public:
  int device_count() override { return kMaxDevices; }
  std::string describe(int) override { return "host processor"; }
  void synchronize(int) override {}

  DeviceProperties properties(int index) override {
    return {describe(index), "", cpu_threads(), memory_info(index).total};
  }
  MemoryInfo memory_info(int) override {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return {page * static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)),
            page * static_cast<size_t>(sysconf(_SC_PHYS_PAGES))};
  }
  bool can_access_peer(int, int) override { return true; }

  StoragePtr allocate(int index, size_t bytes) override { return cpu_allocate(cpu(index), bytes); }
  StoragePtr allocate_pinned(Device device, size_t bytes) override {
    return backend(DeviceType::kCuda).allocate_pinned(device, bytes);
  }
  StoragePtr allocate_unpooled(int index, size_t bytes) override {
    // Whole cache lines, at least one.
    const size_t rounded = (bytes + 63) / 64 * 64 + (bytes == 0 ? 64 : 0);
    void* memory = rounded < bytes ? nullptr : std::aligned_alloc(64, rounded);
    CATENA_CHECK(OutOfMemoryError, memory != nullptr, "out of memory on ", cpu(index),
                 ": asked for ", bytes, " bytes outside the pool");
    return borrow(cpu(index), memory, bytes, std::shared_ptr<void>(memory, &std::free));
  }
  void record_use(const Storage&, const Stream&) override {}
  PoolStatistics statistics(int index) override { return cpu_pool_statistics(index); }
  PoolStatistics pinned_statistics() override { return {}; }
  void free_all_blocks(int) override { cpu_pool_free_all(); }
  void free_all_pinned_blocks() override {}
  void set_limit(int index, size_t bytes) override { cpu_pool_set_limit(index, bytes); }
  void reset_peak(int index) override { cpu_pool_reset_peak(index); }

  StreamState* default_stream(int index) override {
    struct Defaults {
      StreamState states[kMaxDevices];
      Defaults() {
        for (int i = 0; i < kMaxDevices; ++i) {
          states[i].device = cpu(i);
          states[i].is_default = true;
          states[i].retain();  // never destroyed
        }
      }
    };
    static Defaults* defaults = new Defaults;
    return &defaults->states[index];
  }
  StreamState* create_stream(int index, int) override {
    auto* state = new StreamState;
    state->device = cpu(index);
    return state;
  }
  void destroy_stream(StreamState* state) override { delete state; }
  void synchronize_stream(StreamState*) override {}
  bool query_stream(StreamState*) override { return true; }
  void stream_wait_event(StreamState*, EventState* event) override {
    if (!event->device.is_cpu()) backend(event->device.type()).synchronize_event(event);
  }

  void add_callback(StreamState* state, Stream::Callback callback) override {
    callback(Stream(state), "");
  }
  void launch_host_func(StreamState*, std::function<void()> function) override { function(); }

  EventState* create_event(int index, bool timing) override {
    auto* state = new CpuEvent;
    state->device = cpu(index);
    state->timing = timing;
    return state;
  }
  void destroy_event(EventState* state) override { delete static_cast<CpuEvent*>(state); }
  void record_event(EventState* state, StreamState*) override {
    if (state->timing) static_cast<CpuEvent*>(state)->time = std::chrono::steady_clock::now();
  }
  void synchronize_event(EventState*) override {}
  bool query_event(EventState*) override { return true; }
  double elapsed_ms(EventState* start, EventState* stop) override {
    const auto time = [](EventState* e) { return static_cast<CpuEvent*>(e)->time; };
    return std::chrono::duration<double, std::milli>(time(stop) - time(start)).count();
  }

  void copy_bytes(void* dst, Device, const void* src, Device, size_t bytes,
                  const Stream&) override {
    std::memcpy(dst, src, bytes);
  }
  void fill_bytes(void* dst, int value, size_t bytes, const Stream&) override {
    std::memset(dst, value, bytes);
  }
};

}  // namespace

Backend& cpu_backend() {
  static CpuBackend* instance = new CpuBackend;
  return *instance;
}

}  // namespace catena
