// Functions of namespace catena::cuda. Devices of the host stand in for GPUs where there are none.
#include "catena/cuda.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/core/config.h"
#include "catena/kernels/convolution.h"
#include "catena/testing.h"
#include "catena/testing_markers.h"

namespace catena {
namespace {

using catena::testing::devices;
using catena::testing::difference;

class CudaModule : public ::testing::TestWithParam<Device> {};

TEST_P(CudaModule, CreatesFloat32) {
  const Device device = GetParam();
  const Array z = cuda::zeros({2, 3}, {Dtype::kFloat32, device});
  EXPECT_EQ(z.dtype(), Dtype::kFloat32);
  EXPECT_EQ(z.device(), device);
  EXPECT_EQ(difference(z, zeros({2, 3}, Dtype::kFloat32)), "");
  EXPECT_EQ(difference(cuda::ones({2}, {Dtype::kInt8, device}), ones({2}, Dtype::kInt8)), "");
  EXPECT_EQ(
      difference(cuda::full({2}, 2.5, {Dtype::kFloat32, device}), full({2}, 2.5, Dtype::kFloat32)),
      "");
  EXPECT_EQ(cuda::empty({4}, {Dtype::kFloat32, device}).shape(), Shape{4});
  // Where no dtype is named.
  EXPECT_EQ(cuda::zeros({2}, device).dtype(), Dtype::kFloat32);
  EXPECT_EQ(cuda::ones({2}, device).dtype(), Dtype::kFloat32);
  EXPECT_EQ(cuda::full({2}, 1.5, device).dtype(), Dtype::kFloat32);
  EXPECT_EQ(cuda::empty({2}, device).dtype(), Dtype::kFloat32);
  const Array like = arange(3);
  EXPECT_EQ(difference(cuda::zeros_like(like, device), zeros({3}, Dtype::kInt64)), "");
  EXPECT_EQ(difference(cuda::ones_like(like, device), ones({3}, Dtype::kInt64)), "");
  EXPECT_EQ(difference(cuda::full_like(like, 7, device), full({3}, 7, Dtype::kInt64)), "");
  EXPECT_EQ(cuda::empty_like(like, device).device(), device);
}

TEST_P(CudaModule, MovesArraysOnce) {
  const Device device = GetParam();
  const Array a = arange(6).reshape({2, 3}), b = arange(4);
  const Array moved = cuda::to_gpu(a, device);
  EXPECT_EQ(moved.device(), device);
  EXPECT_TRUE(cuda::to_gpu(moved, device).same_body(moved));
  EXPECT_EQ(difference(cuda::to_cpu(moved), a), "");
  const std::vector<Array> list = cuda::to_gpu({a, b, Array(), a}, device);
  ASSERT_EQ(list.size(), 4u);
  EXPECT_TRUE(list[0].same_body(list[3])) << "shared elements are copied once";
  EXPECT_FALSE(list[2].defined());
  EXPECT_EQ(list[1].device(), device);
  const std::vector<Array> back = cuda::to_cpu(list);
  EXPECT_TRUE(back[0].same_body(back[3]));
  EXPECT_TRUE(back[1].device().is_cpu());
  EXPECT_EQ(difference(back[1], b), "");
  EXPECT_FALSE(cuda::to_gpu(Array()).defined());
  EXPECT_FALSE(cuda::to_cpu(Array()).defined());
}

TEST_P(CudaModule, MovesArraysOnAStream) {
  const Device device = GetParam();
  const Stream stream = Stream::create(device);
  const Array a = arange(1000).reshape({50, 20});
  const Array moved = cuda::to_gpu(a, device, stream);
  EXPECT_EQ(difference(moved + 1, a + 1), "") << "the current stream has waited";
  EXPECT_EQ(difference(cuda::to_cpu(moved.T(), stream), a.T()), "");
  const Array async = cuda::to_gpu_async(a.T(), stream);
  EXPECT_EQ(async.device(), device);
  current_stream(device).wait(stream);
  EXPECT_EQ(difference(async * 2, a.T() * 2), "");
  const Array host = cuda::to_cpu_async(async, stream);
  stream.synchronize();
  EXPECT_TRUE(host.device().is_cpu());
  EXPECT_EQ(difference(host, a.T()), "");
  if (device != cpu(9)) {
    EXPECT_THROW(cuda::copy(a, {}, device, Stream::create(cpu(9))), DeviceError);
  }
}

TEST_P(CudaModule, CopiesIntoAndAcross) {
  const Device device = GetParam();
  const Array a = arange(6).reshape({2, 3});
  const Array there = cuda::copy(a, {}, device);
  EXPECT_EQ(there.device(), device);
  EXPECT_FALSE(there.shares_memory_with(a));
  const Array same = cuda::copy(there);
  EXPECT_EQ(same.device(), device);
  EXPECT_FALSE(same.same_body(there));
  const Array out = zeros({2, 3}, {Dtype::kInt64, device});
  EXPECT_TRUE(cuda::copy(a, out).same_body(out));
  EXPECT_EQ(difference(out, a), "");
  out.fill(0);
  cuda::copy_async(a, out, device, Stream::create(device));
  EXPECT_EQ(difference(out, a), "");
  EXPECT_THROW(cuda::copy(a, zeros({3, 2}, {Dtype::kInt64, device})), ShapeError);
  EXPECT_THROW(cuda::copy(a, out, cpu(33)), DeviceError);
  EXPECT_THROW(cuda::copy(Array()), ValueError);
}

TEST_P(CudaModule, CopytoTakesAnyCombination) {
  for (Device from : devices()) {
    const Array source = arange(6, from).reshape({2, 3});
    const Array target = zeros({2, 3}, {Dtype::kInt64, GetParam()});
    cuda::copyto(target, source);
    EXPECT_EQ(difference(target, source), "");
    const Array strided = zeros({3, 2}, {Dtype::kFloat32, GetParam()});
    cuda::copyto(strided.T(), source);
    EXPECT_EQ(difference(strided.T(), source.astype(Dtype::kFloat32)), "");
    cuda::copyto(target, source[1]);
    EXPECT_EQ(target.to_vector<int>(), (std::vector<int>{3, 4, 5, 3, 4, 5}));
    EXPECT_THROW(cuda::copyto(target, zeros({4}, from)), ShapeError);
    EXPECT_THROW(cuda::copyto(target, Array()), ValueError);
    EXPECT_THROW(cuda::copy(source, Array()), ValueError) << "an output without a value";
    EXPECT_THROW(cuda::copyto(Array(), source), ValueError);
  }
}

TEST_P(CudaModule, AsarrayAndAsnumpy) {
  const Array a = arange(4);
  const Array there = cuda::asarray(a, {Dtype::kFloat32, GetParam()});
  EXPECT_EQ(there.device(), GetParam());
  EXPECT_EQ(there.dtype(), Dtype::kFloat32);
  EXPECT_TRUE(cuda::asarray(there, GetParam()).same_body(there));
  const Array host = cuda::asnumpy(there.reshape({2, 2}).T());
  EXPECT_TRUE(host.is_contiguous());
  EXPECT_TRUE(host.device().is_cpu());
  EXPECT_EQ(host.to_vector<int>(), (std::vector<int>{0, 2, 1, 3}));
  EXPECT_THROW(cuda::asarray(Array()), ValueError);
  EXPECT_THROW(cuda::asnumpy(Array()), ValueError);
}

TEST_P(CudaModule, AsynchronousGetAndSet) {
  const Device device = GetParam();
  const Stream stream = Stream::create(device);
  const Array a = zeros({3, 4}, {Dtype::kFloat32, device});
  std::vector<float> source(12), target(12);
  for (size_t i = 0; i < 12; ++i) source[i] = float(i);
  const uint64_t version = a.storage()->version;
  Event written = set_async(a, std::span<const float>(source), stream);
  EXPECT_GT(a.storage()->version, version);
  current_stream(device).wait(written);
  const Array doubled = a * 2;
  copy_to_host_async(doubled, std::span(target), stream).synchronize();
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(target[i], 2 * source[i]);
  // Other layouts.
  set_async(a.T(), std::span<const float>(source), stream).synchronize();
  EXPECT_EQ(a(0, 1).item<float>(), 3);
  copy_to_host_async(a.T(), std::span(target), stream).synchronize();
  EXPECT_EQ(target, source);
  EXPECT_TRUE(set_async(zeros({0}, {Dtype::kFloat32, device}), nullptr, stream).done() ||
              device.is_cuda());

  std::vector<double> wrong_type(12);
  std::vector<float> wrong_size(11);
  EXPECT_THROW(set_async(a, std::span<const double>(wrong_type), stream), DtypeError);
  EXPECT_THROW(copy_to_host_async(a, std::span(wrong_size), stream), ShapeError);
  EXPECT_THROW(set_async(a, source.data(), Stream::create(cpu(17))), DeviceError);
  EXPECT_THROW(copy_to_host_async(Array(), target.data(), stream), ValueError);
  EXPECT_THROW(copy_to_host_async(a, target.data(), Stream()), ValueError);
}

TEST_P(CudaModule, DeviceFunctions) {
  const Device before = current_device();
  const Array here = zeros({2}, {Dtype::kFloat32, GetParam()});
  {
    const auto user = cuda::using_device(GetParam());
    EXPECT_TRUE(user.is_active());
    EXPECT_EQ(cuda::get_device(), GetParam());
  }
  EXPECT_EQ(current_device(), before);
  {
    const auto user = cuda::using_device({zeros({1}, cpu(4)), here});
    EXPECT_EQ(user.is_active(), GetParam().is_cuda());
    EXPECT_EQ(current_device(), GetParam().is_cuda() ? GetParam() : before);
  }
  EXPECT_EQ(cuda::get_device(here).has_value(), GetParam().is_cuda());
  EXPECT_EQ(cuda::get_device_from_array({zeros({1}, cpu(4)), here}), cuda::get_device(here));
  cuda::use_device(here);
  EXPECT_EQ(current_device(), GetParam().is_cuda() ? GetParam() : before);
  cuda::use_device(GetParam());
  EXPECT_EQ(current_device(), GetParam());
  cuda::use_device(before);
}

TEST_P(CudaModule, GetDeviceTakesTheFirstThatNamesOne) {
  const bool gpu = GetParam().is_cuda();
  const Array here = zeros({2}, {Dtype::kFloat32, GetParam()}),
              nothing = zeros({0}, {Dtype::kFloat32, GetParam()}), host = zeros({1}, cpu(4));
  const cuda::FoundDevice expected = gpu ? cuda::FoundDevice(GetParam()) : std::nullopt;
  EXPECT_EQ(cuda::get_device(here), expected);
  EXPECT_EQ(cuda::get_device(host, nothing, Array(), std::nullopt, -1, here), expected);
  EXPECT_EQ(cuda::get_device({host, here}), expected);
  EXPECT_EQ(cuda::get_device(nothing), std::nullopt) << "without elements it lies nowhere";
  EXPECT_EQ(cuda::get_device(GetParam(), here), GetParam()) << "a Device is meant, of any type";
  EXPECT_EQ(cuda::get_device(host, "cpu:3"), cpu(3));
  EXPECT_EQ(cuda::get_device(here).id(), gpu ? GetParam().index() : -1);
  EXPECT_EQ(int(cuda::get_device(host)), -1);
  EXPECT_EQ(message(cuda::get_device(host)), "none");
  EXPECT_EQ(message(cuda::get_device(GetParam())), GetParam().name());

  const Device before = current_device();
  cuda::get_device(host).use();
  cuda::get_device(host).synchronize();
  EXPECT_EQ(current_device(), before) << "none changes nothing";
  cuda::get_device(GetParam()).use();
  EXPECT_EQ(current_device(), GetParam());
  cuda::get_device(GetParam()).synchronize();
  before.use();
  {
    const auto user = cuda::using_device(host, here);
    EXPECT_EQ(user.is_active(), gpu);
    EXPECT_EQ(current_device(), gpu ? GetParam() : before);
    EXPECT_EQ((here + 1).device(), GetParam());
  }
  EXPECT_EQ(current_device(), before);
  EXPECT_FALSE(cuda::using_device(-1).is_active());
  const std::optional<Device> as_optional = cuda::get_device(GetParam());
  EXPECT_EQ(as_optional, std::optional(GetParam()));
  const int count = device_count(DeviceType::kCuda);
  EXPECT_THROW(cuda::get_device(count), DeviceError);
  EXPECT_THROW(cuda::using_device(here, count), DeviceError) << "every number is looked up";
  if (count > 0) {
    EXPECT_EQ(cuda::get_device(0), cuda_device(0));
    EXPECT_EQ(cuda::get_device(count - 1).id(), count - 1);
  }
}

TEST_P(CudaModule, AsnumpyWithOptions) {
  const Array a = arange(6, GetParam()).reshape({2, 3});
  const Array columns = cuda::asnumpy(a, {.order = 'F'});
  EXPECT_TRUE(columns.is_fortran_contiguous());
  EXPECT_EQ(difference(columns, a), "");
  const Array out = zeros({2, 3}, {Dtype::kInt64, cpu(0)});
  EXPECT_TRUE(cuda::asnumpy(a, {.out = out}).same_body(out));
  EXPECT_EQ(difference(out, a), "");
  const Stream stream = Stream::create(GetParam());
  const Array later = cuda::asnumpy(a, {.stream = stream, .blocking = false});
  stream.synchronize();
  EXPECT_EQ(difference(later, a), "");
  EXPECT_THROW(cuda::asnumpy(Array(), {.order = 'F'}), ValueError);
}

TEST_P(CudaModule, Generators) {
  cuda::seed(5, GetParam());
  EXPECT_EQ(cuda::get_generator(GetParam()).state().seed, 5u);
  EXPECT_EQ(&cuda::get_generator(GetParam()), &random::default_state(GetParam()));
  cuda::seed({}, GetParam());
  EXPECT_NE(cuda::get_generator(GetParam()).state().seed, 5u);
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaModule, ::testing::ValuesIn(devices()));

TEST(CudaFunctions, NameTheMissingGpu) {
  const int count = device_count(DeviceType::kCuda);
  EXPECT_EQ(cuda::available(), count > 0);
  EXPECT_EQ(cuda::get_device_from_id({}), std::nullopt);
  EXPECT_EQ(cuda::get_device_from_id(-1), std::nullopt);
  EXPECT_THROW(cuda::get_device_from_id(count), DeviceError);
  EXPECT_THROW(cuda::use_device(count), DeviceError);
  EXPECT_THROW(cuda::init(count), DeviceError);
  EXPECT_THROW(cuda::to_gpu(zeros({2}), count), DeviceError);
  cuda::shutdown();
  if (count > 0) {
    EXPECT_NO_THROW(cuda::check_cuda_available());
    return;
  }
  EXPECT_THROW(cuda::check_cuda_available(), DeviceError);
  EXPECT_THROW(cuda::zeros({2}), DeviceError);
  EXPECT_THROW(cuda::mem_alloc(16), DeviceError);
  EXPECT_THROW(empty_pinned({2}, Dtype::kFloat32), DeviceError);
}

TEST(CudaFunctions, DefaultToTheCurrentGpu) {
  CATENA_NEEDS_GPU();
  EXPECT_EQ(cuda::zeros({2}).device(), cuda_device(0)) << "also while a CPU is current";
  for (const Array& a : {cuda::zeros({2}), cuda::ones({2}), cuda::full({2}, 3), cuda::empty({2})}) {
    EXPECT_EQ(a.dtype(), Dtype::kFloat32);
    EXPECT_EQ(a.device(), cuda_device(0));
  }
  EXPECT_EQ(cuda::to_gpu(zeros({2})).device(), cuda_device(0));
  EXPECT_EQ(cuda::mem_alloc(16).device(), cuda_device(0));
  const auto last = cuda_device(device_count(DeviceType::kCuda) - 1);
  const auto user = cuda::using_device(last);
  const Array held = cuda::ones({2});
  EXPECT_EQ(held.device(), last);
  EXPECT_EQ(&cuda::get_generator(), &random::default_state(last));
  EXPECT_GT(cuda::memory_pool().used_bytes(last), 0u);
  EXPECT_TRUE(empty_pinned({2}, Dtype::kInt8).storage()->pinned);
  EXPECT_GT(cuda::pinned_memory_pool().total_bytes(), 0u);
}

TEST(CudnnSettings, AreOfTheConfiguration) {
  EXPECT_EQ(cuda::cudnn_enabled(), cuda::should_use_cudnn(">=auto"));
  const size_t before = cuda::get_max_workspace_size();
  EXPECT_EQ(before, size_t{1} << 30);
  cuda::set_max_workspace_size(1 << 20);
  EXPECT_EQ(config().max_workspace_size, size_t{1} << 20);
  cuda::set_max_workspace_size(before);
  EXPECT_THROW(cuda::should_use_cudnn("auto"), ValueError);
  EXPECT_EQ(cuda::should_use_cudnn(">=auto", 9000), cuda::cudnn_enabled()) << "9.0 is the oldest";
  EXPECT_FALSE(cuda::should_use_cudnn(">=auto", 99'99'99));
  const UseCudnn setting = config().use_cudnn;
  config().use_cudnn = UseCudnn::kNever;
  EXPECT_FALSE(cuda::should_use_cudnn(">=auto"));
  EXPECT_FALSE(cuda::should_use_cudnn("==always"));
  config().use_cudnn = UseCudnn::kAuto;
  EXPECT_FALSE(cuda::should_use_cudnn("==always"));
  config().use_cudnn = setting;
}

TEST(IpcHandles, RefuseWhatCannotBeShared) {
  EXPECT_THROW(cuda::IPCArrayHandle(zeros({2})), DeviceError);
  EXPECT_THROW(cuda::IPCArrayHandle{Array()}, DeviceError);
  EXPECT_THROW(cuda::IPCArrayHandle::open("short"), ValueError);
  EXPECT_THROW(cuda::IPCArrayHandle::open(std::string(1000, 'x')), ValueError);
  EXPECT_THROW(cuda::IPCEvent::open("short", cpu(0)), ValueError);
  EXPECT_THROW(cuda::IPCEvent::open(std::string(64, 'x'), cpu(0)), DeviceError);
  EXPECT_THROW(cuda::IPCEvent(cpu(0)).to_bytes(), DeviceError);
}

TEST(BackendsNamespace, IsTheSame) {
  EXPECT_EQ(backends::cuda::get_device(), cuda::get_device());
  static_assert(std::is_same_v<backends::cuda::Device, Device>);
  static_assert(std::is_same_v<backends::cuda::Event, Event>);
  static_assert(std::is_same_v<backends::cuda::Stream, Stream>);
  // oneDNN is there where it offers convolutions.
  const auto providers = kernels::convolution.providers(DeviceType::kCpu);
  EXPECT_EQ(
      backends::intel64::is_ideep_available(),
      std::ranges::any_of(providers, [](const ProviderInfo& p) { return p.name == "onednn"; }));
}

}  // namespace
}  // namespace catena
