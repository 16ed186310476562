#include "catena/testing.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <sstream>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/core/config.h"
#include "catena/core/plugin.h"
#include "catena/testing_markers.h"

namespace catena {
namespace testing {

std::vector<Device> devices() {
  std::vector<Device> list;
  if (const char* text = std::getenv("CATENA_TEST_DEVICES")) {
    std::istringstream names(text);
    for (std::string name; std::getline(names, name, ',');) list.emplace_back(name);
  } else {
    list = {cpu(0), cpu(1)};
    if (device_count(DeviceType::kCuda) > 0) list.push_back(cuda_device(0));
  }
  for (Device d : list) require_device(d);
  return list;
}

Array random_array(const Shape& shape, double low, double high, Dtype dtype, Device device,
                   uint64_t seed) {
  RandomState state(seed);
  const Array values = state.uniform(shape, low, high, {Dtype::kFloat64, cpu(0)});
  if (dtype == Dtype::kBool) return greater(values, (low + high) / 2).copy_to(device);
  return (is_float(dtype) ? values : floor(values)).astype(dtype).copy_to(device);
}

Array counting_array(const Shape& shape, Dtype dtype, Device device) {
  return arange(element_count(shape), {Dtype::kFloat64, cpu(0)})
      .astype(dtype)
      .reshape(shape)
      .copy_to(device);
}

namespace {

// first, first + step, ... in C order.
Array shaped(const Shape& shape, double first, double step, Dtype dtype, Device device) {
  const Array values = add(multiply(counting_array(shape), step), first);
  if (dtype == Dtype::kBool) return equal(remainder(values, 2), 0).copy_to(device);
  return values.astype(dtype).copy_to(device);
}

}  // namespace

Array shaped_arange(const Shape& shape, Dtype dtype, Device device) {
  return shaped(shape, 1, 1, dtype, device);
}
Array shaped_reverse_arange(const Shape& shape, Dtype dtype, Device device) {
  return shaped(shape, static_cast<double>(element_count(shape)), -1, dtype, device);
}
Array shaped_random(const Shape& shape, Dtype dtype, Device device, double scale, uint64_t seed) {
  return random_array(shape, 0, scale, dtype, device, seed);
}

Array padded(const Array& a) {
  Shape larger = a.shape();
  std::vector<Index> every_second;
  for (int64_t& extent : larger) {
    extent = 2 * extent + 1;
    every_second.emplace_back(Slice(1, none, 2));
  }
  const Array store = zeros(larger, {a.dtype(), a.device()});
  const Array view = store.at(std::span<const Index>(every_second));
  view.assign(a);
  return view;
}

Array transposed_layout(const Array& a) {
  return a.ndim() < 2 ? padded(a) : a.transpose().copy().transpose();
}

Array reversed_layout(const Array& a) { return a.ndim() == 0 ? padded(a) : flip(flip(a).copy()); }

std::string difference(const Array& x, const Array& y, double atol, double rtol) {
  if (x.dtype() != y.dtype()) return message("dtypes differ: ", x.dtype(), " and ", y.dtype());
  if (x.shape() != y.shape()) return message("shapes differ: ", x.shape(), " and ", y.shape());
  try {
    assert_allclose(x, y, atol, rtol);
  } catch (const ValueError& e) {
    return e.what();
  }
  return {};
}

}  // namespace testing

std::string missing_test_gpus(int count) {
  if (count <= 0) return {};
  if (const char* text = std::getenv("CATENA_TEST_DEVICES")) {
    if (!std::strstr(text, "cuda"))
      return message("needs ", count, " GPU(s), CATENA_TEST_DEVICES=", text, " names none");
  }
  const int present = device_count(DeviceType::kCuda);
  if (present >= count) return {};
  return message("needs ", count, " GPU(s), this machine has ", present, present == 0 ? ": " : "",
                 present == 0 ? unavailable_reason(DeviceType::kCuda) : "");
}

std::string missing_test_cudnn() {
  if (const std::string missing = missing_test_gpus(); !missing.empty()) return missing;
  if (config().use_cudnn == UseCudnn::kNever) return "needs cuDNN, which the settings leave out";
  const std::string error = load_plugin("cudnn");
  return error.empty() ? error : "needs cuDNN: " + error;
}

void PrintTo(const Array& a, std::ostream* os) {
  if (!a.defined())
    *os << "undefined array";
  else
    *os << a.repr() << " on " << a.device().name();
}
void PrintTo(const Variable& v, std::ostream* os) {
  *os << "variable ";
  if (!v.defined())
    *os << "(null)";
  else
    PrintTo(v.data(), os);
}
void PrintTo(const Dims& dims, std::ostream* os) { *os << to_string(dims); }
void PrintTo(Device device, std::ostream* os) { *os << device.name(); }
void PrintTo(Dtype dtype, std::ostream* os) { *os << name(dtype); }

}  // namespace catena
