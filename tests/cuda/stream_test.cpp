// Streams, events, memory and inter-process handles on real GPUs.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "catena/array/math.h"
#include "catena/cuda.h"
#include "gate.h"
#include "gpu.h"

extern char** environ;

namespace catena {
namespace {

using namespace test;

const Device kGpu = Device(DeviceType::kCuda, 0);

// Keeps a stream busy for some milliseconds.
void work(const Stream& stream) {
  StreamScope scope(stream);
  Array a = ones({1 << 24}, {Dtype::kFloat32, kGpu});
  for (int i = 0; i < 50; ++i) a = a + 1.0f;
}

TEST(CudaStreams, CallBackInOrder) {
  CATENA_NEEDS_GPUS(1);
  std::atomic<int> order{0};
  int first = 0, second = 0;
  std::string error = "not called";
  {
    const Stream stream = Stream::create(kGpu);
    work(stream);
    stream.add_callback([&](const Stream& s, const std::string& text) {
      EXPECT_EQ(s.device(), kGpu);
      error = text;
      first = ++order;
    });
    stream.launch_host_func([&] { second = ++order; });
    stream.synchronize();
    EXPECT_EQ(first, 1);
    EXPECT_EQ(second, 2);
    EXPECT_EQ(error, "");
    stream.add_callback([](const Stream&, const std::string&) {});
  }  // the callback may hold the last handle
  synchronize(kGpu);
  Stream::create(kGpu).add_callback([](const Stream&, const std::string&) {});
  synchronize(kGpu);
}

TEST(CudaStreams, HostFunctionsRunWithEveryReplay) {
  CATENA_NEEDS_GPUS(1);
  std::atomic<int> calls{0};
  cuda::Graph graph =
      cuda::Graph::capture(kGpu, [&] { current_stream(kGpu).launch_host_func([&] { ++calls; }); });
  EXPECT_EQ(calls, 0);
  for (int i = 0; i < 3; ++i) graph.launch();
  synchronize(kGpu);
  EXPECT_EQ(calls, 3);
  EXPECT_THROW(
      cuda::Graph::capture(
          kGpu,
          [&] { current_stream(kGpu).add_callback([](const Stream&, const std::string&) {}); }),
      Error);
}

TEST(CudaStreams, KindsAndPriorities) {
  CATENA_NEEDS_GPUS(1);
  const Stream low = Stream::create(kGpu, StreamOptions{100, true}),
               high = Stream::create(kGpu, StreamOptions{-100, true}),
               blocking = Stream::create(kGpu, StreamOptions{0, false});
  const Stream null = Stream::null(kGpu);
  EXPECT_EQ(null.native(), nullptr);
  EXPECT_TRUE(null == Stream::null(kGpu));
  EXPECT_NE(Stream::per_thread(kGpu).native(), nullptr);
  for (const Stream& stream : {low, high, blocking, null, Stream::per_thread(kGpu)}) {
    Array a;
    {
      StreamScope scope(stream);
      a = arange(1000, kGpu) * 2;
    }
    current_stream(kGpu).wait(stream);
    EXPECT_EQ(a(999).item<int64_t>(), 1998);
    stream.synchronize();
    EXPECT_TRUE(stream.done());
  }
  // The legacy stream waits for a blocking stream by itself.
  work(blocking);
  const Event after = null.record();
  after.synchronize();
  EXPECT_TRUE(blocking.done());
}

TEST(CudaStreams, ThreadsHaveStreamsOfTheirOwn) {
  CATENA_NEEDS_GPUS(1);
  const Stream mine = Stream::per_thread(kGpu);
  EXPECT_TRUE(mine == Stream::per_thread(kGpu));
  std::thread other([&] {
    const Stream theirs = Stream::per_thread(kGpu);
    EXPECT_FALSE(mine == theirs);
    EXPECT_NE(mine.native(), theirs.native());
    const StreamScope scope(theirs);
    const Array a = ones({1000}, {Dtype::kFloat32, kGpu});
    EXPECT_EQ(sum(a).item<float>(), 1000);
  });
  other.join();
}

// Threads of the driver, which call functions, may not release memory.
TEST(CudaStreams, FunctionsAreDestroyedByThreadsThatWait) {
  CATENA_NEEDS_GPUS(1);
  std::thread::id destroyed_by;
  const auto note = [&](void*) { destroyed_by = std::this_thread::get_id(); };
  const Stream stream = Stream::create(kGpu);
  stream.launch_host_func([held = std::shared_ptr<void>(&destroyed_by, note)] {});
  stream.synchronize();
  EXPECT_EQ(destroyed_by, std::this_thread::get_id());
  destroyed_by = {};
  stream.add_callback(
      [held = std::shared_ptr<void>(&destroyed_by, note)](const Stream&, const std::string&) {});
  stream.synchronize();
  EXPECT_EQ(destroyed_by, std::this_thread::get_id());
}

TEST(CudaStreams, FunctionsOfOtherStreamsRunOnceDuringACapture) {
  CATENA_NEEDS_GPUS(1);
  std::atomic<int> calls{0};
  const Stream other = Stream::create(kGpu);
  const Array a = ones({10}, {Dtype::kFloat32, kGpu});
  {
    cuda::Graph graph = cuda::Graph::capture(kGpu, [&] {
      add(a, 1);
      other.launch_host_func([&] { ++calls; });
    });
    graph.launch();
    graph.launch();
  }
  other.synchronize();
  EXPECT_EQ(calls, 1);
}

TEST(CudaStreams, UseLastsPerThread) {
  CATENA_NEEDS_GPUS(1);
  const Stream stream = Stream::create(kGpu);
  stream.use();
  EXPECT_TRUE(current_stream(kGpu) == stream);
  std::thread([&] { EXPECT_TRUE(current_stream(kGpu) == Stream::default_of(kGpu)); }).join();
  Stream::default_of(kGpu).use();
  EXPECT_TRUE(current_stream(kGpu) == Stream::default_of(kGpu));
}

TEST(CudaEvents, AreDoneBeforeTheirFirstRecord) {
  CATENA_NEEDS_GPUS(1);
  const Stream busy = Stream::create(kGpu);
  Gate gate(busy);
  for (int i = 0; i < 3; ++i) busy.record();  // events that are used again below
  for (int i = 0; i < 3; ++i) {
    const Event event = Event::create(kGpu);
    EXPECT_TRUE(event.query());
    event.synchronize();
    const Stream stream = Stream::create(kGpu);
    stream.wait(event);
    stream.synchronize();
    event.record(busy);
    EXPECT_FALSE(event.query());
  }
  gate.open();
  busy.synchronize();
}

TEST(CudaEvents, HaveOptions) {
  CATENA_NEEDS_GPUS(1);
  const Stream stream = Stream::create(kGpu);
  const Event start = Event::create(kGpu, EventOptions{true, true, false}),
              stop = Event::create(kGpu, true),
              shared = Event::create(kGpu, EventOptions{false, false, true});
  start.record(stream);
  Gate gate(stream);
  stop.record(stream);
  stream.record(shared);
  EXPECT_FALSE(stop.done() || shared.done());
  gate.open();
  stop.synchronize();
  EXPECT_TRUE(start.done() && stop.done());
  EXPECT_GT(get_elapsed_time(start, stop), 0);
  EXPECT_THROW(get_elapsed_time(start, shared), ValueError);
  shared.synchronize();
  Event now = Event::create(kGpu);
  now.record();
  now.synchronize();
}

TEST(CudaDevices, AnswerQueries) {
  CATENA_NEEDS_GPUS(1);
  const DeviceProperties p = device_properties(kGpu);
  EXPECT_FALSE(p.model.empty());
  EXPECT_GE(std::stoi(p.compute_capability), 50);
  EXPECT_EQ(kGpu.compute_capability(), p.compute_capability);
  EXPECT_GT(p.multiprocessors, 0);
  const MemoryInfo memory = memory_info(kGpu);
  EXPECT_GT(memory.free, 0u);
  EXPECT_LE(memory.free, memory.total);
  const Array a = zeros({10}, {Dtype::kFloat32, kGpu});
  EXPECT_EQ(device_of_pointer(a.raw_data()), kGpu);
  const Array pinned = empty_pinned({10}, Dtype::kFloat32);
  EXPECT_EQ(device_of_pointer(pinned.raw_data()), cpu(0));
  EXPECT_FALSE(can_access_peer(kGpu, cpu(0)));
  EXPECT_TRUE(can_access_peer(kGpu, kGpu));
}

TEST(CudaDevices, PeerAccessCanBeSwitchedOff) {
  CATENA_NEEDS_GPUS(2);
  const char* text = std::getenv("CATENA_P2P");
  if (text && std::string(text) == "0") {
    EXPECT_FALSE(can_access_peer(kGpu, cuda_device(1)));
  }
  const Array a = arange(10, kGpu);
  EXPECT_EQ(a.to(cuda_device(1)).to_vector<int64_t>(), a.to_vector<int64_t>());
}

TEST(CudaMemoryPool, CountsFreeBlocks) {
  CATENA_NEEDS_GPUS(1);
  MemoryPool pool = get_default_memory_pool();
  synchronize(kGpu);
  pool.free_all_blocks(kGpu);
  const size_t used = pool.used_bytes(kGpu);
  { const Array a = empty({5 << 20}, {Dtype::kUInt8, kGpu}); }
  EXPECT_EQ(pool.used_bytes(kGpu), used);
  EXPECT_GE(pool.n_free_blocks(kGpu), 1u);
  EXPECT_GE(pool.free_bytes(kGpu), size_t{5} << 20);
  EXPECT_EQ(pool.total_bytes(kGpu), pool.used_bytes(kGpu) + pool.free_bytes(kGpu));
  const size_t total = pool.total_bytes(kGpu);
  pool.free_all_blocks(kGpu);
  EXPECT_LT(pool.total_bytes(kGpu), total);
  pool.set_limit_fraction(kGpu, 0.5);
  EXPECT_EQ(pool.get_limit(kGpu), size_t(double(memory_info(kGpu).total) * 0.5));
  pool.set_limit(kGpu, 0);
}

TEST(CudaMemoryPool, OwnPoolsKeepStreamOrder) {
  CATENA_NEEDS_GPUS(1);
  MemoryPool pool;
  const Stream side = Stream::create(kGpu);
  set_allocator(pool.allocator());
  for (int i = 0; i < repeats(20); ++i) {
    Array a = full({1 << 22}, double(i), {Dtype::kFloat32, kGpu});
    Array b;
    side.wait(current_stream(kGpu));
    {
      StreamScope scope(side);
      b = a + 1.0f;
      record_use(*a.storage(), side);
    }
    a = {};  // its block is taken again at once, while the side stream reads it
    const Array c = full({1 << 22}, -1.0, {Dtype::kFloat32, kGpu});
    current_stream(kGpu).wait(side);
    record_use(*b.storage(), current_stream(kGpu));
    EXPECT_EQ(b(12345).item<float>(), float(i + 1));
  }
  set_allocator({});
  EXPECT_LE(pool.total_bytes(kGpu), size_t{5} << 24) << "blocks were reused";
  synchronize(kGpu);
  pool.free_all_blocks(kGpu);
  EXPECT_EQ(pool.total_bytes(kGpu), 0u);
}

TEST(CudaMemoryPool, UnpooledMemoryGoesBackAtOnce) {
  CATENA_NEEDS_GPUS(1);
  const size_t in_use = memory_statistics(kGpu).in_use;
  AllocatorScope scope(&allocate_unpooled);
  const Array a = arange(1000, kGpu);
  EXPECT_EQ(memory_statistics(kGpu).in_use, in_use);
  EXPECT_EQ((a * 2)(999).item<int64_t>(), 1998);
  EXPECT_THROW(cuda::Graph::capture(kGpu, [] { allocate_unpooled(kGpu, 16); }), Error);
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (unsigned char c : bytes) {
    text += "0123456789abcdef"[c / 16];
    text += "0123456789abcdef"[c % 16];
  }
  return text;
}
std::string unhex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += char(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

// The other process: this program again, with the handles in its environment.
TEST(CudaIpc, ChildAddsOne) {
  const char* array = std::getenv("CATENA_TEST_IPC_ARRAY");
  const char* event = std::getenv("CATENA_TEST_IPC_EVENT");
  if (!array || !event) GTEST_SKIP() << "started by CudaIpc.SharesMemoryWithAnotherProcess only";
  const Event written = cuda::IPCEvent::open(unhex(event), kGpu);
  current_stream(kGpu).wait(written);
  const Array shared = cuda::IPCArrayHandle::open(unhex(array));
  ASSERT_EQ(shared.shape(), (Shape{10, 100}));
  ASSERT_EQ(shared.dtype(), Dtype::kInt64);
  ASSERT_EQ(shared(9, 99).item<int64_t>(), 999);
  shared.assign(shared + 1);
  synchronize(kGpu);
}

TEST(CudaIpc, SharesMemoryWithAnotherProcess) {
  CATENA_NEEDS_GPUS(1);
  const Array before = zeros({777}, kGpu);  // so that the array is not first in its segment
  const Array a = arange(1000, kGpu).reshape({10, 100});
  const cuda::IPCEvent written(kGpu);
  written.event().record();
  const cuda::IPCArrayHandle handle(a);
  EXPECT_THROW(cuda::IPCArrayHandle(a.T()), ValueError);
  std::vector<std::string> texts = {"CATENA_TEST_IPC_ARRAY=" + hex(handle.to_bytes()),
                                    "CATENA_TEST_IPC_EVENT=" + hex(written.to_bytes())};
  std::vector<char*> environment;
  for (char** e = environ; *e; ++e) {
    if (!std::string_view(*e).starts_with("GTEST_")) environment.push_back(*e);  // shards
  }
  for (std::string& text : texts) environment.push_back(text.data());
  environment.push_back(nullptr);
  char program[] = "/proc/self/exe", filter[] = "--gtest_filter=CudaIpc.ChildAddsOne";
  char* arguments[] = {program, filter, nullptr};
  const std::string path = [] {
    std::vector<char> buffer(4096);
    const ssize_t n = readlink("/proc/self/exe", buffer.data(), buffer.size());
    return std::string(buffer.data(), size_t(std::max<ssize_t>(n, 0)));
  }();
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, path.c_str(), nullptr, nullptr, arguments, environment.data()), 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(a(0, 0).item<int64_t>(), 1);
  EXPECT_EQ(a(9, 99).item<int64_t>(), 1000);
}

}  // namespace
}  // namespace catena
