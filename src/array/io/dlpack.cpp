#include "catena/array/dlpack.h"

#include <memory>

#include "catena/core/backend.h"

namespace catena {
namespace {

using namespace dlpack;

DLDataType to_dl(Dtype d) {
  return {row_of(d).dlpack_code, static_cast<uint8_t>(8 * itemsize(d)), 1};
}

Dtype from_dl(DLDataType type) {
  for (int i = 0; i < kDtypeCount; ++i) {
    const DLDataType ours = to_dl(static_cast<Dtype>(i));
    if (type.code == ours.code && type.bits == ours.bits && type.lanes == 1)
      return static_cast<Dtype>(i);
  }
  constexpr const char* kCodes[] = {"int",    "uint",    "float", "opaque handle",
                                    "bfloat", "complex", "bool"};
  const char* kind = type.code < std::size(kCodes) ? kCodes[type.code] : "unknown type";
  fail<DtypeError>("from_dlpack: elements of ", kind, " (code ", int{type.code}, ") with ",
                   int{type.bits}, " bits and ", int{type.lanes},
                   " lanes; expected bool, integers of 8 to 64 bits, ", float_names(),
                   " with one lane; convert the tensor before it is exported");
}

Device device_of(DLDevice device) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost: return cpu(0);
    case kDLCUDA:
    case kDLCUDAManaged: {
      const Device gpu = cuda_device(device.device_id);
      require_device(gpu);
      return gpu;
    }
    default:
      fail<DeviceError>(
          "from_dlpack: memory of DLPack device type ", device.device_type,
          "; expected 1 (CPU), 2 (CUDA), 3 (CUDA host) or 13 (CUDA managed); move the "
          "tensor to one of them first");
  }
}

// What an exported tensor owns. The tensor is the first member, so that the deleter finds the rest.
template <class Managed>
struct Lent {
  Managed tensor{};
  Array array;
  Dims shape, strides;  // strides in elements

  static void release(Managed* tensor) { delete reinterpret_cast<Lent*>(tensor); }
};

// Byte strides as element strides. The stride of an axis with at most one element does not matter.
Strides element_strides(const char* who, const Array& a) {
  Strides strides = a.strides();
  const Strides dense = contiguous_strides(a.shape(), 1);
  for (int i = 0; i < a.ndim(); ++i) {
    int64_t& stride = strides[size_t(i)];
    const bool whole = stride % a.itemsize() == 0;
    const bool matters = a.shape()[size_t(i)] > 1 && a.size() > 0;
    CATENA_CHECK(ValueError, whole || !matters, who, ": stride ", stride, " of axis ", i,
                 " is not a multiple of the ", a.itemsize(), " bytes of ", a.dtype(),
                 ", which DLPack cannot say; export a copy()");
    CATENA_CHECK(ValueError, stride >= 0 || !matters, who, ": stride ", stride, " of axis ", i,
                 " is negative, and importers such as PyTorch's end the process on such a tensor; "
                 "export a copy()");
    stride = whole && stride >= 0 ? stride / a.itemsize() : dense[size_t(i)];
  }
  return strides;
}

void order_for(const char* who, const Array& a, const std::optional<Stream>& consumer) {
  if (!consumer || a.device().is_cpu()) return;
  CATENA_CHECK(DeviceError, consumer->device() == a.device(), who, ": the array is on ", a.device(),
               ", the consumer's stream on ", consumer->device());
  consumer->wait(current_stream(a.device()));
  record_use(*a.storage(), *consumer);
}

template <class Managed>
Managed* lend(const char* who, const Array& a, const std::optional<Stream>& consumer) {
  CATENA_CHECK(ValueError, a.defined(), who, ": the array is not defined");
  auto lent = std::make_unique<Lent<Managed>>();
  lent->strides = element_strides(who, a);
  lent->shape = a.shape();
  lent->array = a;
  order_for(who, a, consumer);
  DLTensor& t = lent->tensor.dl_tensor;
  t.data = a.raw_data();
  t.device = dlpack_device(a);
  t.ndim = a.ndim();
  t.dtype = to_dl(a.dtype());
  t.shape = lent->shape.data();
  t.strides = lent->strides.data();
  lent->tensor.manager_ctx = lent.get();
  lent->tensor.deleter = &Lent<Managed>::release;
  return &lent.release()->tensor;
}

// Calls the deleter of an imported tensor when no work of catena uses its memory any more.
template <class Managed>
class Borrowed {
 public:
  Borrowed(Managed* tensor, Device device, const std::optional<Stream>& producer)
      : tensor_(tensor), device_(device), producer_(producer) {
    if (device_.is_cuda()) at_import_ = current_stream(device_);
  }
  ~Borrowed() {
    if (device_.is_cuda()) wait_for_work();
    if (tensor_->deleter) tensor_->deleter(tensor_);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

 private:
  void wait_for_work() noexcept {
    try {
      const Stream now = current_stream(device_);
      wait_for(at_import_);
      if (now != at_import_) wait_for(now);
    } catch (const std::exception&) {
      // The driver is shutting down, or a graph is being captured: waiting is impossible.
    }
  }
  void wait_for(const Stream& stream) const {
    if (producer_)
      producer_->wait(stream);
    else
      stream.synchronize();
  }

  Managed* tensor_;
  Device device_;
  std::optional<Stream> producer_;
  Stream at_import_;
};

// The bytes that a tensor spans: lowest address relative to its first element, and length.
struct Extent {
  int64_t low = 0;
  int64_t bytes = 0;
};

Extent extent_of(const Shape& shape, const Strides& strides, Dtype dtype) {
  int64_t low = 0, high = static_cast<int64_t>(itemsize(dtype));
  bool fits = true;
  for (int i = 0; i < shape.ndim(); ++i) {
    int64_t reach = 0;
    fits = fits && !__builtin_mul_overflow(shape[size_t(i)] - 1, strides[size_t(i)], &reach);
    int64_t& end = reach < 0 ? low : high;
    fits = fits && !__builtin_add_overflow(end, reach, &end);
  }
  int64_t bytes = 0;
  fits = fits && !__builtin_sub_overflow(high, low, &bytes);
  CATENA_CHECK(ShapeError, fits, "from_dlpack: shape ", shape, " with byte strides ", strides,
               " spans more than 2^63 bytes");
  return {low, bytes};
}

Shape shape_of(const DLTensor& t) {
  CATENA_CHECK(ShapeError, t.ndim >= 0 && t.ndim <= kMaxDims, "from_dlpack: a tensor of ", t.ndim,
               " dimensions; expected 0 to ", kMaxDims);
  CATENA_CHECK(ValueError, t.ndim == 0 || t.shape, "from_dlpack: a tensor of ", t.ndim,
               " dimensions without a shape");
  Shape shape(t.shape, t.shape + t.ndim);
  element_count(shape);  // refuses negative extents and overflow
  return shape;
}

Strides byte_strides(const DLTensor& t, const Shape& shape, Dtype dtype) {
  const auto item = static_cast<int64_t>(itemsize(dtype));
  if (!t.strides) return contiguous_strides(shape, item);
  Strides strides(shape.size(), 0);
  for (size_t i = 0; i < shape.size(); ++i) {
    CATENA_CHECK(ShapeError, !__builtin_mul_overflow(t.strides[i], item, &strides[i]),
                 "from_dlpack: stride ", t.strides[i], " of axis ", i, " does not fit 2^63 bytes");
  }
  return strides;
}

template <class Managed>
Array take_over(Managed* tensor, bool read_only, const std::optional<Stream>& producer) {
  const DLTensor& t = tensor->dl_tensor;
  const Dtype dtype = from_dl(t.dtype);
  const Device device = device_of(t.device);
  const Shape shape = shape_of(t);
  const Strides strides = byte_strides(t, shape, dtype);
  const bool empty = element_count(shape) == 0;
  const Extent extent = empty ? Extent{} : extent_of(shape, strides, dtype);
  char* first = t.data ? static_cast<char*>(t.data) + t.byte_offset : nullptr;
  CATENA_CHECK(ValueError, empty || first, "from_dlpack: shape ", shape, " without memory");
  CATENA_CHECK(ValueError, empty || reinterpret_cast<uintptr_t>(first) % itemsize(dtype) == 0,
               "from_dlpack: the first element is not aligned to the ", itemsize(dtype),
               " bytes of ", dtype, "; export a copy");
  if (producer && device.is_cuda()) {
    CATENA_CHECK(DeviceError, producer->device() == device, "from_dlpack: the tensor is on ",
                 device, ", the producer's stream on ", producer->device());
    current_stream(device).wait(*producer);
  }
  // An owner that is made but not used would call the deleter of a tensor that still belongs to the
  // caller. Below this line only a lack of memory throws.
  auto owner = std::make_shared<Borrowed<Managed>>(tensor, device, producer);
  StoragePtr storage =
      borrow(device, first + extent.low, static_cast<size_t>(extent.bytes), std::move(owner));
  storage->read_only = read_only;
  storage->pinned = t.device.device_type == kDLCUDAHost && find_backend(DeviceType::kCuda);
  return Array::from_storage(std::move(storage), -extent.low, shape, strides, dtype);
}

}  // namespace

DLDevice dlpack_device(const Array& a) {
  if (a.device().is_cuda()) return {kDLCUDA, a.device().index()};
  return {a.storage()->pinned ? kDLCUDAHost : kDLCPU, 0};
}

DLManagedTensor* to_dlpack(const Array& a, const std::optional<Stream>& consumer) {
  CATENA_CHECK(ValueError, !a.defined() || a.is_writable(),
               "to_dlpack: the array is read-only, which DLPack before 1.0 cannot say; use "
               "to_dlpack_versioned or export a copy()");
  return lend<DLManagedTensor>("to_dlpack", a, consumer);
}

DLManagedTensorVersioned* to_dlpack_versioned(const Array& a,
                                              const std::optional<Stream>& consumer) {
  auto* tensor = lend<DLManagedTensorVersioned>("to_dlpack_versioned", a, consumer);
  tensor->version = {1, 0};
  tensor->flags = a.is_writable() ? 0 : kReadOnly;
  return tensor;
}

Array from_dlpack(DLManagedTensor* tensor, const std::optional<Stream>& producer) {
  CATENA_CHECK(ValueError, tensor, "from_dlpack: the tensor is null");
  return take_over(tensor, false, producer);
}

Array from_dlpack(DLManagedTensorVersioned* tensor, const std::optional<Stream>& producer) {
  CATENA_CHECK(ValueError, tensor, "from_dlpack: the tensor is null");
  CATENA_CHECK(ValueError, tensor->version.major == 1, "from_dlpack: a tensor of DLPack version ",
               tensor->version.major, ".", tensor->version.minor,
               ", expected 1.x; ask the producer for that (max_version=(1, 0) in Python)");
  return take_over(tensor, (tensor->flags & kReadOnly) != 0, producer);
}

std::optional<Stream> dlpack_stream(Device device, int64_t number) {
  if (device.is_cpu() || number == -1) return {};
  CATENA_CHECK(ValueError, number > 0, "dlpack_stream: stream number ", number, " on ", device,
               "; expected -1 (no ordering), 1 (legacy default), 2 (per-thread default) or the "
               "address of a cudaStream_t");
  return Stream::wrap(device, reinterpret_cast<void*>(static_cast<intptr_t>(number)));
}

}  // namespace catena
