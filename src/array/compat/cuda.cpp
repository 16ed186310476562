#include "catena/array/cuda.h"

#include <dlfcn.h>

#include <cstring>
#include <ostream>

#include "catena/array/creation.h"
#include "catena/core/backend.h"
#include "catena/core/config.h"
#include "catena/core/plugin.h"

namespace catena {

namespace backends::intel64 {

bool is_ideep_available() { return load_plugin("onednn").empty(); }

}  // namespace backends::intel64

namespace cuda {
namespace {

// The device of results for which the caller named none.
Device chosen(const std::optional<Device>& device) { return device ? *device : current_gpu(); }
ArrayOptions on_chosen(ArrayOptions options) {
  options.device = chosen(options.device);
  return options;
}
ArrayOptions as_float32(const ArrayOptions& options) {
  return {options.dtype.value_or(Dtype::kFloat32), chosen(options.device)};
}

// Runs work on a stream of `device`, after the work enqueued on the current stream and before later
// work there.
template <class F>
Array on_stream(const char* who, Device device, const std::optional<Stream>& stream, const F& f) {
  if (!stream) return f();
  CATENA_CHECK(DeviceError, stream->defined() && stream->device() == device, who,
               ": expected a stream of ", device, ", got ",
               stream->defined() ? message("one of ", stream->device()) : "an undefined one");
  const Stream current = current_stream(device);
  if (*stream == current) return f();
  Array result;
  stream->wait(current);
  {
    StreamScope scope(*stream);
    result = f();
  }
  record_use(*result.storage(), current);
  current.wait(*stream);
  return result;
}

// Calls f once for each different array.
template <class F>
std::vector<Array> each_once(const std::vector<Array>& arrays, const F& f) {
  std::vector<Array> results;
  for (const Array& array : arrays) {
    size_t same = 0;
    while (same < results.size() && !arrays[same].same_body(array)) ++same;
    results.push_back(same < results.size() ? results[same] : f(array));
  }
  return results;
}

}  // namespace

bool available() { return device_count(DeviceType::kCuda) > 0; }
void check_cuda_available() {
  CATENA_CHECK(DeviceError, available(),
               "check_cuda_available: no GPU can be used: ", unavailable_reason(DeviceType::kCuda));
}
bool cudnn_enabled() { return should_use_cudnn(">=auto"); }
void init(int device) { set_current_device(cuda_device(device)); }
void shutdown() { synchronize(); }

Array empty(const Shape& shape, const ArrayOptions& options) {
  return catena::empty(shape, as_float32(options));
}
Array zeros(const Shape& shape, const ArrayOptions& options) {
  return catena::zeros(shape, as_float32(options));
}
Array ones(const Shape& shape, const ArrayOptions& options) {
  return catena::ones(shape, as_float32(options));
}
Array full(const Shape& shape, const Scalar& value, const ArrayOptions& options) {
  return catena::full(shape, value, as_float32(options));
}
Array empty_like(const Array& like, const ArrayOptions& options) {
  return catena::empty_like(like, on_chosen(options));
}
Array zeros_like(const Array& like, const ArrayOptions& options) {
  return catena::zeros_like(like, on_chosen(options));
}
Array ones_like(const Array& like, const ArrayOptions& options) {
  return catena::ones_like(like, on_chosen(options));
}
Array full_like(const Array& like, const Scalar& value, const ArrayOptions& options) {
  return catena::full_like(like, value, on_chosen(options));
}

Array to_gpu(const Array& array, std::optional<Device> device, std::optional<Stream> stream) {
  if (!array.defined()) return array;
  const Device target = chosen(device);
  if (array.device() == target) return array;
  return on_stream("to_gpu", target, stream, [&] { return array.to(target); });
}
Array to_gpu(const Array& array, int device) { return to_gpu(array, cuda_device(device)); }
std::vector<Array> to_gpu(const std::vector<Array>& arrays, std::optional<Device> device,
                          std::optional<Stream> stream) {
  return each_once(arrays, [&](const Array& a) { return to_gpu(a, device, stream); });
}

Array to_cpu(const Array& array, std::optional<Stream> stream) {
  if (!array.defined() || array.device().is_cpu()) return array;
  if (!stream) return array.to(cpu(0));
  const Array result = Array::uninitialized(array.shape(), array.dtype(), cpu(0));
  copy_to_host_async(array, result.raw_data(), *stream).synchronize();
  return result;
}
std::vector<Array> to_cpu(const std::vector<Array>& arrays, std::optional<Stream> stream) {
  return each_once(arrays, [&](const Array& a) { return to_cpu(a, stream); });
}

Array to_gpu_async(const Array& array, const Stream& stream) {
  if (!array.defined()) return array;
  const Device target = stream.device();
  if (array.device() == target) return array;
  CATENA_CHECK(DeviceError, array.device().is_cpu(),
               "to_gpu_async: expected a host array, got one on ", array.device(),
               "; copy(array, {}, device, stream) copies between GPUs");
  Array host = array.contiguous();
  if (target.is_cuda() && !host.storage()->pinned && host.size() > 0) {
    const Array pinned = empty_pinned(host.shape(), host.dtype());
    std::memcpy(pinned.raw_data(), host.raw_data(), static_cast<size_t>(host.nbytes()));
    host = pinned;
  }
  const Array result = Array::uninitialized(host.shape(), host.dtype(), target);
  set_async(result, host.raw_data(), stream);
  record_use(*host.storage(), stream);
  return result;
}

Array to_cpu_async(const Array& array, const Stream& stream) {
  if (!array.defined() || array.device().is_cpu()) return array;
  const Array result = empty_pinned(array.shape(), array.dtype());
  record_use(*result.storage(), stream);
  copy_to_host_async(array, result.raw_data(), stream);
  return result;
}

Array copy(const Array& array, const OptionalArray& out, std::optional<Device> out_device,
           std::optional<Stream> stream) {
  CATENA_CHECK(ValueError, array.defined(), "copy: the array is undefined");
  const bool given = out.given("copy");
  const Device target = given ? out.device() : out_device.value_or(array.device());
  CATENA_CHECK(DeviceError, !out_device || *out_device == target, "copy: the output is on ", target,
               ", but the given device is ", out_device.value_or(target));
  return on_stream("copy", target, stream, [&] {
    if (!given) return array.copy_to(target);
    CATENA_CHECK(ShapeError, out.shape() == array.shape(), "copy: the array has shape ",
                 array.shape(), ", the output ", out.shape());
    out.assign(array);
    return Array(out);
  });
}

void copyto(const Array& target, const Array& source) {
  CATENA_CHECK(ValueError, target.defined() && source.defined(), "copyto: the ",
               target.defined() ? "source" : "target", " is an undefined array");
  target.assign(source);
}

Array asarray(const Array& array, const ArrayOptions& options) {
  CATENA_CHECK(ValueError, array.defined(), "asarray: the array is undefined");
  return array.to(chosen(options.device)).astype(options.dtype.value_or(array.dtype()), false);
}

Array asnumpy(const Array& array, std::optional<Stream> stream) {
  CATENA_CHECK(ValueError, array.defined(), "asnumpy: the array is undefined");
  return to_cpu(array, std::move(stream)).contiguous();
}

Array asnumpy(const Array& array, const GetOptions& options) {
  CATENA_CHECK(ValueError, array.defined(), "asnumpy: the array is undefined");
  return array.get(options);
}

void FoundDevice::use() const {
  if (device_) device_->use();
}
void FoundDevice::synchronize() const {
  if (device_) device_->synchronize();
}
std::ostream& operator<<(std::ostream& os, const FoundDevice& found) {
  return os << to_string(found);
}

DeviceArgument::DeviceArgument(int id) : device_(get_device_from_id(id)) {}
DeviceArgument::DeviceArgument(const Array& array) {
  if (array.defined() && array.size() > 0 && array.device().is_cuda()) device_ = array.device();
}

Device get_device() { return current_device(); }
FoundDevice get_device(std::initializer_list<DeviceArgument> arguments) {
  for (const DeviceArgument& argument : arguments) {
    if (argument.device()) return argument.device();
  }
  return {};
}
FoundDevice get_device_from_id(std::optional<int> id) {
  if (!id || *id < 0) return {};
  const Device device = cuda_device(*id);
  require_device(device);
  return device;
}
FoundDevice get_device_from_array(std::initializer_list<Array> arrays) {
  for (const Array& array : arrays) {
    if (const auto device = get_device(array)) return device;
  }
  return {};
}

void use_device(Device device) { set_current_device(device); }
void use_device(int id) { set_current_device(cuda_device(id)); }
void use_device(const Array& array) {
  if (const auto device = get_device(array)) set_current_device(*device);
}

DeviceUser::DeviceUser(std::optional<Device> device) {
  if (device) scope_.emplace(*device);
}

MemoryPointer mem_alloc(size_t bytes) { return alloc(bytes, chosen({})); }
RandomState& get_generator(std::optional<Device> device) {
  return random::default_state(chosen(device));
}
void seed(std::optional<uint64_t> value, std::optional<Device> device) {
  RandomState& state = get_generator(device);
  if (value)
    state.seed(*value);
  else
    state.seed();
}

namespace {

// Of the library that the cudnn plug-in has loaded; 0 if there is none.
int64_t cudnn_version() {
  void* const library = ::dlopen("libcudnn.so.9", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  const auto version = reinterpret_cast<size_t (*)()>(::dlsym(library, "cudnnGetVersion"));
  const int64_t result = version == nullptr ? 0 : static_cast<int64_t>(version());
  ::dlclose(library);  // the plug-in goes on using it
  return result;
}

}  // namespace

bool should_use_cudnn(std::string_view level, int64_t lowest_version) {
  CATENA_CHECK(ValueError, level == "==always" || level == ">=auto", "should_use_cudnn: level '",
               level, "' is neither '==always' nor '>=auto'");
  const UseCudnn setting = config().use_cudnn;
  const bool wanted =
      setting == UseCudnn::kAlways || (setting == UseCudnn::kAuto && level == ">=auto");
  if (!wanted || !available() || !load_plugin("cudnn").empty()) return false;
  return lowest_version <= 0 || cudnn_version() >= lowest_version;
}
void set_max_workspace_size(size_t bytes) { config().max_workspace_size = bytes; }
size_t get_max_workspace_size() { return config().max_workspace_size; }

namespace {

// What is sent for an array. Both processes must be of the same build.
struct ArrayWire {
  char magic[8];
  Backend::IpcMemory memory;
  int32_t device, dtype, ndim;
  int64_t extents[kMaxDims];
};
constexpr char kMagic[8] = {'c', 'a', 't', 'e', 'n', 'a', 'A', '1'};

}  // namespace

IPCArrayHandle::IPCArrayHandle(const Array& array) : array_(array) {
  CATENA_CHECK(DeviceError, array.defined() && array.device().is_cuda(),
               "IPCArrayHandle: expected an array of a GPU, got ",
               array.defined() ? message("one on ", array.device()) : "an undefined one");
  CATENA_CHECK(ValueError, array.is_contiguous() && array.size() > 0,
               "IPCArrayHandle: expected a contiguous array with elements, got shape ",
               array.shape(), " with strides ", array.strides());
}

std::string IPCArrayHandle::to_bytes() const {
  ArrayWire wire{};
  std::memcpy(wire.magic, kMagic, sizeof kMagic);
  wire.memory = backend(DeviceType::kCuda).export_memory(*array_.storage(), array_.raw_data());
  wire.device = array_.device().index();
  wire.dtype = static_cast<int32_t>(array_.dtype());
  wire.ndim = array_.ndim();
  for (int i = 0; i < wire.ndim; ++i) wire.extents[i] = array_.shape()[size_t(i)];
  return std::string(reinterpret_cast<const char*>(&wire), sizeof wire);
}

Array IPCArrayHandle::open(std::string_view bytes, std::optional<Device> device) {
  ArrayWire wire;
  CATENA_CHECK(ValueError, bytes.size() == sizeof wire, "IPCArrayHandle::open: ", bytes.size(),
               " bytes are not a handle, which has ", sizeof wire);
  std::memcpy(&wire, bytes.data(), sizeof wire);
  CATENA_CHECK(ValueError,
               std::memcmp(wire.magic, kMagic, sizeof kMagic) == 0 && wire.ndim >= 0 &&
                   wire.ndim <= kMaxDims && wire.dtype >= 0 && wire.dtype < kDtypeCount,
               "IPCArrayHandle::open: the bytes are not the handle of an array");
  const Shape shape(wire.extents, wire.extents + wire.ndim);
  const auto dtype = static_cast<Dtype>(wire.dtype);
  const auto item = static_cast<int64_t>(itemsize(dtype));
  const Device target = device.value_or(cuda_device(wire.device));
  require_device(target);
  StoragePtr storage = backend(DeviceType::kCuda)
                           .import_memory(target.index(), wire.memory,
                                          static_cast<size_t>(element_count(shape) * item));
  return Array::from_storage(std::move(storage), 0, shape, contiguous_strides(shape, item), dtype);
}

IPCEvent::IPCEvent(Device device)
    : event_(Event::create(device, EventOptions{false, false, true})) {}

std::string IPCEvent::to_bytes() const {
  const Backend::IpcEvent wire =
      backend(event_.state()->device.type()).export_event(event_.state());
  return std::string(wire.handle, sizeof wire.handle);
}

Event IPCEvent::open(std::string_view bytes, Device device) {
  Backend::IpcEvent wire;
  CATENA_CHECK(ValueError, bytes.size() == sizeof wire.handle, "IPCEvent::open: ", bytes.size(),
               " bytes are not a handle, which has ", sizeof wire.handle);
  std::memcpy(wire.handle, bytes.data(), sizeof wire.handle);
  require_device(device);
  return Event(backend(device.type()).import_event(device.index(), wire));
}

}  // namespace cuda
}  // namespace catena
