#include "core/cpu_backend.h"

#include <cstring>

#include "core/cpu_pool.h"

namespace catena {
namespace {

class CpuBackend final : public Backend {
 public:
  int device_count() override { return kMaxDevices; }
  std::string describe(int) override { return "host processor"; }
  void synchronize(int) override {}

  StoragePtr allocate(int index, size_t bytes) override { return cpu_allocate(cpu(index), bytes); }
  StoragePtr allocate_pinned(Device device, size_t bytes) override {
    return backend(DeviceType::kCuda).allocate_pinned(device, bytes);
  }
  void record_use(const Storage&, const Stream&) override {}
  PoolStatistics statistics(int index) override { return cpu_pool_statistics(index); }
  PoolStatistics pinned_statistics() override { return {}; }
  void free_all_blocks(int) override { cpu_pool_free_all(); }
  void free_all_pinned_blocks() override {}
  void set_limit(int index, size_t bytes) override { cpu_pool_set_limit(index, bytes); }

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

  EventState* create_event(int index, bool) override {
    auto* state = new EventState;
    state->device = cpu(index);
    return state;
  }
  void destroy_event(EventState* state) override { delete state; }
  void record_event(EventState*, StreamState*) override {}
  void synchronize_event(EventState*) override {}
  bool query_event(EventState*) override { return true; }
  double elapsed_ms(EventState*, EventState*) override { return 0; }

  void copy_bytes(void* dst, Device, const void* src, Device, size_t bytes,
                  const Stream&) override {
    std::memcpy(dst, src, bytes);
  }
};

}  // namespace

Backend& cpu_backend() {
  static CpuBackend* instance = new CpuBackend;
  return *instance;
}

}  // namespace catena
