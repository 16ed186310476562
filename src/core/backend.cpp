#include "catena/core/backend.h"

#include <array>
#include <atomic>

#include "catena/core/error.h"
#include "catena/core/log.h"
#include "catena/core/plugin.h"
#include "core/cpu_backend.h"
#include "core/hint.h"
#include "core/rule_text.h"

namespace catena {
namespace {

std::array<std::atomic<Backend*>, kDeviceTypeCount>& table() {
  static std::array<std::atomic<Backend*>, kDeviceTypeCount> backends{};
  return backends;
}

[[noreturn]] void unsupported(const char* what) {
  fail<DeviceError>(what, ": not available on this kind of device; expected a cuda device");
}

}  // namespace

DeviceProperties Backend::properties(int) { unsupported("device_properties"); }
MemoryInfo Backend::memory_info(int) { unsupported("memory_info"); }
bool Backend::can_access_peer(int, int) { return false; }
int Backend::owner_of(const void*) { return -1; }
StoragePtr Backend::allocate_unpooled(int, size_t) { unsupported("allocate_unpooled"); }
Backend::IpcMemory Backend::export_memory(const Storage&, const void*) {
  unsupported("IPCArrayHandle");
}
StoragePtr Backend::import_memory(int, const IpcMemory&, size_t) { unsupported("IPCArrayHandle"); }
bool Backend::count_outside(int, size_t) { return true; }
void Backend::discount_outside(int, size_t) {}
StreamState* Backend::create_blocking_stream(int index, int priority) {
  return create_stream(index, priority);
}
void Backend::add_callback(StreamState*, Stream::Callback) { unsupported("Stream::add_callback"); }
void Backend::launch_host_func(StreamState*, std::function<void()>) {
  unsupported("Stream::launch_host_func");
}
EventState* Backend::create_event_with(int index, const EventOptions& options) {
  return create_event(index, options.timing);
}
Backend::IpcEvent Backend::export_event(EventState*) { unsupported("IPCEvent"); }
EventState* Backend::import_event(int, const IpcEvent&) { unsupported("IPCEvent"); }
void Backend::fill_bytes(void*, int, size_t, const Stream&) { unsupported("memset"); }

void register_backend(DeviceType type, Backend* implementation) {
  table()[static_cast<int>(type)].store(implementation, std::memory_order_release);
}

std::span<const char* const> companions(DeviceType type) {
  static constexpr const char* kOfCpu[] = {"onednn"};
  static constexpr const char* kOfCuda[] = {"cudnn"};
  return type == DeviceType::kCpu ? std::span(kOfCpu) : std::span(kOfCuda);
}

void load_companions(DeviceType type) {
  for (const char* plugin : companions(type))
    if (const std::string problem = load_plugin(plugin); !problem.empty())
      logging::debug("kernels of ", plugin, " are left out: ", problem);
  announce_providers();
}

Backend* find_backend(DeviceType type) {
  if (type == DeviceType::kCpu) return &cpu_backend();
  Backend* found = table()[static_cast<int>(type)].load(std::memory_order_acquire);
  if (found == nullptr && load_plugin(name(type)).empty()) {
    found = table()[static_cast<int>(type)].load(std::memory_order_acquire);
  }
  return found;
}

Backend& backend(DeviceType type) {
  Backend* found = find_backend(type);
  CATENA_CHECK(DeviceError, found != nullptr, "no ", name(type),
               " device can be used: ", unavailable_reason(type), kCheckHint);
  return *found;
}

std::string unavailable_reason(DeviceType type) {
  if (type == DeviceType::kCpu) return {};
  Backend* found = find_backend(type);
  if (found == nullptr) return load_plugin(name(type));
  return found->device_count() > 0 ? std::string() : found->describe(-1);
}

}  // namespace catena
