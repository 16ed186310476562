// DLPack: what goes out says the truth about the memory, what comes in is the same memory, and
// every deleter runs exactly once.
#include "catena/array/dlpack.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/testing_markers.h"

namespace catena {
namespace {

using namespace dlpack;

// A tensor of another library: int32 0, 1, 2, ... whose deleter counts.
template <class Managed = DLManagedTensor>
struct Foreign {
  std::vector<int32_t> values = std::vector<int32_t>(24);
  std::vector<int64_t> shape, strides;
  int released = 0;
  Managed tensor{};

  Foreign(std::vector<int64_t> s, std::vector<int64_t> t) : shape(s), strides(t) {
    std::iota(values.begin(), values.end(), 0);
    DLTensor& dl = tensor.dl_tensor;
    dl.data = values.data();
    dl.device = {kDLCPU, 0};
    dl.ndim = static_cast<int32_t>(shape.size());
    dl.dtype = {kDLInt, 32, 1};
    dl.shape = shape.data();
    dl.strides = strides.empty() ? nullptr : strides.data();
    tensor.manager_ctx = this;
    tensor.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->released; };
  }
  std::vector<int32_t> read() { return from_dlpack(&tensor).template to_vector<int32_t>(); }
  // The error that the import gives; the tensor must stay the caller's.
  template <class E>
  std::string refused() {
    try {
      from_dlpack(&tensor);
    } catch (const E& error) {
      EXPECT_EQ(released, 0);
      return error.what();
    }
    return "not refused";
  }
};

class DlpackDtype : public ::testing::TestWithParam<int> {
 protected:
  Dtype dtype() const { return static_cast<Dtype>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Dlpack, DlpackDtype, ::testing::Range(0, kDtypeCount),
                         [](const auto& info) {
                           return std::string(name(static_cast<Dtype>(info.param)));
                         });

TEST_P(DlpackDtype, RoundTripIsTheSameMemory) {
  const Array a = arange(12).astype(dtype()).reshape({3, 4});
  for (const Array& view :
       {a, a.T(), a(Slice(none, none, 2), Slice(1, none, 2)), a(2, 1), a(Slice(1, 1))}) {
    DLManagedTensor* tensor = to_dlpack(view);
    EXPECT_EQ(tensor->dl_tensor.data, view.raw_data());
    EXPECT_EQ(tensor->dl_tensor.dtype.bits, 8 * itemsize(dtype()));
    const Array back = from_dlpack(tensor);
    EXPECT_EQ(back.raw_data(), view.raw_data());
    EXPECT_EQ(back.dtype(), dtype());
    EXPECT_EQ(back.shape(), view.shape());
    EXPECT_EQ(back.to_vector<double>(), view.to_vector<double>());
    const Array again = from_dlpack(to_dlpack_versioned(view));
    EXPECT_EQ(again.raw_data(), view.raw_data());
    EXPECT_TRUE(again.is_writable());
  }
}

TEST_P(DlpackDtype, BroadcastViewsAreLentForReading) {
  const Array view = arange(4).astype(dtype()).broadcast_to({5, 4});
  EXPECT_THROW(to_dlpack(view), ValueError);
  const Array back = from_dlpack(to_dlpack_versioned(view));
  EXPECT_EQ(back.raw_data(), view.raw_data());
  EXPECT_EQ(back.to_vector<double>(), view.to_vector<double>());
  EXPECT_FALSE(back.is_writable());
}

TEST(DlpackTest, TypeCodesAreThoseOfTheStandard) {
  const std::pair<Dtype, DLDataType> expected[] = {
      {Dtype::kBool, {6, 8, 1}},      {Dtype::kInt8, {0, 8, 1}},     {Dtype::kInt64, {0, 64, 1}},
      {Dtype::kUInt16, {1, 16, 1}},   {Dtype::kUInt32, {1, 32, 1}},  {Dtype::kFloat16, {2, 16, 1}},
      {Dtype::kBFloat16, {4, 16, 1}}, {Dtype::kFloat32, {2, 32, 1}}, {Dtype::kFloat64, {2, 64, 1}}};
  for (const auto& [dtype, type] : expected) {
    DLManagedTensor* tensor = to_dlpack(empty({2}, dtype));
    EXPECT_EQ(tensor->dl_tensor.dtype.code, type.code) << dtype;
    EXPECT_EQ(tensor->dl_tensor.dtype.bits, type.bits) << dtype;
    EXPECT_EQ(tensor->dl_tensor.dtype.lanes, 1) << dtype;
    tensor->deleter(tensor);
  }
}

TEST(DlpackTest, StridesAreElements) {
  const Array a = arange(24).reshape({4, 6});
  DLManagedTensor* tensor = to_dlpack(a(Slice(1, none, 2), Slice(1, none, 3)));
  const DLTensor& t = tensor->dl_tensor;
  EXPECT_EQ(t.ndim, 2);
  EXPECT_EQ(t.shape[0], 2);
  EXPECT_EQ(t.strides[0], 12);
  EXPECT_EQ(t.strides[1], 3);
  EXPECT_EQ(static_cast<int64_t*>(t.data)[t.byte_offset / 8], 7);
  EXPECT_EQ(t.device.device_type, kDLCPU);
  EXPECT_EQ(t.device.device_id, 0);
  tensor->deleter(tensor);
}

TEST(DlpackTest, ALentArrayKeepsItsMemory) {
  DLManagedTensor* tensor = nullptr;
  {
    const Array a = arange(1000);
    tensor = to_dlpack(a(Slice(1, 4)));  // a view: the storage must live on
  }
  const Array noise = full({1000}, -1);  // would take the freed block
  EXPECT_EQ(*static_cast<int64_t*>(tensor->dl_tensor.data), 1);
  tensor->deleter(tensor);
}

TEST(DlpackTest, ADeleterRunsOnceAfterTheLastView) {
  Foreign<> f({2, 3}, {});
  Array row;
  {
    const Array a = from_dlpack(&f.tensor);
    row = a[1];
    a(0, 0).fill(70);
  }
  EXPECT_EQ(f.values[0], 70);
  EXPECT_EQ(f.released, 0);
  EXPECT_EQ(row.to_vector<int32_t>(), (std::vector<int32_t>{3, 4, 5}));
  row = Array();
  EXPECT_EQ(f.released, 1);
}

TEST(DlpackTest, NoDeleterIsAllowed) {
  Foreign<> f({2}, {});
  f.tensor.deleter = nullptr;
  EXPECT_EQ(f.read(), (std::vector<int32_t>{0, 1}));
}

TEST(DlpackTest, StridesAndOffsetsComeIn) {
  {
    Foreign<> f({2, 3}, {1, 2});  // Fortran order
    EXPECT_EQ(f.read(), (std::vector<int32_t>{0, 2, 4, 1, 3, 5}));
  }
  {
    Foreign<> f({3}, {-2});
    f.tensor.dl_tensor.byte_offset = 5 * 4;
    EXPECT_EQ(f.read(), (std::vector<int32_t>{5, 3, 1}));
    EXPECT_EQ(f.released, 1);
  }
  {
    Foreign<> f({2, 2}, {0, 1});
    EXPECT_EQ(f.read(), (std::vector<int32_t>{0, 1, 0, 1}));
  }
  {
    Foreign<> f({}, {});
    EXPECT_EQ(f.read(), (std::vector<int32_t>{0}));
  }
  {
    Foreign<> f({0, 5}, {});
    f.tensor.dl_tensor.data = nullptr;
    EXPECT_EQ(from_dlpack(&f.tensor).shape(), (Shape{0, 5}));
    EXPECT_EQ(f.released, 1);
  }
}

TEST(DlpackTest, ReadOnlyTensorsRefuseWrites) {
  Foreign<DLManagedTensorVersioned> f({4}, {});
  f.tensor.version = {1, 7};
  f.tensor.flags = kReadOnly;
  {
    const Array a = from_dlpack(&f.tensor), ones_like_a = ones({4}, dtype::int32);
    EXPECT_FALSE(a.is_writable());
    EXPECT_FALSE(a(Slice(1, 3)).is_writable());
    EXPECT_THROW(a.fill(1), ValueError);
    EXPECT_THROW(a[0].assign(ones_like_a[0]), ValueError);
    EXPECT_THROW(add(ones_like_a, ones_like_a, a), ValueError);
    EXPECT_THROW(a += 1, ValueError);
    EXPECT_THROW(a.span<int32_t>(), ValueError);
    EXPECT_EQ(a.span<const int32_t>()[3], 3);
    EXPECT_EQ((a + 1).to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 3, 4}));
    EXPECT_TRUE(a.copy().is_writable());
    EXPECT_THROW(to_dlpack(a), ValueError);
    DLManagedTensorVersioned* out = to_dlpack_versioned(a);
    EXPECT_EQ(out->version.major, 1u);
    EXPECT_EQ(out->flags, kReadOnly);
    out->deleter(out);
    EXPECT_EQ(f.values[0], 0);
  }
  EXPECT_EQ(f.released, 1);
}

TEST(DlpackTest, WhatCannotComeInStaysTheCallers) {
  const auto contains = [](const std::string& text, const char* part) {
    expect_contains(text, {part});
  };
  {
    Foreign<> f({2}, {});
    f.tensor.dl_tensor.dtype = {5, 64, 1};
    contains(f.refused<DtypeError>(), "complex (code 5) with 64 bits");
    f.tensor.dl_tensor.dtype = {kDLInt, 4, 1};
    contains(f.refused<DtypeError>(), "with 4 bits");
    f.tensor.dl_tensor.dtype = {kDLFloat, 32, 4};
    contains(f.refused<DtypeError>(), "4 lanes");
    f.tensor.dl_tensor.dtype = {99, 8, 1};
    contains(f.refused<DtypeError>(), "unknown type (code 99)");
  }
  {
    Foreign<> f({2}, {});
    f.tensor.dl_tensor.device = {10, 0};
    contains(f.refused<DeviceError>(), "device type 10");
    f.tensor.dl_tensor.device = {kDLCUDA, 63};
    contains(f.refused<DeviceError>(), "cuda:63");
    f.tensor.dl_tensor.device = {kDLCUDA, -1};
    contains(f.refused<DeviceError>(), "-1");
  }
  {
    Foreign<> f(std::vector<int64_t>(kMaxDims + 1, 1), {});
    contains(f.refused<ShapeError>(), "25 dimensions");
    f.tensor.dl_tensor.ndim = -1;
    contains(f.refused<ShapeError>(), "-1 dimensions");
    f.tensor.dl_tensor.ndim = 1;
    f.tensor.dl_tensor.shape = nullptr;
    contains(f.refused<ValueError>(), "without a shape");
  }
  {
    Foreign<> f({2, -1}, {});
    contains(f.refused<ShapeError>(), "-1");
    f.shape = {int64_t{1} << 40, int64_t{1} << 40};
    contains(f.refused<ShapeError>(), "1099511627776");
  }
  {
    Foreign<> f({3}, {int64_t{1} << 61});
    contains(f.refused<ShapeError>(), "2^63");
    f.strides[0] = int64_t{1} << 62;
    contains(f.refused<ShapeError>(), "stride 4611686018427387904");
  }
  {
    Foreign<> f({3}, {});
    f.tensor.dl_tensor.byte_offset = 2;
    contains(f.refused<ValueError>(), "aligned");
    f.tensor.dl_tensor.data = nullptr;
    contains(f.refused<ValueError>(), "without memory");
  }
  {
    Foreign<DLManagedTensorVersioned> f({3}, {});
    f.tensor.version = {2, 1};
    contains(f.refused<ValueError>(), "version 2.1");
  }
  EXPECT_THROW(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), ValueError);
}

TEST(DlpackTest, OddStridesCannotGoOut) {
  const Array bytes = zeros({12}, dtype::uint8);
  const Array odd = Array::from_storage(bytes.storage(), 0, {2}, {6}, Dtype::kInt32);
  EXPECT_THROW(to_dlpack(odd), ValueError);
  EXPECT_THROW(to_dlpack_versioned(Array()), ValueError);
  const Array reversed = arange(3)[Slice(none, none, -1)];
  EXPECT_THROW(to_dlpack(reversed), ValueError);
  EXPECT_THROW(to_dlpack_versioned(reversed), ValueError);
  DLManagedTensor* one = to_dlpack(odd(Slice(0, 1)));  // not stepped along: the stride says nothing
  EXPECT_EQ(one->dl_tensor.strides[0], 1);
  one->deleter(one);
}

// Two imports have storages of their own, but the memory is one.
TEST(DlpackTest, OverlapIsSeenAcrossImports) {
  const Array a = arange(6);
  const Array b = from_dlpack(to_dlpack(a));
  EXPECT_TRUE(a.shares_memory_with(b));
  EXPECT_FALSE(a(Slice(0, 3)).shares_memory_with(b(Slice(3, 6))));
  add(a(Slice(0, 5)), 100, b(Slice(1, 6)));
  EXPECT_EQ(a.to_vector<int64_t>(), (std::vector<int64_t>{0, 100, 101, 102, 103, 104}));
}

TEST(DlpackTest, StreamNumbersOfPython) {
  EXPECT_FALSE(dlpack_stream(cpu(0), 1).has_value());
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  EXPECT_FALSE(dlpack_stream(gpu, -1).has_value());
  EXPECT_EQ(dlpack_stream(gpu, 1)->native(), reinterpret_cast<void*>(1));
  EXPECT_EQ(*dlpack_stream(gpu, 2), *dlpack_stream(gpu, 2));
  EXPECT_THROW(dlpack_stream(gpu, 0), ValueError);
  EXPECT_THROW(dlpack_stream(gpu, -2), ValueError);
}

TEST(DlpackTest, GpuArraysAreOrderedOnTheConsumersStream) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const Stream consumer = Stream::create(gpu);
  constexpr int64_t kCount = 1 << 24;
  for (int round = 0; round < 5; ++round) {
    Array a = full({kCount}, 0, {dtype::float32, gpu});
    for (int i = 0; i < 20; ++i) a += 1;
    DLManagedTensor* tensor = to_dlpack(a, consumer);
    EXPECT_EQ(tensor->dl_tensor.device.device_type, kDLCUDA);
    const void* address = a.raw_data();
    a = Array();
    Array doubled;
    {
      const StreamScope scope(consumer);
      const Array b = from_dlpack(tensor);  // ready on this stream by the export
      EXPECT_EQ(b.raw_data(), address);
      doubled = b * 2;
    }
    const Array noise = full({kCount}, -7, {dtype::float32, gpu});  // must not take the block early
    consumer.synchronize();
    EXPECT_EQ(doubled[0].item<float>(), 40);
    EXPECT_EQ(doubled[-1].item<float>(), 40);
  }
}

// Functions of CUDA's driver, for streams that are not catena's.
struct Driver {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(dlsym(library, name));
  }
};

// CuPy destroys its streams with their last name, which may be before the arrays used on them.
TEST(DlpackTest, AConsumersStreamMayBeGoneBeforeTheArray) {
  CATENA_NEEDS_GPU();
  const Driver driver;
  ASSERT_TRUE(driver.library) << dlerror();
  const auto create = driver.function<int(void**, unsigned)>("cuStreamCreate");
  const auto copy = driver.function<int(void*, const void*, size_t, void*)>("cuMemcpyDtoDAsync_v2");
  const auto destroy = driver.function<int(void*)>("cuStreamDestroy_v2");
  const Device gpu = cuda_device(0);
  constexpr size_t kCount = 1 << 24;
  const Array target = zeros({int64_t{kCount}}, {dtype::float32, gpu});
  for (int round = 0; round < 5; ++round) {
    Array a = full({int64_t{kCount}}, round, {dtype::float32, gpu});
    void* stream = nullptr;
    ASSERT_EQ(create(&stream, /*CU_STREAM_NON_BLOCKING*/ 1), 0);
    DLManagedTensor* tensor = to_dlpack(a, Stream::wrap(gpu, stream));
    a = Array();
    for (int i = 0; i < 50; ++i)
      ASSERT_EQ(copy(target.raw_data(), tensor->dl_tensor.data, kCount * sizeof(float), stream), 0);
    ASSERT_EQ(destroy(stream), 0);
    tensor->deleter(tensor);
    const Array noise =
        full({int64_t{kCount}}, -7, {dtype::float32, gpu});  // must not take the block early
    synchronize(gpu);
    EXPECT_EQ(target[0].item<float>(), round);
    EXPECT_EQ(target[-1].item<float>(), round);
  }
}

TEST(DlpackTest, AProducersStreamIsWaitedFor) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const Stream producer = Stream::create(gpu);
  constexpr int64_t kCount = 1 << 24;
  for (int round = 0; round < 5; ++round) {
    DLManagedTensor* tensor = nullptr;
    {
      const StreamScope scope(producer);
      const Array a = full({kCount}, 1, {dtype::float32, gpu});
      for (int i = 0; i < 20; ++i) a += 1;
      tensor = to_dlpack(a);
    }
    const Array b = from_dlpack(tensor, producer);
    EXPECT_EQ((b + 1)[-1].item<float>(), 22);
  }
}

}  // namespace
}  // namespace catena
