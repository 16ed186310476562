// DLPack: arrays go to other libraries of the process (PyTorch, CuPy, NumPy, JAX) and come from
// them without a copy.
//
// The structs are those of DLPack 1.0 (dmlc.github.io/dlpack), a stable binary interface. They have
// a separate namespace, so that a program may include the original header as well: cast the
// pointers with reinterpret_cast.
#pragma once

#include <cstdint>
#include <optional>

#include "catena/array/array.h"

namespace catena::dlpack {

// DLPack's kinds of devices, of which we use these.
enum DLDeviceType : int32_t {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,      // pinned host memory
  kDLCUDAManaged = 13,  // accepted as memory of the GPU that is named
};

// A kind and a number.
struct DLDevice {
  int32_t device_type;  // a DLDeviceType; other libraries may send values that are not listed here
  int32_t device_id;
};

// DLPack's kinds of elements.
enum DLDataTypeCode : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLBool = 6,
};

// A kind, the bits of an element, and the elements in a vector (1 here).
struct DLDataType {
  uint8_t code;  // a DLDataTypeCode
  uint8_t bits;
  uint16_t lanes;
};

// The description of the memory; it owns nothing.
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: C order without gaps
  uint64_t byte_offset;
};

// Whoever holds one calls deleter(self) once, when the memory is not needed any more.
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

// The version of the interface by which a tensor was made.
struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

// Flags of a versioned tensor.
inline constexpr uint64_t kReadOnly = 1;  // flag bits
inline constexpr uint64_t kIsCopied = 2;

// The form since version 1.0. Fields before `flags` keep their place in every later version.
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64);
static_assert(sizeof(DLManagedTensorVersioned) == 80);

}  // namespace catena::dlpack

namespace catena {

// Lends an array: same memory, dtype, shape and strides (0 included). The tensor
// keeps the memory until its deleter is called, which any thread may do. What others write into it
// is not seen by autograd: call Array::note_write after it.
//
// Devices: cpu:n is kDLCPU, pinned memory on it kDLCUDAHost (both with index 0), cuda:n kDLCUDA.
// Streams: the call waits for nothing on the host. With `consumer`, the stream on which the tensor
// will be used, that stream waits for what the array's current stream holds now, and the memory is
// not reused before the work that consumer holds when the last owner goes, even where the stream
// has been destroyed by then. Without it the caller orders the streams, as every caller does for
// CPU arrays.
//
// ValueError when a stride is not a multiple of the item size, as in views of other dtypes, or
// negative, which importers do not check for: copy() first; to_dlpack also when the array is
// read-only, which this old form cannot say: use the versioned form.
dlpack::DLManagedTensor* to_dlpack(const Array& a, const std::optional<Stream>& consumer = {});
dlpack::DLManagedTensorVersioned* to_dlpack_versioned(const Array& a,
                                                      const std::optional<Stream>& consumer = {});

// Borrows a tensor: a view of its memory on the same device (kDLCPU and kDLCUDAHost: cpu:0). The
// call takes the tensor over; its deleter runs when the last view goes, on that thread. If it
// throws, the tensor is still the caller's. A tensor flagged read-only gives an array that refuses
// writes (Array::is_writable). Elements of bool must be 0 or 1, as for Array::view.
//
// Streams: with `producer`, the stream on which the tensor was computed, the device's current
// stream waits for it, and it waits for the streams current at the import and at the release before
// the deleter is called: no wait of the host. Keep it alive until then. Without it the data must be
// ready on the device's current stream (pass that stream to the producer: `__dlpack__(stream=...)`
// in Python), and the release of GPU memory waits on the host for those two streams. Work on
// further streams is the caller's to wait for.
//
// Errors: DtypeError (complex, opaque, sub-byte and vector types), DeviceError (devices other than
// those above, a GPU that is not there), ShapeError (more than kMaxDims dimensions, negative
// extents, sizes beyond 2^63 bytes), ValueError (another major version, no memory for elements,
// misaligned memory).
Array from_dlpack(dlpack::DLManagedTensor* tensor, const std::optional<Stream>& producer = {});
Array from_dlpack(dlpack::DLManagedTensorVersioned* tensor,
                  const std::optional<Stream>& producer = {});

// The stream that Python's `__dlpack__(stream=number)` means for a device: nothing for -1 (do not
// order) and for CPU devices; on GPUs 1 is the legacy default stream, 2 the per-thread default
// stream, anything larger a cudaStream_t. ValueError for 0 and other negative numbers.
std::optional<Stream> dlpack_stream(Device device, int64_t number);

// The device as Python's `__dlpack_device__()` gives it.
dlpack::DLDevice dlpack_device(const Array& a);

}  // namespace catena
