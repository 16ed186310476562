// cuDNN's backend descriptors as objects, and its errors as exceptions.
#pragma once

#include <cudnn_graph.h>

#include <span>
#include <utility>

#include "catena/core/dtype.h"

namespace catena::cudnn {

// cuDNN cannot do this: it has no engine for a shape, layout or type. Never leaves the plug-in.
struct NotSupported {
  bool lasting = true;  // see is_lasting()
};

// Whether a call that ends with this status does so in every process with this version of cuDNN,
// driver and GPU. A library that was not found, or missing memory, is another matter.
bool is_lasting(cudnnStatus_t status);

// Throws NotSupported if the status says that cuDNN does not offer what was asked, else DeviceError
// with the call and cuDNN's text.
[[noreturn, gnu::cold]] void fail_cudnn(cudnnStatus_t status, const char* call);

#define CATENA_CUDNN_CHECK(call)                                  \
  do {                                                            \
    const cudnnStatus_t catena_cudnn_status = (call);             \
    if (catena_cudnn_status != CUDNN_STATUS_SUCCESS) [[unlikely]] \
      ::catena::cudnn::fail_cudnn(catena_cudnn_status, #call);    \
  } while (false)

// Owns one backend descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    CATENA_CUDNN_CHECK(cudnnBackendCreateDescriptor(type, &native_));
  }
  Descriptor(Descriptor&& other) noexcept : native_(other.native_) { other.native_ = nullptr; }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(native_, other.native_);
    return *this;
  }
  ~Descriptor() {
    if (native_ != nullptr) cudnnBackendDestroyDescriptor(native_);
  }
  cudnnBackendDescriptor_t native() const { return native_; }
  explicit operator bool() const { return native_ != nullptr; }

  // Attributes; each overload names cuDNN's type of the value.
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values) {
    CATENA_CUDNN_CHECK(cudnnBackendSetAttribute(native_, name, type, count, values));
  }
  void set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
    set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, int64_t value) {
    set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.native_);
  }
  void finalize() { CATENA_CUDNN_CHECK(cudnnBackendFinalize(native_)); }

 private:
  cudnnBackendDescriptor_t native_ = nullptr;
};

// cuDNN's name of a dtype. Throws NotSupported where it has none.
cudnnDataType_t data_type(Dtype dtype);

}  // namespace catena::cudnn
