// Element-wise kernels in every layout: the library's own planning and arguments, the kernel texts
// run by the host, against a plain loop.
#include "backends/cuda/jit/map_launch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/streams.h"
#include "catena/array/creation.h"
#include "device/map_case.h"

// The launch and the device, replaced for the test.
namespace catena::gpu {
const DeviceInfo& device_info(int) {
  static DeviceInfo info;
  info.multiprocessors = 2, info.major = 9;
  return info;
}
cudaStream_t launch_stream(Device) { return nullptr; }
}  // namespace catena::gpu

namespace catena::jit {
namespace {
emulated::LaunchMap g_emulated = nullptr;
int g_last_kernel = -1, g_launches = 0;
}  // namespace
void launch_program(Program&, int index, int, uint64_t blocks, unsigned, unsigned threads,
                    void** arguments, cudaStream_t) {
  g_last_kernel = index;
  ++g_launches;
  g_emulated(index, blocks, threads, arguments[0]);
}

namespace {

template <class T>
Array numbers(const Shape& shape) {
  std::vector<T> values(size_t(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = T(i % 101 + 1);
  return array(std::span<const T>(values), shape);
}

Program g_program;

MapLaunch call_of(std::initializer_list<MapOperand> operands, emulated::LaunchMap program) {
  g_emulated = program;
  g_launches = 0;
  MapLaunch call{&g_program, static_cast<int>(operands.size()), {}};
  std::copy(operands.begin(), operands.end(), call.operand);
  return call;
}

// The elements of any layout in C order, by a plain walk.
template <class T>
std::vector<T> elements(const Array& a) {
  std::vector<T> result;
  std::vector<int64_t> at(size_t(a.ndim()), 0);
  for (int64_t i = 0; i < a.size(); ++i) {
    const char* p = static_cast<const char*>(a.raw_data());
    for (int d = 0; d < a.ndim(); ++d) p += at[size_t(d)] * a.strides()[size_t(d)];
    result.push_back(*reinterpret_cast<const T*>(p));
    for (int d = a.ndim() - 1; d >= 0 && ++at[size_t(d)] == a.shape()[size_t(d)]; --d)
      at[size_t(d)] = 0;
  }
  return result;
}

// out = a + b with a guard value in the memory around out.
template <class T>
void check_add(const Array& a, const Array& b, const Array& out, emulated::LaunchMap program,
               int kernel) {
  const int item = static_cast<int>(sizeof(T));
  launch_map(call_of({{&out, 0, item}, {&a, 0, item}, {&b, 0, item}}, program));
  const std::vector<T> x = elements<T>(a), y = elements<T>(b), z = elements<T>(out);
  for (size_t i = 0; i < z.size(); ++i)
    ASSERT_EQ(z[i], T(x[i] + y[i])) << "element " << i << " of " << out.shape().ndim() << "-d";
  EXPECT_EQ(g_last_kernel, kernel);
}

Array floats(const Shape& shape) { return numbers<float>(shape); }
Array like(const Shape& shape) { return zeros(shape, dtype::float32); }

TEST(MapLaunch, FlatOfEverySize) {
  for (const int64_t n : {1, 3, 4, 127, 128, 1023, 1024, 1025, 5000}) {
    check_add<float>(floats({n}), floats({n}), like({n}), emulated::add_float32, kFlatKernel);
  }
}

TEST(MapLaunch, FlatMisaligned) {
  for (const int64_t shift : {1, 2, 3}) {
    const Slice part(shift, shift + 3000);
    check_add<float>(floats({4000})(part), floats({4000})(part), like({4000})(part),
                     emulated::add_float32, kFlatKernel);
    check_add<float>(floats({4000})(part), floats({3000}), like({3000}), emulated::add_float32,
                     kFlatKernel);
    const Array out = like({3000 + shift});
    check_add<float>(floats({3000}), floats({3000}), out(Slice(shift, none)), emulated::add_float32,
                     kFlatKernel);
  }
}

TEST(MapLaunch, FlatLeavesNeighboursAlone) {
  const Array out = like({3010});
  check_add<float>(floats({3000}), floats({3000}), out(Slice(5, 3005)), emulated::add_float32,
                   kFlatKernel);
  const std::vector<float> all = elements<float>(out);
  for (const size_t i : {0, 1, 2, 3, 4, 3005, 3006, 3007, 3008, 3009}) EXPECT_EQ(all[i], 0) << i;
}

TEST(MapLaunch, FlatInt8UsesWideVectors) {
  for (const int64_t n : {15, 16, 2048, 2049, 10000}) {
    check_add<int8_t>(numbers<int8_t>({n}), numbers<int8_t>({n}), zeros({n}, dtype::int8),
                      emulated::add_int8, kFlatKernel);
  }
}

TEST(MapLaunch, SingleDeviceValueAndHostNumber) {
  const Array a = floats({1500}), one = floats({7})[3];
  check_add<float>(a, one.broadcast_to({1500}), like({1500}), emulated::add_float32, kFlatKernel);
  const Array out = like({1500});
  const float number = 2.5f;
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(number));
  launch_map(call_of({{&out, 0, 4}, {&a, 0, 4}, {nullptr, bits, 4}}, emulated::add_float32));
  const std::vector<float> x = elements<float>(a), z = elements<float>(out);
  for (size_t i = 0; i < z.size(); ++i) ASSERT_EQ(z[i], x[i] + 2.5f);
}

TEST(MapLaunch, RowAndColumnBroadcast) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{100, 1000},
                                      {7, 4},
                                      {300, 10},
                                      {5, 4096},
                                      {1000, 12},
                                      {33, 515}}) {
    const Shape shape{rows, columns};
    check_add<float>(floats(shape), floats({columns}).broadcast_to(shape), like(shape),
                     emulated::add_float32, kRowsKernel);
    check_add<float>(floats({rows, 1}).broadcast_to(shape), floats(shape), like(shape),
                     emulated::add_float32, kRowsKernel);
    check_add<float>(floats({columns}).broadcast_to(shape), floats({rows, 1}).broadcast_to(shape),
                     like(shape), emulated::add_float32, kRowsKernel);
  }
}

TEST(MapLaunch, PaddedRowsAndOuterDimensions) {
  const Array a = floats({20, 30, 64})(ellipsis, Slice(0, 48)),
              b = floats({20, 30, 64})(ellipsis, Slice(3, 51));
  check_add<float>(a, b, like({20, 30, 48}), emulated::add_float32, kRowsKernel);
  check_add<float>(a, floats({20, 1, 48}).broadcast_to({20, 30, 48}), like({20, 30, 48}),
                   emulated::add_float32, kRowsKernel);
  // Rows that are aligned, of columns that do not fill vectors.
  const Slice columns(0, 45);
  const Array out = like({20, 64});
  check_add<float>(floats({20, 64})(ellipsis, columns), floats({20, 64})(ellipsis, columns),
                   out(ellipsis, columns), emulated::add_float32, kRowsKernel);
  for (const float padding : elements<float>(out(ellipsis, Slice(45, none)))) EXPECT_EQ(padding, 0);
  const Array c = floats({3, 4, 5, 6, 8})(Slice(0, none, 2), Slice(1, 3), ellipsis);
  check_add<float>(c, floats({5, 1, 8}).broadcast_to(c.shape()), like(c.shape()),
                   emulated::add_float32, kRowsKernel);
}

TEST(MapLaunch, TransposedInputsAreStaged) {
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{64, 64}, {100, 70}, {16, 200}, {129, 33}}) {
    const Shape shape{rows, columns};
    check_add<float>(floats({columns, rows}).T(), floats(shape), like(shape), emulated::add_float32,
                     kTiledKernel);
    check_add<float>(floats({columns, rows}).T(), floats({columns, rows}).T(), like(shape),
                     emulated::add_float32, kTiledKernel);
    check_add<float>(floats({columns}).broadcast_to(shape), floats({columns, rows}).T(),
                     like(shape), emulated::add_float32, kTiledKernel);
  }
  const Array a = floats({6, 40, 50}).transpose({0, 2, 1});
  check_add<float>(a, floats({6, 50, 40}), like({6, 50, 40}), emulated::add_float32, kTiledKernel);
}

TEST(MapLaunch, TransposedInputsOfBytesAreStagedInTheirTiles) {
  const Shape shape{129, 200};
  check_add<int8_t>(numbers<int8_t>({200, 129}).T(), numbers<int8_t>(shape),
                    zeros(shape, dtype::int8), emulated::add_int8, kTiledKernel);
}

TEST(MapLaunch, ResultsWithGapsAreStrided) {
  check_add<float>(floats({48, 40}).T(), floats({40, 48}),
                   like({40, 96})(ellipsis, Slice(0, none, 2)), emulated::add_float32,
                   kStridedKernel);
}

TEST(MapLaunch, TransposeCopyOfSmallItems) {
  const Array a = numbers<uint16_t>({150, 90}), out = zeros({90, 150}, dtype::uint16), t = a.T();
  launch_map(call_of({{&out, 0, 2}, {&t, 0, 2}}, emulated::copy_uint16));
  EXPECT_EQ(g_last_kernel, kTiledKernel);
  EXPECT_EQ(elements<uint16_t>(out), elements<uint16_t>(t));
}

TEST(MapLaunch, FortranOrderOfAllIsFlat) {
  check_add<float>(floats({30, 40}).T(), floats({30, 40}).T(), like({30, 40}).T(),
                   emulated::add_float32, kFlatKernel);
}

TEST(MapLaunch, StridedAnything) {
  const Array a = floats({60})(Slice(0, none, 2)), b = floats({30})(Slice(none, none, -1));
  check_add<float>(a, b, like({30}), emulated::add_float32, kStridedKernel);
  check_add<float>(floats({30}), floats({30}), like({90})(Slice(1, none, 3)), emulated::add_float32,
                   kStridedKernel);
  check_add<float>(floats({5, 6, 7}).transpose({2, 0, 1}), floats({7, 5, 6}), like({7, 5, 6}),
                   emulated::add_float32, kStridedKernel);
}

TEST(MapLaunch, MoreDimensionsThanAKernelTakes) {
  const Shape shape{2, 2, 2, 2, 2, 2, 2, 2, 2, 3};
  Axes reversed;
  for (int64_t d = 9; d >= 0; --d) reversed.push_back(d);
  Shape back(shape.rbegin(), shape.rend());
  check_add<float>(floats(back).transpose(reversed), floats(shape), like(shape),
                   emulated::add_float32, kStridedKernel);
  EXPECT_GT(g_launches, 1);
}

TEST(MapLaunch, MixedDtypes) {
  const Shape shape{70, 50};
  std::vector<uint8_t> conditions(70 * 50);
  for (size_t i = 0; i < conditions.size(); ++i) conditions[i] = i % 3 == 0;
  const Array c = array(std::span<const uint8_t>(conditions), shape).view(dtype::bool_);
  const Array x = numbers<float>({50, 70}).T(), y = numbers<double>({50}).broadcast_to(shape),
              out = zeros(shape, dtype::float64);
  for (const Array& second : {x, numbers<float>(shape)}) {
    launch_map(
        call_of({{&out, 0, 8}, {&c, 0, 1}, {&second, 0, 4}, {&y, 0, 8}}, emulated::where_float64));
    const auto cv = elements<bool>(c);
    const auto xv = elements<float>(second);
    const auto yv = elements<double>(y), zv = elements<double>(out);
    for (size_t i = 0; i < zv.size(); ++i) ASSERT_EQ(zv[i], cv[i] ? double(xv[i]) : yv[i]) << i;
  }
}

// (a + b) * c and double(d) > e + f in one launch, for inputs of any layout.
void check_fused(const Array& a, const Array& b, const Array& c, const Array& d, const Array& e,
                 int kernel) {
  const Shape& shape = a.shape();
  const Array sums = zeros(shape, dtype::float32), mask = zeros(shape, dtype::bool_);
  const float f = 40;
  const double wide = 40;
  uint64_t bits = 0;
  std::memcpy(&bits, &wide, sizeof wide);
  MapLaunch call = call_of({{&sums, 0, 4},
                            {&mask, 0, 1},
                            {&a, 0, 4},
                            {&b, 0, 4},
                            {&c, 0, 4},
                            {&d, 0, 4},
                            {&e, 0, 8},
                            {nullptr, bits, 8}},
                           emulated::fused_mixed);
  call.outputs = 2;
  launch_map(call);
  EXPECT_EQ(g_last_kernel, kernel);
  const auto av = elements<float>(a), bv = elements<float>(b), cv = elements<float>(c),
             sv = elements<float>(sums);
  const auto dv = elements<int32_t>(d);
  const auto ev = elements<double>(e);
  const auto mv = elements<bool>(mask);
  for (size_t i = 0; i < sv.size(); ++i) {
    ASSERT_EQ(sv[i], (av[i] + bv[i]) * cv[i]) << i;
    ASSERT_EQ(mv[i], dv[i] > ev[i] + f) << i;
  }
}

TEST(MapLaunch, FusedChainsWithTwoResults) {
  const Shape shape{70, 50};
  const Array x = floats(shape), y = floats(shape), i = numbers<int32_t>(shape),
              d = numbers<double>(shape);
  check_fused(x, y, y, i, d, kFlatKernel);
  check_fused(x, floats({50}).broadcast_to(shape), y, i, numbers<double>({50}).broadcast_to(shape),
              kRowsKernel);
  check_fused(x, floats({50, 70}).T(), y, numbers<int32_t>({50, 70}).T(), d, kTiledKernel);
  check_fused(floats({70, 100})(ellipsis, Slice(0, none, 2)), y, x, i, d, kStridedKernel);
  for (const int64_t n : {1, 2, 127, 4099}) {
    check_fused(floats({n}), floats({n}), floats({1}).broadcast_to({n}), numbers<int32_t>({n}),
                numbers<double>({n}), kFlatKernel);
  }
}

}  // namespace
}  // namespace catena::jit
