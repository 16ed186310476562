#include "catena/core/backend.h"

#include <array>
#include <atomic>

#include "catena/core/error.h"
#include "catena/core/plugin.h"
#include "core/cpu_backend.h"
#include "core/hint.h"

namespace catena {
namespace {

std::array<std::atomic<Backend*>, kDeviceTypeCount>& table() {
  static std::array<std::atomic<Backend*>, kDeviceTypeCount> backends{};
  return backends;
}

}  // namespace

void register_backend(DeviceType type, Backend* implementation) {
  table()[static_cast<int>(type)].store(implementation, std::memory_order_release);
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
