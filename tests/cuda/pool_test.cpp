// The caching pool over a pretended device: no GPU is needed.
#include "backends/cuda/runtime/pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <thread>

#include "catena/core/error.h"

namespace catena::gpu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Hands out addresses that are never touched; events complete when the test says so.
class FakeDevice : public RawMemory {
 public:
  struct Record {
    StreamState* stream;
    bool done = false;
  };

  void* allocate(size_t bytes) override {
    if (held + bytes > capacity) return nullptr;
    next += 64 * kMiB;  // a gap, so that blocks of two segments never look like neighbours
    void* result = reinterpret_cast<void*>(next);
    next += bytes;
    segments[result] = bytes;
    held += bytes;
    return result;
  }
  void release(void* memory) noexcept override {
    EXPECT_EQ(segments.count(memory), 1u);
    EXPECT_TRUE(synchronized);
    held -= segments[memory];
    segments.erase(memory);
  }
  size_t free_bytes() noexcept override { return capacity - held; }
  bool synchronize(StreamState* stream) noexcept override {
    if (stream == captured) return false;
    return synchronized = true;
  }
  void* record(const Stream& stream) noexcept override {
    events.push_back(std::make_unique<Record>(Record{stream.state()}));
    ++live_events;
    return events.back().get();
  }
  bool done(void* event) noexcept override { return static_cast<Record*>(event)->done; }
  bool wait(void* event) noexcept override {
    if (unrecorded) return false;
    return static_cast<Record*>(event)->done = true;
  }
  void recycle(void* event) noexcept override {
    EXPECT_TRUE(static_cast<Record*>(event)->done);
    --live_events;
  }
  bool capturing() noexcept override { return in_capture; }

  size_t capacity = size_t{1} << 40, held = 0;
  uintptr_t next = size_t{1} << 32;
  std::map<void*, size_t> segments;
  std::vector<std::unique_ptr<Record>> events;
  int live_events = 0;
  bool synchronized = false, in_capture = false;
  bool unrecorded = false;          // events wait for the end of another thread's capture
  StreamState* captured = nullptr;  // cannot be waited for
};

StreamState* make_stream() {
  auto* state = new StreamState;
  state->device = cuda_device(0);
  state->is_default = true;  // not destroyed through a backend
  state->retain();
  static auto* all = new std::vector<StreamState*>;  // reachable: kept on purpose, not leaked
  all->push_back(state);
  return state;
}

class PoolTest : public ::testing::Test {
 protected:
  PoolTest() {
    auto fake = std::make_unique<FakeDevice>();
    device = fake.get();
    home = make_stream();
    side = make_stream();
    pool = std::make_unique<Pool>("cuda:0", cuda_device(0), false, home, std::move(fake));
  }
  ~PoolTest() override { device->synchronized = true; }
  StoragePtr get(size_t bytes, StreamState* stream = nullptr) {
    return pool->allocate(bytes, stream ? stream : home);
  }

  FakeDevice* device;
  StreamState *home, *side;
  std::unique_ptr<Pool> pool;
};

TEST_F(PoolTest, RoundsAndCounts) {
  StoragePtr a = get(1), b = get(513), zero = get(0);
  EXPECT_EQ(a->bytes, 512u);
  EXPECT_EQ(b->bytes, 1024u);
  EXPECT_EQ(zero->bytes, 512u);
  EXPECT_EQ(a->device, cuda_device(0));
  const PoolStatistics s = pool->statistics();
  EXPECT_EQ(s.in_use, 2048u);
  EXPECT_EQ(s.cached, 2 * kMiB - 2048);
  EXPECT_EQ(s.allocations, 3u);
  EXPECT_EQ(s.device_allocations, 1u);
}

TEST_F(PoolTest, ReusesInTheStreamsOrderOnly) {
  void* address = get(4096)->data;
  EXPECT_NE(get(4096, side)->data, address);
  EXPECT_EQ(get(4096)->data, address);
}

TEST_F(PoolTest, JoinsNeighbours) {
  std::vector<StoragePtr> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(get(512 * 1024));  // one segment of 2 MiB, full
  void* first = blocks[0]->data;
  for (int i : {1, 3, 0, 2}) blocks[size_t(i)].reset();
  EXPECT_EQ(get(kMiB)->data, first);
  EXPECT_EQ(pool->statistics().device_allocations, 1u);
}

TEST_F(PoolTest, LargeBlocksAreBestFitAndSplit) {
  StoragePtr a = get(100 * kMiB), b = get(40 * kMiB);
  void *pa = a->data, *pb = b->data;
  a.reset();
  b.reset();
  StoragePtr c = get(39 * kMiB + kMiB / 2);  // the rest of half a MiB stays with the block
  EXPECT_EQ(c->data, pb);
  EXPECT_EQ(c->bytes, 40 * kMiB);
  StoragePtr d = get(60 * kMiB);
  EXPECT_EQ(d->data, pa);
  EXPECT_EQ(get(30 * kMiB)->data, static_cast<char*>(pa) + 60 * kMiB);
  EXPECT_EQ(pool->statistics().device_allocations, 2u);
}

TEST_F(PoolTest, WaitsForRecordedUses) {
  StoragePtr a = get(4096);
  void* address = a->data;
  pool->record_use(Pool::block_of(*a), Stream(side));
  pool->record_use(Pool::block_of(*a), Stream(side));
  pool->record_use(Pool::block_of(*a), Stream(home));  // its own stream needs no event
  a.reset();
  ASSERT_EQ(device->events.size(), 1u);
  EXPECT_EQ(device->events[0]->stream, side);
  EXPECT_EQ(pool->statistics().in_use, 0u);
  EXPECT_NE(get(4096)->data, address);
  device->events[0]->done = true;
  std::vector<StoragePtr> rest;
  bool seen = false;
  for (int i = 0; i < 2000 && !seen; ++i) {
    rest.push_back(get(4096));
    seen = rest.back()->data == address;
  }
  EXPECT_TRUE(seen);
  EXPECT_EQ(device->live_events, 0);
}

TEST_F(PoolTest, KeepsWhatCannotBeWaitedForYet) {
  device->capacity = 100 * kMiB;
  StoragePtr a = get(90 * kMiB);
  pool->record_use(Pool::block_of(*a), Stream(side));
  a.reset();
  device->unrecorded = true;
  EXPECT_THROW(get(90 * kMiB), OutOfMemoryError);
  EXPECT_EQ(device->live_events, 1);
  device->unrecorded = false;
  EXPECT_NO_THROW(get(90 * kMiB));
  EXPECT_EQ(device->live_events, 0);
}

TEST_F(PoolTest, OutOfMemoryFreesTheCacheFirst) {
  device->capacity = 100 * kMiB;
  get(90 * kMiB);
  EXPECT_EQ(device->held, 90 * kMiB);
  StoragePtr a = get(95 * kMiB, side);  // other stream: the cached block must go back first
  EXPECT_EQ(device->held, 96 * kMiB);
  try {
    get(10 * kMiB);
    FAIL() << "expected OutOfMemoryError";
  } catch (const OutOfMemoryError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("asked for 10485760"), std::string::npos) << text;
    EXPECT_NE(text.find("in use 100663296"), std::string::npos) << text;
    EXPECT_NE(text.find("free 4194304"), std::string::npos) << text;
  }
  EXPECT_EQ(get(3 * kMiB)->bytes, 4 * kMiB);  // a segment of the exact size when 20 MiB do not fit
  EXPECT_THROW(get(~size_t{0}), OutOfMemoryError);
}

TEST_F(PoolTest, KeepsTheLimit) {
  pool->set_limit(10 * kMiB);
  StoragePtr a = get(8 * kMiB);
  EXPECT_THROW(get(4 * kMiB), OutOfMemoryError);
  pool->set_limit(0);
  EXPECT_NO_THROW(get(4 * kMiB));
}

TEST_F(PoolTest, TheLimitIsForMemoryOutsideOfThePoolToo) {
  pool->set_limit(30 * kMiB);
  get(20 * kMiB);  // free again
  EXPECT_TRUE(pool->count_outside(24 * kMiB));
  EXPECT_EQ(device->held, 0u) << "given back for it";
  EXPECT_FALSE(pool->count_outside(8 * kMiB));
  EXPECT_THROW(get(8 * kMiB), OutOfMemoryError);
  pool->discount_outside(24 * kMiB);
  EXPECT_NO_THROW(get(8 * kMiB));
}

TEST_F(PoolTest, FreeAllBlocksKeepsLiveSegments) {
  StoragePtr live = get(512);
  get(30 * kMiB);
  get(30 * kMiB, side);
  pool->free_all_blocks();
  EXPECT_EQ(device->held, 2 * kMiB);
  live.reset();
  pool->free_all_blocks();
  EXPECT_EQ(device->held, 0u);
  EXPECT_EQ(pool->statistics().cached, 0u);
}

TEST_F(PoolTest, RetiredStreamsLeaveTheirBlocksToTheHomeStream) {
  void* address = get(30 * kMiB, side)->data;
  StoragePtr live = get(512, side);
  pool->retire_stream(side);
  EXPECT_EQ(get(30 * kMiB)->data, address);
  address = live->data;
  live.reset();
  EXPECT_EQ(get(512)->data, address);
}

TEST_F(PoolTest, PrivatePoolsShareNothingUntilTheyGo) {
  void* common = get(4096)->data;
  auto graph = std::make_unique<PrivatePool>(*pool);
  device->in_capture = true;
  StoragePtr inside = pool->allocate(4096, home, graph.get());
  void* address = inside->data;
  EXPECT_NE(address, common);
  EXPECT_TRUE(graph->owns(Pool::block_of(*inside)));
  inside.reset();
  inside = pool->allocate(4096, home, graph.get());
  EXPECT_EQ(inside->data, address);  // reused within the capture
  device->in_capture = false;
  StoragePtr outside = get(4096);
  EXPECT_EQ(outside->data, common);
  EXPECT_FALSE(graph->owns(Pool::block_of(*outside)));
  graph.reset();  // `inside` still lives
  EXPECT_NE(get(4096)->data, address);
  inside.reset();
  std::set<void*> seen;
  std::vector<StoragePtr> keep;
  for (int i = 0; i < 1500; ++i) keep.push_back(get(4096)), seen.insert(keep.back()->data);
  EXPECT_TRUE(seen.count(address));
}

// What launches write for a graph (array/launch_input.h) relies on this: recorded work of the
// captured stream writes its memory neither before nor after it was handed out.
TEST_F(PoolTest, PrivatePoolsKeepStreamsApart) {
  auto graph = std::make_unique<PrivatePool>(*pool);
  StreamState* captured = make_stream();
  std::set<void*> written;
  const auto record = [&] {
    std::vector<StoragePtr> arrays;
    for (int i = 0; i < 5000; ++i) {
      arrays.push_back(pool->allocate(512, captured, graph.get()));
      written.insert(arrays.back()->data);
    }
    while (!arrays.empty()) arrays.pop_back();
  };
  record();
  const StoragePtr input = pool->allocate(16, home, graph.get());
  record();
  EXPECT_EQ(written.count(input->data), 0u);
  EXPECT_EQ(written.size(), 5000u);  // the captured stream takes its own again
  EXPECT_TRUE(graph->owns(Pool::block_of(*input)));
}

TEST_F(PoolTest, PrivatePoolsLeaveTheirMemoryToAStream) {
  auto graph = std::make_unique<PrivatePool>(*pool);
  StreamState* captured = make_stream();
  StoragePtr result = pool->allocate(4096, captured, graph.get());
  void* freed = pool->allocate(30 * kMiB, captured, graph.get())->data;
  void* address = result->data;
  ASSERT_EQ(graph->streams().size(), 1u);
  EXPECT_TRUE(graph->streams()[0] == Stream(captured));
  graph->leave_to(Stream(side), {Stream(home)});
  graph.reset();
  EXPECT_NE(get(30 * kMiB)->data, freed);
  EXPECT_EQ(get(30 * kMiB, side)->data, freed);
  result.reset();  // it may have been used on the home stream
  ASSERT_EQ(device->events.size(), 1u);
  EXPECT_EQ(device->events[0]->stream, home);
  EXPECT_NE(get(4096, side)->data, address);
  device->events[0]->done = true;
  std::set<void*> seen;
  std::vector<StoragePtr> keep;
  for (int i = 0; i < 1500; ++i) keep.push_back(get(4096, side)), seen.insert(keep.back()->data);
  EXPECT_TRUE(seen.count(address));
}

TEST_F(PoolTest, KeepsSegmentsOfCapturedStreams) {
  get(30 * kMiB);
  get(30 * kMiB, side);
  device->captured = side;
  pool->free_all_blocks();
  EXPECT_EQ(device->held, 30 * kMiB);
  device->captured = nullptr;
  pool->free_all_blocks();
  EXPECT_EQ(device->held, 0u);
}

TEST_F(PoolTest, ReleaseHookTakesBlocksOver) {
  static std::vector<Block*> taken;
  taken.clear();
  Pool::set_release_hook([](Block& block) { return taken.push_back(&block), true; });
  void* address = get(4096)->data;
  Pool::set_release_hook(nullptr);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_NE(get(4096)->data, address);
  pool->release(*taken[0]);
  EXPECT_EQ(pool->statistics().in_use, 0u);
}

// What the stress test believes about every byte that was ever handed out.
class Model {
 public:
  struct Region {
    size_t bytes;
    StreamState* stream;
    std::vector<FakeDevice::Record*> events;
  };

  void allocated(const Storage& s, StreamState* stream) {
    const auto begin = reinterpret_cast<uintptr_t>(s.data);
    auto overlaps = [&](const std::map<uintptr_t, Region>& regions) {
      auto it = regions.upper_bound(begin);
      if (it != regions.begin() && std::prev(it)->first + std::prev(it)->second.bytes > begin)
        return true;
      return it != regions.end() && it->first < begin + s.bytes;
    };
    ASSERT_FALSE(overlaps(live)) << "a live block was handed out twice";
    for (auto it = waiting.begin(); it != waiting.end();) {
      const Region& r = it->second;
      bool done = true;
      for (auto* event : r.events) done &= event->done;
      if (done) {
        it = waiting.erase(it);
      } else {
        ASSERT_FALSE(it->first < begin + s.bytes && begin < it->first + r.bytes)
            << "reuse before its events";
        ++it;
      }
    }
    live[begin] = {s.bytes, stream, {}};
    in_use += s.bytes;
    ++allocations;
    peak = std::max(peak, in_use);
  }
  void released(uintptr_t address, std::vector<FakeDevice::Record*> events) {
    Region r = live.at(address);
    live.erase(address);
    in_use -= r.bytes;
    r.events = std::move(events);
    if (!r.events.empty()) waiting.emplace(address, r);
  }

  std::map<uintptr_t, Region> live;
  std::multimap<uintptr_t, Region> waiting;
  size_t in_use = 0, peak = 0;
  uint64_t allocations = 0;
};

TEST_F(PoolTest, RandomStressAgainstAModel) {
  std::mt19937_64 random(20);
  auto below = [&](uint64_t n) { return random() % n; };
  StreamState* streams[] = {home, side, make_stream()};
  device->capacity = 600 * kMiB;
  Model model;
  std::vector<StoragePtr> live;
  std::vector<size_t> open_events;
  int out_of_memory = 0;
  for (int step = 0; step < 60000; ++step) {
    const uint64_t action = below(100);
    if (action < 50 || live.empty()) {
      const size_t limit = size_t{1} << (4 + below(22));
      StreamState* stream = streams[below(3)];
      try {
        StoragePtr s = pool->allocate(below(limit), stream);
        model.allocated(*s, stream);
        if (HasFatalFailure()) return;
        live.push_back(s);
      } catch (const OutOfMemoryError&) {
        ++out_of_memory;
        EXPECT_GT(model.in_use, 0u);
      }
    } else if (action < 96) {
      std::swap(live[below(live.size())], live.back());
      const auto address = reinterpret_cast<uintptr_t>(live.back()->data);
      const size_t before = device->events.size();
      if (below(4) == 0) pool->record_use(Pool::block_of(*live.back()), Stream(streams[below(3)]));
      live.pop_back();
      std::vector<FakeDevice::Record*> events;
      for (size_t i = before; i < device->events.size(); ++i)
        events.push_back(device->events[i].get());
      model.released(address, events);
    } else if (action < 99) {
      for (size_t i = 0; i < device->events.size(); ++i) {
        if (below(2)) device->events[i]->done = true;
      }
    } else if (below(50) == 0) {
      pool->free_all_blocks();
    } else if (below(20) == 0) {
      pool->reset_peak();
      model.peak = model.in_use;
    }
    const PoolStatistics s = pool->statistics();
    ASSERT_EQ(s.in_use, model.in_use);
    ASSERT_EQ(s.peak_in_use, model.peak);
    ASSERT_EQ(s.allocations, model.allocations);
    ASSERT_EQ(s.in_use + s.cached, device->held);
  }
  EXPECT_GT(out_of_memory, 0);
  live.clear();
  pool->free_all_blocks();
  EXPECT_EQ(device->held, 0u);
  EXPECT_EQ(device->live_events, 0);
}

TEST_F(PoolTest, ThreadsShareThePool) {
  device->capacity = size_t{1} << 44;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<StoragePtr> mine;
      for (int i = 0; i < 20000; ++i) {
        if (mine.size() > 50 || (random() % 2 && !mine.empty()))
          mine.pop_back();
        else
          mine.push_back(get(random() % 100000));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool->statistics().in_use, 0u);
  pool->free_all_blocks();
  EXPECT_EQ(device->held, 0u);
}

// Memory that returns to its stream is given out again without a word to the device.
TEST_F(PoolTest, FastPathAsksTheDeviceForNothing) {
  void* const first = get(4096)->data;
  const PoolStatistics before = pool->statistics();
  const size_t held = device->held;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(get(4096)->data, first);
  EXPECT_EQ(pool->statistics().device_allocations, before.device_allocations);
  EXPECT_EQ(device->held, held);
  EXPECT_TRUE(device->events.empty());
  EXPECT_FALSE(device->synchronized);
}

}  // namespace
}  // namespace catena::gpu
