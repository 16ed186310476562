// Capture and replay of steps.
#include "catena/core/graph.h"

#include <chrono>
#include <memory>
#include <thread>

#include "catena/array/elementwise.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/core/memory_pool.h"
#include "catena/kernels/optimizer.h"
#include "gpu.h"

namespace catena {
namespace {

using namespace test;

const Device kGpu = cuda_device(0);

// x += 1 through the slot of element-wise operations.
void add_one(const Array& x) { add(x, 1, x); }

// Runs what the steps below consist of once, so that no kernel is compiled during a capture.
void warm_up() {
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kInt64}) {
    const Array x = zeros({8}, {dtype, kGpu});
    add(add(x, 1), x, x);
  }
}

TEST(CudaGraph, ReplaysTheStep) {
  CATENA_NEEDS_GPUS(1);
  const Array x = zeros({1000}, {Dtype::kFloat32, kGpu});
  add_one(x);
  cuda::Graph graph = cuda::Graph::capture(kGpu, [x] { add_one(x); });
  EXPECT_EQ(x(0).item<float>(), 1);  // recorded, not run
  for (int i = 0; i < 10; ++i) graph.launch();
  EXPECT_EQ(x(999).item<float>(), 11);
  EXPECT_EQ(graph.device(), kGpu);
  EXPECT_FALSE(cuda::is_capturing(kGpu));
}

TEST(CudaGraph, KeepsItsMemoryToItself) {
  CATENA_NEEDS_GPUS(1);
  const Array a = whole_numbers({64, 64}, Dtype::kFloat32).to(kGpu);
  Array product;
  auto step = [&] { product = matmul(add(matmul(a, a), 1), a); };
  step();
  const Array expected = product.copy();
  cuda::Graph graph = cuda::Graph::capture(kGpu, step);
  // Work between launches must not get the memory that replays write.
  for (int i = 0; i < 20; ++i) {
    graph.launch();
    const Array other = full({64, 64}, float(i), {Dtype::kFloat32, kGpu});
    expect_equal(product, expected, "replayed product");
    ASSERT_EQ(other(5, 5).item<float>(), float(i));
  }
}

TEST(CudaGraph, KeepsBlocksThatTheStepLetsGo) {
  CATENA_NEEDS_GPUS(1);
  warm_up();
  Array state = full({5000}, 3.0f, {Dtype::kFloat32, kGpu});
  Array result;
  cuda::Graph graph = cuda::Graph::capture(kGpu, [&] {
    result = add(state, 1);
    state = Array();  // the recorded work reads it at every launch
  });
  const Array other = full({5000}, -1.0f, {Dtype::kFloat32, kGpu});
  graph.launch();
  EXPECT_EQ(result(4999).item<float>(), 4);
  EXPECT_EQ(other(0).item<float>(), -1);
}

TEST(CudaGraph, KeepsBlocksOfOtherAllocators) {
  CATENA_NEEDS_GPUS(1);
  warm_up();
  MemoryPool pool;
  const auto state_of = [](bool pooled, const MemoryPool& from) {
    const AllocatorScope scope(pooled ? from.allocator() : Allocator(&allocate_unpooled));
    return full({5000}, 3.0f, {Dtype::kFloat32, kGpu});
  };
  for (const bool pooled : {true, false}) {
    Array state = state_of(pooled, pool), result;
    {
      cuda::Graph graph = cuda::Graph::capture(kGpu, [&] {
        result = add(state, 1);
        state = Array();
      });
      const Array other = state_of(pooled, pool) * -1;
      graph.launch();
      EXPECT_EQ(result(4999).item<float>(), 4);
      if (pooled) {
        EXPECT_GT(pool.used_bytes(kGpu), size_t{20000}) << "held by the graph";
      }
    }
    EXPECT_EQ(pool.used_bytes(kGpu), 0u);
  }
}

// Of which the step has recorded a use, as collectives do.
TEST(CudaGraph, KeepsBorrowedMemoryWhoseUseWasRecorded) {
  CATENA_NEEDS_GPUS(1);
  warm_up();
  const Array memory = full({5000}, 3.0f, {Dtype::kFloat32, kGpu});
  auto owner = std::make_shared<int>(0);
  const std::weak_ptr<int> kept = owner;
  Array state = Array::from_storage(
      borrow(kGpu, memory.raw_data(), size_t(memory.nbytes()), std::move(owner)), 0, memory.shape(),
      memory.strides(), memory.dtype());
  Array result;
  cuda::Graph graph = cuda::Graph::capture(kGpu, [&] {
    record_use(*state.storage(), current_stream(kGpu));
    result = add(state, 1);
  });
  state = Array();
  EXPECT_FALSE(kept.expired()) << "replays read it";
  graph.launch();
  EXPECT_EQ(result(4999).item<float>(), 4);
  graph = {};
  EXPECT_TRUE(kept.expired());
}

// Something that takes long before a result is read.
void delay(const Stream& stream) {
  stream.launch_host_func([] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
}

TEST(CudaGraph, LeavesResultsToTheStreamThatReadsThem) {
  CATENA_NEEDS_GPUS(1);
  warm_up();
  const Shape shape{3 << 20};
  const Array a = ones(shape, {Dtype::kFloat32, kGpu});
  synchronize(kGpu);
  const Stream stream = Stream::create(kGpu);
  Array read;
  {
    const StreamScope scope(stream);
    Array result;
    cuda::Graph graph = cuda::Graph::capture(kGpu, [&] { result = add(a, 1); });
    graph.launch();
    delay(stream);
    read = add(result, 1);
  }
  std::vector<Array> others;  // on the default stream
  for (int i = 0; i < 4; ++i) others.push_back(full(shape, -1.0f, {Dtype::kFloat32, kGpu}));
  stream.synchronize();
  EXPECT_EQ(read.min().item<float>(), 3);
}

TEST(CudaGraph, SideStreamsDoNotReuseWhatTheCapturedStreamReads) {
  CATENA_NEEDS_GPUS(1);
  warm_up();
  const Array a = ones({5000}, {Dtype::kFloat32, kGpu});
  const Stream side = Stream::create(kGpu);
  synchronize(kGpu);
  const void *read = nullptr, *written = nullptr;
  Array kept[2];
  cuda::Graph graph = cuda::Graph::capture(kGpu, [&] {
    const Stream main = current_stream(kGpu);
    side.wait(main);
    Array t;
    {
      const StreamScope scope(side);
      t = add(a, 1);
    }
    main.wait(side);
    kept[0] = add(t, 1);
    record_use(*t.storage(), main);
    read = t.storage()->data;
    t = Array();
    const StreamScope scope(side);
    kept[1] = add(a, 5);
    written = kept[1].storage()->data;
    main.wait(side);
  });
  EXPECT_NE(read, written);
  graph.launch();
  EXPECT_EQ(kept[0](0).item<float>(), 3);
}

TEST(CudaGraph, LaunchesOnSeveralStreamsDrawInTheirOrder) {
  CATENA_NEEDS_GPUS(1);
  warm_up();
  const Shape shape{1 << 16};
  const auto draw = [&](Array& total) {
    total += random::uniform(shape, 0, 1, {dtype::float32, kGpu});
  };
  Array expected = zeros(shape, {dtype::float32, kGpu}), total = expected.copy();
  random::seed(5);
  draw(expected);
  draw(expected);
  random::seed(5);
  cuda::Graph graph = cuda::Graph::capture(kGpu, [&] { draw(total); });
  synchronize(kGpu);
  const Stream first = Stream::create(kGpu), second = Stream::create(kGpu);
  delay(first);
  for (const Stream& stream : {first, second}) {
    const StreamScope scope(stream);
    graph.launch();
  }
  second.synchronize();
  EXPECT_TRUE(array_equal(total, expected));
}

// The place of a draw is written before each launch: not where the step itself writes.
TEST(CudaGraph, DrawsAreThoseOfEagerStepsBesideArraysThatComeAndGo) {
  CATENA_NEEDS_GPUS(1);
  warm_up();
  const Array a = ones({2}, {Dtype::kFloat32, kGpu});
  const auto step = [&](Array& total) {
    for (int i = 0; i < 3; ++i) add(add(a, 1), 2);
    total += random::uniform({300}, 0, 1, {dtype::float32, kGpu});
    add(a, 1);
    total += random::uniform({300}, 0, 1, {dtype::float32, kGpu});
  };
  Array expected = zeros({300}, {dtype::float32, kGpu}), total = expected.copy();
  random::seed(5);
  for (int i = 0; i < 3; ++i) step(expected);
  random::seed(5);
  cuda::Graph graph = cuda::Graph::capture(kGpu, [&] { step(total); });
  for (int i = 0; i < 3; ++i) graph.launch();
  EXPECT_TRUE(array_equal(total, expected));
}

TEST(CudaGraph, GivesItsMemoryBack) {
  CATENA_NEEDS_GPUS(1);
  warm_up();
  synchronize(kGpu);
  const Array a = ones({1 << 20}, {Dtype::kFloat32, kGpu});
  free_all_blocks(kGpu);
  const PoolStatistics before = memory_statistics(kGpu);
  for (int i = 0; i < 5; ++i) {
    cuda::Graph graph = cuda::Graph::capture(kGpu, [&] { add(add(a, 1), 2); });
    graph.launch();
  }
  EXPECT_EQ(memory_statistics(kGpu).in_use, before.in_use);
  free_all_blocks(kGpu);
  EXPECT_EQ(memory_statistics(kGpu).cached, before.cached);
}

// The error says which call cannot be recorded, and the next capture works.
void expect_refused(const char* part, const std::function<void()>& step) {
  try {
    cuda::Graph::capture(kGpu, step);
    FAIL() << "expected an Error that names " << part;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
  EXPECT_FALSE(cuda::is_capturing(kGpu));
  const Array x = zeros({3}, {Dtype::kFloat32, kGpu});
  add_one(x);
  cuda::Graph graph = cuda::Graph::capture(kGpu, [x] { add_one(x); });
  graph.launch();
  EXPECT_EQ(x(2).item<float>(), 2);
}

// Parameters that are arrays are not looked at by the host, so that the draw can be captured.
TEST(CudaGraph, DrawsWithArraysAsParameters) {
  CATENA_NEEDS_GPUS(1);
  const Array mean = whole_numbers({3, 1}, Dtype::kFloat32).to(kGpu),
              deviation = full({4}, 2.5f, {Dtype::kFloat32, kGpu});
  struct Drawn {
    Array normal, uniform, gumbel, triangular;
  };
  const auto draw = [&](RandomState& state) {
    return Drawn{state.normal(none, mean, deviation, Dtype::kFloat32),
                 state.uniform(none, mean, mean + deviation, Dtype::kFloat32),
                 state.gumbel(none, mean, deviation),
                 state.triangular(none, mean - 1, mean, mean + deviation)};
  };
  RandomState eager(3), captured(3), other(4);
  draw(other);  // kernels are compiled
  Drawn replayed;
  cuda::Graph graph = cuda::Graph::capture(kGpu, [&] { replayed = draw(captured); });
  for (int i = 0; i < 3; ++i) {
    graph.launch();
    const Drawn expected = draw(eager);
    expect_equal(replayed.normal, expected.normal, message("normal ", i));
    expect_equal(replayed.uniform, expected.uniform, message("uniform ", i));
    expect_equal(replayed.gumbel, expected.gumbel, message("gumbel ", i));
    expect_equal(replayed.triangular, expected.triangular, message("triangular ", i));
  }
  EXPECT_EQ(replayed.normal.shape(), (Shape{3, 4}));
  EXPECT_THROW(eager.normal(none, mean, deviation - 3), ValueError);
}

// Positions are sorted in memory that belongs to the graph.
TEST(CudaGraph, AddsInTheOrderOfManyPositions) {
  CATENA_NEEDS_GPUS(1);
  const Array positions = whole_numbers({60000}, Dtype::kInt32, -40000, 39999),
              values = whole_numbers({60000}, Dtype::kFloat16, -1, 1);
  const Array expected = zeros({40000}, {Dtype::kFloat16, cpu()});
  const Array sums = expected.to(kGpu), p = positions.to(kGpu), v = values.to(kGpu);
  const auto step = [&] { scatter_add(sums, p, v, 0, OutOfRange::kWrap); };
  step();
  cuda::Graph graph = cuda::Graph::capture(kGpu, step);
  for (int i = 0; i < 3; ++i) graph.launch();
  for (int i = 0; i < 4; ++i) scatter_add(expected, positions, values, 0);
  expect_equal(sums, expected, "sums");
}

TEST(CudaGraph, RefusesWhatNeedsTheHost) {
  CATENA_NEEDS_GPUS(1);
  const Array x = ones({3}, {Dtype::kFloat32, kGpu});
  const Array host = ones({3}, {Dtype::kFloat32, cpu()});
  expect_refused("copy from a GPU to the host", [&] { x(0).item<float>(); });
  expect_refused("synchronize(device)", [&] { synchronize(kGpu); });
  expect_refused("Stream::synchronize", [&] { current_stream(kGpu).synchronize(); });
  expect_refused("not pinned", [&] { host.to(kGpu); });
  expect_refused("free_all_blocks", [&] { free_all_blocks(kGpu); });
  expect_refused("already records", [&] { cuda::Graph::capture(kGpu, [] {}); });
  expect_refused("my own error", [&] { throw Error("my own error"); });
}

TEST(CudaGraph, RefusesAnotherDevice) {
  CATENA_NEEDS_GPUS(2);
  expect_refused("cuda:1", [&] { zeros({3}, {Dtype::kFloat32, cuda_device(1)}); });
}

TEST(CudaGraph, RefusesTheCpu) {
  EXPECT_THROW(cuda::Graph::capture(cpu(), [] {}), DeviceError);
  cuda::Graph empty;
  EXPECT_FALSE(empty.defined());
  EXPECT_THROW(empty.launch(), ValueError);
}

TEST(CudaGraph, RecordsSideStreams) {
  CATENA_NEEDS_GPUS(1);
  const Array x = zeros({1 << 16}, {Dtype::kFloat32, kGpu}),
              y = zeros({1 << 16}, {Dtype::kFloat32, kGpu});
  warm_up();
  add_one(x);
  add_one(y);
  cuda::Graph graph = cuda::Graph::capture(kGpu, [x, y] {
    const Stream main = current_stream(kGpu), side = Stream::create(kGpu);
    side.wait(main);
    {
      StreamScope scope(side);
      const Array more = add(y, 1);
      add(more, y, y);
    }
    add_one(x);
    main.wait(side);
    add(x, y, x);
  });
  // x, y: (1, 1) -> y = 2y + 1, x = x + 1 + y
  double ex = 1, ey = 1;
  for (int i = 0; i < 8; ++i) {
    graph.launch();
    ey = 2 * ey + 1;
    ex = ex + 1 + ey;
    ASSERT_EQ(y(7).item<double>(), ey);
    ASSERT_EQ(x(7).item<double>(), ex);
  }
}

TEST(CudaGraph, OptimizerStepsReplayBitForBit) {
  CATENA_NEEDS_GPUS(1);
  warm_up();
  constexpr int64_t kCount = 10007;
  const Array start = real_numbers({kCount}, Dtype::kFloat32).to(kGpu);
  const Array gradient = real_numbers({kCount}, Dtype::kFloat32).to(kGpu);
  const Array t = zeros({}, {Dtype::kInt64, kGpu}), rate = full({}, 0.01, {Dtype::kFloat64, kGpu});
  struct Run {
    Array p, m, v;
    OptimizerCall call(const Array& g) {
      OptimizerCall c{};
      c.rule = &optimizer_rule("Adam");
      c.parameter = &p;
      c.gradient = &g;
      c.states[0] = &m;
      c.states[1] = &v;
      c.weight_decay = 1e-4;
      c.numbers[0] = 0.9;
      c.numbers[1] = 0.999;
      c.numbers[2] = 1e-8;
      return c;
    }
  };
  auto fresh = [&] {
    return Run{start.copy(), zeros({kCount}, {Dtype::kFloat32, kGpu}),
               zeros({kCount}, {Dtype::kFloat32, kGpu})};
  };
  Run eager = fresh(), replayed = fresh();
  cuda::Graph graph = cuda::Graph::capture(kGpu, [&] {
    add(t, 1, t);
    OptimizerCall c = replayed.call(gradient);
    c.learning_rate.device_value = &rate;
    c.step.device_value = &t;
    kernels::optimizer_update(kGpu, c);
  });
  for (int step = 1; step <= 50; ++step) {
    const double lr = step < 20 ? 0.01 : 0.003;
    if (step == 20) rate.fill(lr);
    OptimizerCall c = eager.call(gradient);
    c.learning_rate.value = lr;
    c.step.value = step;
    kernels::optimizer_update(kGpu, c);
    graph.launch();
  }
  expect_equal(replayed.p, eager.p, "parameters after 50 steps");
  expect_equal(replayed.m, eager.m, "first moments");
  expect_equal(replayed.v, eager.v, "second moments");
}

}  // namespace
}  // namespace catena
