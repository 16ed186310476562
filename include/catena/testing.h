// Help for tests of arrays and functions: devices to run on, arrays of every layout, comparisons
// with readable messages, printers for GoogleTest. Gradient checks: autograd/gradient_check.h.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "catena/array/array.h"
#include "catena/autograd/gradient_check.h"
#include "catena/autograd/variable.h"

namespace catena {

namespace testing {

// The devices of CATENA_TEST_DEVICES ("cpu:0,cuda:0"); by default cpu:0, cpu:1, and cuda:0 if there
// is a GPU. An unusable one is a DeviceError.
std::vector<Device> devices();

// Uniform numbers of [low, high), rounded for integer dtypes; equal seeds give equal values on
// every device. bool: true where the number is above the middle.
Array random_array(const Shape& shape, double low, double high, Dtype dtype = Dtype::kFloat64,
                   Device device = cpu(0), uint64_t seed = 0);
// 0, 1, 2, ... in C order.
Array counting_array(const Shape& shape, Dtype dtype = Dtype::kFloat64, Device device = cpu(0));

// The same values in other layouts, none of them contiguous when there are at least two elements:
// every second element of a larger array along each axis, axes stored in reverse order, and with
// negative strides.
Array padded(const Array& a);
Array transposed_layout(const Array& a);
Array reversed_layout(const Array& a);

// Empty when |x - y| <= atol + rtol |y| everywhere (NaN equals NaN) and shapes and dtypes agree;
// else what differs most, and where. Devices may differ.
std::string difference(const Array& x, const Array& y, double atol = 0, double rtol = 0);

}  // namespace testing

// Found by GoogleTest.
void PrintTo(const Array& a, std::ostream* os);
void PrintTo(const Variable& v, std::ostream* os);
void PrintTo(const Dims& dims, std::ostream* os);
void PrintTo(Device device, std::ostream* os);
void PrintTo(Dtype dtype, std::ostream* os);

}  // namespace catena
