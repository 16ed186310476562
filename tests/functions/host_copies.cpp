// Copies of arrays to the host and back, on a pretended GPU whose streams run as late and in as
// unfavourable an order as events allow. tests/functions/recompute_offload_test.cpp is for real
// ones.
#include "functions/host_copies.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "catena/core/graph.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/recompute.h"
#include "error_text.h"
#include "pretended_gpu.h"

namespace catena::functions {
namespace {

// Work waits in queues until run(). Freed device memory is handed out again at once, as a pool does
// within a stream, unless another stream has used it.
class QueuedGpu final : public testing::PretendedGpu {
 public:
  StoragePtr allocate(int index, size_t bytes) override {
    auto& free = free_[bytes];
    if (free.empty()) free.push_back(blocks_.emplace_back(new char[bytes]).get());
    char* const memory = free.back();
    free.pop_back();
    const auto give_back = [this, bytes](char* block) {
      if (!used_elsewhere_[block]) free_[bytes].push_back(block);
    };
    return borrow(cuda_device(index), memory, bytes, std::shared_ptr<char>(memory, give_back));
  }
  StoragePtr allocate_pinned(Device device, size_t bytes) override {
    if (bytes > pinned_left) fail<OutOfMemoryError>("out of memory on pinned host memory");
    pinned_left -= bytes;
    const std::shared_ptr<char[]> memory(new char[bytes]());
    pinned_.push_back(memory);  // what runs late still writes to it
    StoragePtr storage = borrow(device, memory.get(), bytes, memory);
    storage->pinned = true;
    return storage;
  }
  void record_use(const Storage& storage, const Stream&) override {
    if (!storage.pinned) used_elsewhere_[static_cast<char*>(storage.data)] = true;
  }
  void record_event(EventState* event, StreamState* stream) override {
    const int number = ++recorded_[event];
    enqueue(stream, [this, event, number] {
      done_[event] = number;
      return true;
    });
  }
  void stream_wait_event(StreamState* stream, EventState* event) override {
    enqueue(stream, [this, event, number = recorded_[event]] { return done_[event] >= number; });
  }
  void destroy_event(EventState*) override {}  // queues refer to it
  void copy_bytes(void* to, Device to_device, const void* from, Device, size_t bytes,
                  const Stream& stream) override {
    (to_device.is_cpu() ? to_host : to_gpu) += 1;
    enqueue(stream.state(), [=] {
      std::memcpy(to, from, bytes);
      return true;
    });
  }

  // A kernel on the current stream.
  void launch(const std::function<void()>& kernel) {
    enqueue(current_stream(cuda_device(0)).state(), [kernel] {
      kernel();
      return true;
    });
  }
  // All that is queued; of streams that could go on, the first or the last made goes furthest.
  void run(bool first) {
    for (bool any = true; any;) {
      any = false;
      for (size_t i = 0; i < queues_.size() && !any; ++i) {
        auto& queue = queues_[first ? i : queues_.size() - 1 - i].second;
        while (!queue.empty() && queue.front()()) {
          queue.pop_front();
          any = true;
        }
      }
    }
    for (const auto& [stream, queue] : queues_) EXPECT_TRUE(queue.empty());
  }
  size_t blocks() const { return blocks_.size(); }

  size_t pinned_left = size_t(1) << 20;
  int to_host = 0, to_gpu = 0;  // copies

 private:
  using Work = std::function<bool()>;  // false: not yet
  void enqueue(StreamState* stream, Work work) {
    for (auto& [known, queue] : queues_)
      if (known == stream) return queue.push_back(std::move(work));
    queues_.emplace_back(stream, std::deque<Work>{std::move(work)});
  }

  std::vector<std::pair<StreamState*, std::deque<Work>>> queues_;
  std::map<size_t, std::vector<char*>> free_;
  std::map<char*, bool> used_elsewhere_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::vector<std::shared_ptr<char[]>> pinned_;
  std::map<EventState*, int> recorded_, done_;
};

QueuedGpu& gpu() {
  static auto* one = [] {
    auto* made = new QueuedGpu;
    register_backend(DeviceType::kCuda, made);
    return made;
  }();
  return *one;
}

constexpr int64_t kNumbers = 6;

Array made_of(double value) {
  QueuedGpu& pretended = gpu();
  const Array a = Array::uninitialized({2, 3}, Dtype::kFloat64, cuda_device(0));
  pretended.launch([p = a.data<double>(), value] { std::fill(p, p + kNumbers, value); });
  return a;
}

// The sum of what the device finds there when it comes to it.
std::shared_ptr<double> read_later(const Array& a) {
  const auto sum = std::make_shared<double>(0);
  gpu().launch([p = a.data<double>(), sum] {
    for (int64_t i = 0; i < kNumbers; ++i) *sum += p[i];
  });
  return sum;
}

using Part = std::shared_ptr<HostCopies>;

// A chain of parts, each with an input and a result that it keeps.
std::vector<Part> forward(int parts) {
  std::vector<Part> all;
  Array x = made_of(0);
  for (int i = 0; i < parts; ++i) {
    const auto part = std::make_shared<HostCopies>();
    part->add(x);
    const Array kept = made_of(i + 0.5);
    x = made_of(i + 1);
    part->add(kept);
    HostCopies::complete(part);
    all.push_back(part);
  }
  return all;
}

using Found = std::vector<std::shared_ptr<double>>;

Found backward(const std::vector<Part>& parts) {
  Found found;
  for (size_t i = parts.size(); i-- > 0;) {
    {
      const Arrays arrays = parts[i]->arrays();
      if (i > 0) parts[i - 1]->prefetch();
      made_of(-1);  // of a part's gradients, in memory that is free
      for (const Array& a : arrays) found.push_back(read_later(a));
    }
    parts[i]->release();
    made_of(-1);
  }
  return found;
}

void expect_values(const Found& found) {
  const int parts = int(found.size() / 2);
  for (int i = 0; i < parts; ++i) {
    EXPECT_EQ(*found[size_t(2 * i)], kNumbers * (parts - 1 - i));
    EXPECT_EQ(*found[size_t(2 * i + 1)], kNumbers * (parts - 0.5 - i));
  }
}

TEST(HostCopies, GiveTheValuesInAnyOrderOfStreams) {
  for (const bool first : {true, false}) {
    const std::vector<Part> parts = forward(6);
    const Found once = backward(parts), twice = backward(parts);
    gpu().run(first);
    expect_values(once);
    expect_values(twice);
  }
}

TEST(HostCopies, LeaveAFewPartsOnTheDevice) {
  gpu();
  const std::vector<Part> few = forward(4);
  backward(few);
  const size_t before = gpu().blocks();
  gpu().to_host = gpu().to_gpu = 0;
  const std::vector<Part> many = forward(40);
  const Found found = backward(many);
  EXPECT_EQ(gpu().blocks(), before) << "as much device memory as 4 parts take";
  EXPECT_EQ(gpu().to_host, 80);
  EXPECT_EQ(gpu().to_gpu, 78) << "the last part is still there";
  gpu().run(true);
  expect_values(found);
}

// By recompute, of functions that launch nothing.
TEST(HostCopies, ComeBackWhileThePartBehindComputes) {
  gpu().to_host = gpu().to_gpu = 0;
  std::vector<int> come;  // when each part runs
  const auto part = [&come](const Variable& v) {
    come.push_back(gpu().to_gpu);
    return reshape(v, {v.shape()[1], v.shape()[0]});
  };
  const Variable root(made_of(1));
  Variable h = reshape(root, {3, 2});
  for (int i = 0; i < 4; ++i) h = recompute(part, {.offload = true}, h);
  EXPECT_EQ(gpu().to_host, 4);
  h.set_grad(made_of(2).reshape({3, 2}));
  for (const bool again : {false, true}) {
    come.clear();
    const int before = gpu().to_gpu;
    h.backward();
    for (int& count : come) count -= before;
    EXPECT_EQ(come, again ? (std::vector{2, 3, 4, 4}) : (std::vector{1, 2, 3, 3}));
  }
  gpu().run(true);
}

// Parts that are dropped, before and after their copies are on the way back.
TEST(HostCopies, AreDroppedInTheOrderOfTheirStream) {
  for (const bool first : {true, false}) {
    std::vector<Part> parts = forward(4);
    parts[1]->prefetch();
    parts.clear();
    std::vector<Part> next = forward(4);
    const Found found = backward(next);
    gpu().run(first);
    expect_values(found);
  }
}

TEST(HostCopies, NoticeWritesToWhatIsBeingCopied) {
  gpu();
  const Array x = made_of(1);
  const auto part = std::make_shared<HostCopies>();
  part->add(x);
  HostCopies::complete(part);
  x.note_write();
  HostCopies::complete(std::make_shared<HostCopies>());
  expect_contains(error_of<GradientError>([&] { part->arrays(); }),
                  {"Recompute", "was written to", "until it is on the host"});
}

TEST(HostCopies, KeepTheOrderOfAxes) {
  const Array x = made_of(3).transpose();
  const auto part = std::make_shared<HostCopies>();
  part->add(x);
  HostCopies::complete(part);
  part->release();
  const Array back = part->arrays()[0];
  EXPECT_EQ(back.shape(), x.shape());
  EXPECT_EQ(back.strides(), x.strides());
  gpu().run(true);
}

TEST(HostCopies, NameTheMemoryThatIsMissing) {
  gpu().pinned_left = 0;
  HostCopies part;
  expect_contains(error_of<OutOfMemoryError>([&] { part.add(made_of(1)); }),
                  {"Recompute: offload found no pinned host memory", "(2, 3) float64, 48 bytes",
                   "out of memory on pinned host memory", "recompute without offload"});
  gpu().pinned_left = size_t(1) << 20;
}

TEST(HostCopies, AreNotCaptured) {
  gpu();
  const Array x = made_of(1);
  const auto capture = [&] {
    cuda::Graph::capture(cuda_device(0), [&] {
      HostCopies part;
      part.add(x);
    });
  };
  expect_contains(error_of<ValueError>(capture),
                  {"Recompute: offload on cuda:0 while a graph is captured", "without a graph"});
}

TEST(HostCopies, LeaveArraysOfCpusWhereTheyAre) {
  const Array x = Array::uninitialized({4}, Dtype::kFloat32, cpu(0));
  const auto part = std::make_shared<HostCopies>();
  part->add(x);
  HostCopies::complete(part);
  part->release();
  EXPECT_TRUE(part->arrays()[0].same_body(x));
}

}  // namespace
}  // namespace catena::functions
