// Memory that is freed, overwritten and allocated again while copies of it are under way on other
// streams and devices. 1/20 of the rounds that an issue is closed with; CATENA_TEST_REPEATS=20 for
// all. Once more with CATENA_P2P=0, see CMakeLists.txt; collectives:
// tests/comm/nccl_stress.cpp.
#include <cstring>
#include <numeric>

#include "catena/core/backend.h"
#include "catena/core/stream.h"
#include "gpu.h"

namespace catena {
namespace {

using namespace test;

// Copies made on either of two streams, of which the results are read on the default stream.
class Copies {
 public:
  Copies(Device device, const Stream& side) : device_(device), side_(side) {}
  void add(const Array& copied, float value) {
    record_use(*copied.storage(), Stream::default_of(device_));
    arrays_.push_back(copied);
    values_.push_back(value);
  }
  void check_when_many() {
    if (arrays_.size() < 32) return;
    Stream::default_of(device_).wait(side_);
    for (size_t k = 0; k < arrays_.size(); ++k) {
      ASSERT_EQ(arrays_[k](0).item<float>(), values_[k]);
      ASSERT_EQ(arrays_[k](-1).item<float>(), values_[k]);
    }
    arrays_.clear();
    values_.clear();
  }

 private:
  Device device_;
  Stream side_;
  std::vector<Array> arrays_;
  std::vector<float> values_;
};

TEST(CudaStress, TwoStreamsOfOneGpu) {
  CATENA_NEEDS_GPUS(1);
  const Device gpu = cuda_device(0);
  const Stream side = Stream::create(gpu);
  Copies copies(gpu, side);
  const int rounds = repeats(5000);
  for (int i = 0; i < rounds && !HasFatalFailure(); ++i) {
    Array source = full({int64_t{1} << between(0, 18)}, float(i), {Dtype::kFloat32, gpu});
    Array copied;
    if (i % 2) {
      side.wait(current_stream(gpu));
      StreamScope scope(side);
      copied = source.copy();
      record_use(*source.storage(), side);
    } else {
      copied = source.copy();
    }
    source = Array();  // its memory may be written again only after the copy
    copies.add(copied, float(i));
    copies.check_when_many();
  }
}

// Sources of peer copies are overwritten, freed and allocated again while the copies are under way.
TEST(CudaPeerCopyStress, TwoGpus) {
  CATENA_NEEDS_GPUS(2);
  const Device here = cuda_device(0), there = cuda_device(1);
  const Stream side = Stream::create(there);
  Copies copies(there, side);
  const int rounds = repeats(5000);
  for (int i = 0; i < rounds && !HasFatalFailure(); ++i) {
    Array source = full({int64_t{1} << between(0, 18)}, float(i), {Dtype::kFloat32, here});
    {
      StreamScope scope(i % 2 ? side : Stream::default_of(there));
      copies.add(source.copy_to(there), float(i));
    }
    source.fill(-1);
    source = Array();
    copies.check_when_many();
  }
}

TEST(CudaStress, PinnedMemoryIsNotReusedTooEarly) {
  CATENA_NEEDS_GPUS(1);
  const Device gpu = cuda_device(0);
  const Stream side = Stream::create(gpu);
  constexpr int64_t kCount = 1 << 16;
  std::vector<Array> copies;
  const int rounds = repeats(500);
  for (int i = 0; i < rounds; ++i) {
    const StoragePtr stage = allocate_pinned(cpu(), kCount * 4);
    std::fill_n(static_cast<int32_t*>(stage->data), kCount, i);
    const Array target = empty({kCount}, {Dtype::kInt32, gpu});
    side.wait(current_stream(gpu));
    backend(DeviceType::kCuda)
        .copy_bytes(target.raw_data(), gpu, stage->data, cpu(), kCount * 4, side);
    record_use(*stage, side);
    record_use(*target.storage(), side);
    copies.push_back(target);
  }
  current_stream(gpu).wait(side);
  for (int i = 0; i < rounds; i += 7) {
    ASSERT_EQ(copies[size_t(i)](0).item<int32_t>(), i);
    ASSERT_EQ(copies[size_t(i)](-1).item<int32_t>(), i);
  }
}

// n numbers from `first` on, in pinned memory that nothing else keeps alive.
StoragePtr pinned_numbers(int64_t n, int32_t first) {
  const StoragePtr stage = allocate_pinned(cpu(), size_t(n) * 4);
  auto* numbers = static_cast<int32_t*>(stage->data);
  std::iota(numbers, numbers + n, first);
  return stage;
}

// What comes back from a device on another stream than it went there.
struct Returned {
  StoragePtr bytes;
  int64_t n;
  int32_t first;
  bool right() const {
    const auto* numbers = static_cast<const int32_t*>(bytes->data);
    for (int64_t k = 0; k < n; ++k)
      if (numbers[k] != first + int32_t(k)) return false;
    return true;
  }
};

// To a GPU on one side stream and back on another: the pinned block, the array on the GPU and the
// blocks that come back are let go while the engines still read and write them.
void there_and_back(int gpus) {
  Backend& cuda = backend(DeviceType::kCuda);
  std::vector<Stream> down, up;
  for (int d = 0; d < gpus; ++d) {
    down.push_back(Stream::create(cuda_device(d)));
    up.push_back(Stream::create(cuda_device(d)));
  }
  std::vector<Returned> returned;
  const int rounds = repeats(5000);
  for (int i = 0; i < rounds; ++i) {
    const int d = i % gpus;
    const Device gpu = cuda_device(d);
    const int64_t n = int64_t{1} << between(0, 16);
    const size_t bytes = size_t(n) * 4;
    StoragePtr stage = pinned_numbers(n, i);
    Array x = empty({n}, {Dtype::kInt32, gpu});
    down[size_t(d)].wait(current_stream(gpu));
    cuda.copy_bytes(x.raw_data(), gpu, stage->data, cpu(), bytes, down[size_t(d)]);
    record_use(*stage, down[size_t(d)]);
    record_use(*x.storage(), down[size_t(d)]);
    stage = nullptr;
    const StoragePtr back = allocate_pinned(cpu(), bytes);
    up[size_t(d)].wait(down[size_t(d)]);
    cuda.copy_bytes(back->data, cpu(), x.raw_data(), gpu, bytes, up[size_t(d)]);
    record_use(*back, up[size_t(d)]);
    record_use(*x.storage(), up[size_t(d)]);
    x = Array();
    if (i % 3 != 0) returned.push_back({back, n, i});  // the others are let go unread
    if (returned.size() < 32) continue;
    for (const Stream& stream : up) stream.synchronize();
    for (const Returned& r : returned) ASSERT_TRUE(r.right()) << "round " << r.first;
    returned.clear();
  }
}

TEST(CudaStress, AsynchronousTransfersOfOneGpu) {
  CATENA_NEEDS_GPUS(1);
  there_and_back(1);
}

TEST(CudaStress, AsynchronousTransfersOfTwoGpus) {
  CATENA_NEEDS_GPUS(2);
  there_and_back(2);
}

}  // namespace
}  // namespace catena
