// Devices: numbered CPUs (distinct devices that share host memory) and CUDA GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

// The kinds of devices, and the number of kinds.
enum class DeviceType : uint8_t { kCpu, kCuda };
inline constexpr int kDeviceTypeCount = 2;
inline constexpr int kMaxDevices = 64;  // of each type

// A device by type and number. A constant-size value; it need not exist on this machine.
class Device {
 public:
  constexpr Device() = default;  // cpu:0
  // Throws DeviceError when index is negative or at least kMaxDevices.
  Device(DeviceType type, int index);
  // "cpu", "cpu:1", "cuda", "cuda:3"; "gpu" is accepted for "cuda". Throws DeviceError.
  Device(std::string_view text);
  Device(const char* text) : Device(std::string_view(text)) {}
  Device(const std::string& text) : Device(std::string_view(text)) {}

  // The index counts from 0 within the type.
  DeviceType type() const { return type_; }
  int index() const { return index_; }
  bool is_cpu() const { return type_ == DeviceType::kCpu; }
  bool is_cuda() const { return type_ == DeviceType::kCuda; }
  std::string name() const;  // "cuda:0"
  int id() const { return index_; }
  // Makes it the calling thread's current device for good; DeviceScope does so for a scope.
  void use() const;
  // Blocks until everything queued on the device by this process is done.
  void synchronize() const;
  // Major and minor digits, "90"; "" for a CPU.
  std::string compute_capability() const;
  friend bool operator==(Device, Device) = default;
  // Prints name().
  friend std::ostream& operator<<(std::ostream& os, Device device);

 private:
  DeviceType type_ = DeviceType::kCpu;
  int16_t index_ = 0;
};

// device.name(), for messages.
inline std::string to_string(Device device) { return device.name(); }
const char* name(DeviceType type);  // "cpu", "cuda"

// CPU device n of this process.
Device cpu(int index = 0);
// GPU n among the visible ones; existence is checked on first use, not here.
Device cuda_device(int index = 0);

// Number of usable devices: kMaxDevices CPUs; visible GPUs (0 when the cuda plug-in or the driver
// is missing; unavailable_reason says why).
int device_count(DeviceType type);
// Empty when the type works here; otherwise one sentence with the loader's or driver's own text.
std::string unavailable_reason(DeviceType type);
// Throws DeviceError when the device cannot be used, with the number of devices and the reason.
void require_device(Device device);

// What a device is, read once.
struct DeviceProperties {
  std::string model;               // "NVIDIA H200"
  std::string compute_capability;  // "90"; "" for a CPU
  int multiprocessors = 0;         // of a CPU: the cores this process may use
  size_t total_memory = 0;         // bytes
};
// DeviceError when the device cannot be used; so do the next two.
DeviceProperties device_properties(Device device);
// Bytes of the device's memory that nobody uses, and all. What this library's pool keeps for reuse
// is not free in this sense: see memory_statistics.
struct MemoryInfo {
  size_t free = 0, total = 0;
};
// DeviceError when the device cannot be used.
MemoryInfo memory_info(Device device);
// Whether `device` can read and write the memory of `peer` directly; true for equal ones and for
// two CPUs, false between a CPU and a GPU and when CATENA_P2P=0. Copies ask themselves, enable the
// access at first use, and pass through the host where there is none.
bool can_access_peer(Device device, Device peer);
// The device that owns the memory at an address: a GPU, or cpu:0 for what no GPU knows.
Device device_of_pointer(const void* memory);

// The calling thread's current device, on which creation routines put arrays. Starts as cpu:0.
Device current_device();
// The current device when it is a GPU, else GPU 0: the target of to_gpu() without a number.
Device current_gpu();
void set_current_device(Device device);

// Blocks until everything queued on the device by this process is done.
void synchronize(Device device);
void synchronize();  // current device

// Makes a device current for a scope.
class DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device previous_;
};

}  // namespace catena
