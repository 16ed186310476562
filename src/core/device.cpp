#include "catena/core/device.h"

#include <charconv>
#include <ostream>

#include "catena/core/backend.h"
#include "catena/core/dtype.h"
#include "catena/core/error.h"
#include "core/hint.h"

namespace catena {
namespace {

thread_local Device t_current_device;

int parse_index(std::string_view text, std::string_view digits) {
  int index = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  CATENA_CHECK(DeviceError, result.ec == std::errc() && result.ptr == digits.data() + digits.size(),
               "Device: '", text, "' is not a device; expected cpu, cpu:N, cuda or cuda:N");
  return index;
}

}  // namespace

Device::Device(DeviceType type, int index) : type_(type), index_(static_cast<int16_t>(index)) {
  CATENA_CHECK(DeviceError, index >= 0 && index < kMaxDevices, "Device: index ", index, " of ",
               catena::name(type), " is out of range; expected 0 to ", kMaxDevices - 1);
}

Device::Device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  CATENA_CHECK(DeviceError, kind == "cpu" || kind == "cuda" || kind == "gpu", "Device: '", text,
               "' is not a device; expected cpu, cpu:N, cuda or cuda:N",
               find_dtype(&DtypeRow::name, text) ? message("; did you mean dtype::", text, "?")
                                                 : std::string());
  const int index = colon == std::string_view::npos ? 0 : parse_index(text, text.substr(colon + 1));
  *this = Device(kind == "cpu" ? DeviceType::kCpu : DeviceType::kCuda, index);
}

std::string Device::name() const { return message(catena::name(type_), ":", int{index_}); }

std::ostream& operator<<(std::ostream& os, Device device) { return os << device.name(); }

const char* name(DeviceType type) { return type == DeviceType::kCpu ? "cpu" : "cuda"; }

void Device::use() const { set_current_device(*this); }
void Device::synchronize() const { catena::synchronize(*this); }
std::string Device::compute_capability() const {
  return device_properties(*this).compute_capability;
}

Device cpu(int index) { return Device(DeviceType::kCpu, index); }
Device cuda_device(int index) { return Device(DeviceType::kCuda, index); }

int device_count(DeviceType type) {
  Backend* b = find_backend(type);
  return b ? b->device_count() : 0;
}

void require_device(Device device) {
  const int count = device_count(device.type());
  if (device.index() < count) return;
  if (count > 0) {
    fail<DeviceError>(device, " does not exist: this process sees ", count, " ",
                      name(device.type()), " device(s), ", name(device.type()), ":0 to ",
                      name(device.type()), ":", count - 1, kCheckHint);
  }
  fail<DeviceError>(device, " cannot be used: ", unavailable_reason(device.type()), kCheckHint);
}

DeviceProperties device_properties(Device device) {
  require_device(device);
  return backend(device.type()).properties(device.index());
}

MemoryInfo memory_info(Device device) {
  require_device(device);
  return backend(device.type()).memory_info(device.index());
}

bool can_access_peer(Device device, Device peer) {
  require_device(device);
  require_device(peer);
  if (device.type() != peer.type()) return false;
  return device == peer || backend(device.type()).can_access_peer(device.index(), peer.index());
}

Device device_of_pointer(const void* memory) {
  // A process that never used a GPU has no memory there; asking would start the driver.
  if (device_count(DeviceType::kCuda) == 0) return cpu(0);
  const int owner = backend(DeviceType::kCuda).owner_of(memory);
  return owner < 0 ? cpu(0) : cuda_device(owner);
}

Device current_device() { return t_current_device; }
Device current_gpu() { return t_current_device.is_cuda() ? t_current_device : cuda_device(0); }

void set_current_device(Device device) {
  if (device == t_current_device) return;
  require_device(device);
  t_current_device = device;
}

void synchronize(Device device) {
  require_device(device);
  backend(device.type()).synchronize(device.index());
}

void synchronize() { synchronize(current_device()); }

DeviceScope::DeviceScope(Device device) : previous_(current_device()) {
  set_current_device(device);
}
DeviceScope::~DeviceScope() { t_current_device = previous_; }

}  // namespace catena
