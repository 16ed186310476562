// The functions of Chainer's cuda module: moving arrays between host and GPUs, creating them on a
// GPU with float32 as the default, choosing the device. catena::backends::cuda is the same
// namespace by its later name. There is one Array class for every device, so no module to choose
// (get_array_module): Array::device() says where an array is, and every function takes both.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catena/array/array.h"
#include "catena/array/random.h"
#include "catena/array/transfer.h"
#include "catena/core/memory_pointer.h"
#include "catena/core/memory_pool.h"

namespace catena {

namespace cuda {

using catena::Device;
using catena::Event;
using catena::Memory;
using catena::MemoryPointer;
using catena::MemoryPool;
using catena::PinnedMemoryPool;
using catena::Stream;

// Whether a GPU can be used; unavailable_reason(DeviceType::kCuda) says why not.
bool available();
// DeviceError with that reason where none can be used.
void check_cuda_available();
// Whether functions may use cuDNN: should_use_cudnn(">=auto").
bool cudnn_enabled();
// Makes GPU `device` current. Nothing else needs initialising: plug-ins load on first use.
void init(int device = 0);
// Waits for the current device. Nothing needs to be released: memory goes back at process end.
void shutdown();

// Creation ----------------------------------------------------------------------------------
// Without a dtype float32; without a device on the current one when that is a GPU, else on GPU 0.
Array empty(const Shape& shape, const ArrayOptions& options = {});
Array zeros(const Shape& shape, const ArrayOptions& options = {});
Array ones(const Shape& shape, const ArrayOptions& options = {});
Array full(const Shape& shape, const Scalar& value, const ArrayOptions& options = {});
// Shape, and without a dtype that of `like`.
Array empty_like(const Array& like, const ArrayOptions& options = {});
Array zeros_like(const Array& like, const ArrayOptions& options = {});
Array ones_like(const Array& like, const ArrayOptions& options = {});
Array full_like(const Array& like, const Scalar& value, const ArrayOptions& options = {});

// Movement. Undefined arrays pass; those of a vector that are the same array are copied once. -----
// To `device` (as above); the array itself when it is there already. With a stream of that device
// the copy runs on it, and the device's current stream waits for it.
Array to_gpu(const Array& array, std::optional<Device> device = {},
             std::optional<Stream> stream = {});
Array to_gpu(const Array& array, int device);
std::vector<Array> to_gpu(const std::vector<Array>& arrays, std::optional<Device> device = {},
                          std::optional<Stream> stream = {});
// To cpu:0; an array of any CPU device is returned as it is. The elements are there on return.
Array to_cpu(const Array& array, std::optional<Stream> stream = {});
std::vector<Array> to_cpu(const std::vector<Array>& arrays, std::optional<Stream> stream = {});
// Enqueue the copy on `stream`, a stream of the GPU in question, and return at once; host memory
// that is not pinned is copied into a pinned block first. The result may be used by streams that
// wait for `stream`, or by the host after its synchronize().
Array to_gpu_async(const Array& array, const Stream& stream);
Array to_cpu_async(const Array& array, const Stream& stream);
// A copy: into `out`, or on `out_device`, or on the array's own device. Both given must agree
// (DeviceError). On a stream of the destination, as to_gpu.
Array copy(const Array& array, const OptionalArray& out = {}, std::optional<Device> out_device = {},
           std::optional<Stream> stream = {});
inline Array copy_async(const Array& array, const OptionalArray& out = {},
                        std::optional<Device> out_device = {}, std::optional<Stream> stream = {}) {
  return copy(array, out, out_device, std::move(stream));
}
// Copies elements into `target`: any combination of devices, layouts and dtypes; the shapes
// broadcast. ValueError for an undefined array, ShapeError.
void copyto(const Array& target, const Array& source);
// On `device` (as above) in that dtype; the array itself when it is so already.
Array asarray(const Array& array, const ArrayOptions& options = {});
// On the host, C order; a host array that is so already comes back as it is. to_vector<T>() gives a
// std::vector.
Array asnumpy(const Array& array, std::optional<Stream> stream = {});
// With an order, a destination, a stream, or without waiting, as Array::get; of host arrays too.
Array asnumpy(const Array& array, const GetOptions& options);

// Devices ----------------------------------------------------------------------------------------
// What get_device finds: a device, or none (Chainer's DummyDevice), for which use() and
// synchronize() do nothing. Goes wherever a std::optional<Device> is expected.
class FoundDevice {
 public:
  FoundDevice() = default;  // none
  FoundDevice(std::nullopt_t) {}
  FoundDevice(Device device) : device_(device) {}
  bool has_value() const { return device_.has_value(); }
  explicit operator bool() const { return has_value(); }
  // Only where there is one.
  const Device& value() const { return device_.value(); }
  const Device& operator*() const { return *device_; }
  const Device* operator->() const { return &*device_; }
  operator const std::optional<Device>&() const { return device_; }
  // Of a GPU, else -1.
  int id() const { return device_ && device_->is_cuda() ? device_->index() : -1; }
  explicit operator int() const { return id(); }
  void use() const;
  void synchronize() const;
  friend bool operator==(const FoundDevice&, const FoundDevice&) = default;
  // "cuda:1" or "none".
  friend std::string to_string(const FoundDevice& found) {
    return found.has_value() ? found->name() : "none";
  }
  friend std::ostream& operator<<(std::ostream& os, const FoundDevice& found);

 private:
  std::optional<Device> device_;
};

// An argument of get_device and using_device: the number of a GPU (DeviceError when there is no
// such GPU), a Device, or an array on a GPU that has elements. Host arrays, arrays without elements
// or without a value, nullopt and negative numbers name none.
class DeviceArgument {
 public:
  DeviceArgument(Device device) : device_(device) {}
  DeviceArgument(const char* text) : device_(Device(text)) {}
  DeviceArgument(const FoundDevice& found) : device_(found) {}
  DeviceArgument(std::nullopt_t) {}
  DeviceArgument(int id);
  DeviceArgument(const Array& array);
  const FoundDevice& device() const { return device_; }

 private:
  FoundDevice device_;
};

Device get_device();  // current_device()
// Of the first argument that names a device: get_device(1).use(), get_device(x, y, 1).
FoundDevice get_device(std::initializer_list<DeviceArgument> arguments);
template <class... More>
FoundDevice get_device(const DeviceArgument& first, const More&... more) {
  return get_device({first, DeviceArgument(more)...});
}
// DeviceError when there is no such GPU; none for nullopt and negative numbers.
FoundDevice get_device_from_id(std::optional<int> id);
// That of the first GPU array.
FoundDevice get_device_from_array(std::initializer_list<Array> arrays);
// Makes a device current for good; a host array changes nothing.
void use_device(Device device);
void use_device(int id);
void use_device(const Array& array);
// Makes a device current for a scope; without one nothing happens.
class DeviceUser {
 public:
  explicit DeviceUser(std::optional<Device> device);
  ~DeviceUser() = default;
  DeviceUser(const DeviceUser&) = delete;
  DeviceUser& operator=(const DeviceUser&) = delete;
  bool is_active() const { return scope_.has_value(); }

 private:
  std::optional<DeviceScope> scope_;
};
// The arguments of get_device: using_device(1), using_device(x, y).
template <class... More>
DeviceUser using_device(const DeviceArgument& first, const More&... more) {
  return DeviceUser(get_device(first, more...));
}
inline DeviceUser using_device(std::initializer_list<DeviceArgument> arguments) {
  return DeviceUser(get_device(arguments));
}

// Memory and random numbers ----------------------------------------------------------------------
// The pool that arrays of GPUs come from.
inline MemoryPool memory_pool() { return get_default_memory_pool(); }
inline PinnedMemoryPool pinned_memory_pool() { return {}; }
// A block of the pool of the current GPU (as above).
MemoryPointer mem_alloc(size_t bytes);
RandomState& get_generator(std::optional<Device> device = {});
// By chance without a value.
void seed(std::optional<uint64_t> value = {}, std::optional<Device> device = {});

// cuDNN ------------------------------------------------------------------------------------------
// Whether the cudnn plug-in loads, config().use_cudnn allows it and cuDNN is of that version or
// newer: level "==always" asks for kAlways, ">=auto" for kAuto or kAlways (ValueError for any other
// level); versions are numbers as cudnnGetVersion() gives, 91002 for 9.10.2.
bool should_use_cudnn(std::string_view level, int64_t lowest_version = 0);
void set_max_workspace_size(size_t bytes);  // of config(), for that plug-in
size_t get_max_workspace_size();

// Between processes ------------------------------------------------------------------------------
// An array of a GPU that another process of the host may map. The exporting process keeps this
// object (it keeps the array) as long as the other one uses the memory.
class IPCArrayHandle {
 public:
  // DeviceError for a host array, ValueError for one that is not contiguous.
  explicit IPCArrayHandle(const Array& array);
  // Bytes to send to the other process.
  std::string to_bytes() const;
  // The memory of the exporting process, by default on the GPU of the same number. Order the
  // accesses with an IPCEvent. ValueError for bytes that are not a handle.
  static Array open(std::string_view bytes, std::optional<Device> device = {});

 private:
  Array array_;
};

// An event that another process may wait for.
class IPCEvent {
 public:
  explicit IPCEvent(Device device);
  const Event& event() const { return event_; }
  std::string to_bytes() const;
  static Event open(std::string_view bytes, Device device);

 private:
  Event event_;
};

}  // namespace cuda

namespace backends {

namespace cuda = catena::cuda;

// Chainer's names for its CPU back end; oneDNN has taken the place of iDeep.
namespace intel64 {
// Whether the onednn plug-in, in iDeep's place, can be used.
bool is_ideep_available();
}  // namespace intel64

}  // namespace backends

}  // namespace catena
