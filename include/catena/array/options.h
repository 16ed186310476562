// ArrayOptions: the dtype and device of a new array, the last argument of whatever makes one.
#pragma once

#include <concepts>
#include <optional>
#include <string_view>

#include "catena/core/device.h"
#include "catena/core/dtype.h"

namespace catena {

// Either may be left out; each function documents its default. An argument of this type accepts:
//   dtype::float32             a dtype
//   "cuda:0", x.device()       a device
//   {dtype::float32, "cuda:0"} both
struct ArrayOptions {
  std::optional<Dtype> dtype;    // of the elements
  std::optional<Device> device;  // where they are

  ArrayOptions() = default;
  ArrayOptions(Dtype d) : dtype(d) {}
  ArrayOptions(Device d) : device(d) {}
  ArrayOptions(Dtype d, Device on) : dtype(d), device(on) {}
  // A device that may be left out. A template, for a name would fit this and the one above.
  template <std::same_as<std::optional<Device>> T>
  ArrayOptions(Dtype d, const T& on) : dtype(d), device(on) {}
  ArrayOptions(std::optional<Device> on) : device(on) {}
  // A device by name, zeros({2}, "cpu:1").
  template <class T>
  requires std::convertible_to<const T&, std::string_view> ArrayOptions(const T& device_name)
      : device(Device(std::string_view(device_name))) {}

  // The device, or the current one.
  Device device_or_current() const { return device ? *device : current_device(); }
};

}  // namespace catena
