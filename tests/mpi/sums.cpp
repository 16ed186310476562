// Sums and gathers of GPUs in all the ways that they can go, in the job of suite_main.cpp.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/comm/factory.h"
#include "catena/comm/internals.h"
#include "catena/core/graph.h"
#include "catena/core/stream.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/optimizers/adam.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "operands.h"

namespace catena {
namespace {

using comm::Reduction;
using mpi_test::expected;
using mpi_test::Floats;
using mpi_test::made_with;
using mpi_test::operands;
using mpi_test::Placed;
using mpi_test::reduce_at;

CommunicatorPtr made_with(Communicator& all, const char* sums, const char* memory) {
  return made_with(all, {{"CATENA_ALL_REDUCE", sums}, {"CATENA_SHARED_MEMORY", memory}});
}

// Communicators take seconds to make where ranks share a GPU: the tests share theirs.
class ProcessSums : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    all_ = create_communicator();
    if (all_->name() == "nccl") two_shot_ = made_with(*all_, "two-shot", "peers");
  }
  static void TearDownTestSuite() {
    two_shot_.reset();
    all_.reset();
  }
  void SetUp() override {
    if (!two_shot_) GTEST_SKIP() << "SKIPPED over " << all_->name() << ": no GPUs";
    const std::string ways = comm::internals(*two_shot_).ways();
    if (ways.find("in two steps") == std::string::npos)
      GTEST_SKIP() << "SKIPPED: the GPUs do not share memory (" << ways << ")";
  }
  static inline CommunicatorPtr all_, two_shot_;
};

void expect_sum(Communicator& comm, Reduction kind, int64_t n, bool in_place, bool shared,
                int64_t in_offset, int64_t out_offset) {
  SCOPED_TRACE(::testing::Message()
               << name(kind) << " of " << n << (in_place ? ", in place" : "")
               << (shared ? ", shared" : "") << ", offsets " << in_offset << " and " << out_offset);
  Placed out(comm, shared, n, out_offset);
  Placed in(comm, false, in_place ? 0 : n, in_offset);
  const Array& x = in_place ? out.view : in.view;
  x.assign(array(operands(comm.rank(), n), cpu(0)).to(comm.device()));
  comm.all_reduce(x, reduce_at(kind, comm.rank()), out.view);
  EXPECT_TRUE(out.view.to_vector<float>() == expected(kind, comm.size(), n));
  EXPECT_TRUE(out.is_intact());
  if (in_place) return;
  EXPECT_TRUE(x.to_vector<float>() == operands(comm.rank(), n));
}

// The sum of 16-bit elements, made in float32 in the order of the ranks.
void expect_rounded_once(Communicator& comm, Dtype dtype, int64_t n) {
  const auto small = [&](int rank) { return array(operands(rank, n), cpu(0)).astype(dtype); };
  const auto seen = [](const Array& a) {
    return a.to(cpu(0)).astype(Dtype::kFloat32).to_vector<float>();
  };
  Floats sums(size_t(n), 0.f);
  for (int r = 0; r < comm.size(); ++r) {
    const Floats x = seen(small(r));
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = r == 0 ? x[i] : sums[i] + x[i];
  }
  const Array x = small(comm.rank()).to(comm.device());
  EXPECT_TRUE(seen(comm.all_reduce(x)) == seen(array(sums, cpu(0)).astype(dtype)))
      << dtype << " " << n;
}

// A mean of parts of so many elements, and their gathers, in place and not. in_order: whether sums
// are made in the order of the ranks.
void expect_parts(Communicator& comm, int64_t part, bool shared, bool in_order) {
  const int ranks = comm.size(), rank = comm.rank();
  const int64_t n = part * ranks, offset = shared ? 0 : (rank + part) % 3;
  Placed all(comm, shared, n, offset), own(comm, false, part, rank % 2);
  all.view.assign(array(operands(rank, n), cpu(0)).to(comm.device()));
  comm.reduce_scatter(all.view, Reduction::kMean, own.view);
  const Floats sums = expected(Reduction::kMean, ranks, n);
  const Floats mine(sums.begin() + rank * part, sums.begin() + (rank + 1) * part);
  if (in_order) {
    EXPECT_TRUE(own.view.to_vector<float>() == mine) << part << (shared ? ", shared" : "");
  }
  own.view.assign(array(mine, cpu(0)).to(comm.device()));
  comm.all_gather(own.view, all.view);
  EXPECT_TRUE(all.view.to_vector<float>() == sums) << part << (shared ? ", shared" : "");
  const Array place = all.view(Slice(rank * part, (rank + 1) * part));
  all.view.fill(0);
  place.assign(own.view);
  comm.all_gather(place, all.view);
  EXPECT_TRUE(all.view.to_vector<float>() == sums) << part << (shared ? ", shared" : "");
  EXPECT_TRUE(all.is_intact() && own.is_intact());
}

// Sums of several sizes and communicators, on the current stream and a side stream.
void expect_replays(Communicator& comm, Communicator& other, const std::array<int64_t, 3>& sizes) {
  const Device gpu = comm.device();
  const int rank = comm.rank();
  const Placed shared(comm, true, sizes[0], 0), plain(comm, false, sizes[1], 1),
      side(other, false, sizes[2], 0);
  const auto step = [&] {
    comm.all_reduce(shared.view, Reduction::kMean, shared.view);
    const Event reduced = other.all_reduce_async(side.view, Reduction::kMean, other.side_stream());
    comm.all_reduce(plain.view, Reduction::kMean, plain.view);
    current_stream(gpu).wait(reduced);
    for (const Placed* x : {&shared, &plain, &side}) x->view.assign(x->view * float(rank + 1));
  };
  const auto run = [&](const std::function<void()>& once) {
    Floats result;
    for (const Placed* x : {&shared, &plain, &side})
      x->view.assign(array(operands(rank, x->view.size()), cpu(0)).to(gpu));
    for (int i = 0; i < 10; ++i) once();
    for (const Placed* x : {&shared, &plain, &side}) {
      const Floats values = x->view.to_vector<float>();
      result.insert(result.end(), values.begin(), values.end());
    }
    return result;
  };
  const Floats eager = run(step);
  cuda::Graph graph = cuda::Graph::capture(gpu, step);
  EXPECT_TRUE(run([&] { graph.launch(); }) == eager);
  EXPECT_TRUE(run([&] { graph.launch(); }) == eager);
}

// Around the borders of packs, lines, blocks and ways.
const std::vector<int64_t> kSizesOfSums = {
    1, 2, 3, 4, 5, 31, 32, 33, 127, 1000, 4095, 16383, 16384, 16385, 262145, 1000003, 5000001};

void expect_sums(Communicator& comm, const std::vector<int64_t>& sizes) {
  for (const int64_t n : sizes) {
    const int64_t apart = comm.rank() + n;  // other offsets on other ranks
    expect_sum(comm, Reduction::kSum, n, true, false, 0, 0);
    expect_sum(comm, Reduction::kMean, n, false, false, apart % 4, (apart + 1) % 3);
    expect_sum(comm, Reduction::kWeighted, n, true, false, 0, apart % 2);
  }
}

TEST_F(ProcessSums, AreMadeInTheOrderOfTheRanks) {
  expect_sums(*two_shot_, kSizesOfSums);
  expect_sums(*made_with(*all_, "exchange", "pool"), {1, 5, 1000, 16384, 16385, 65536});
  expect_sums(*made_with(*all_, "auto", "peers"), {33, 16384, 16385, 262145});
}

TEST_F(ProcessSums, MayBeLarge) {
  expect_sum(*two_shot_, Reduction::kMean, (4 << 20) + 3, true, true, 0, 0);
}

// Where the others write sums into the array itself, into that of some ranks alone among them.
TEST_F(ProcessSums, AreWrittenIntoSharedMemory) {
  for (const int64_t n : {3, 32, 1000, 16385, 262145}) {
    expect_sum(*two_shot_, Reduction::kMean, n, true, true, 0, 0);
    expect_sum(*two_shot_, Reduction::kSum, n, false, true, 1, 4 * two_shot_->rank());
    expect_sum(*two_shot_, Reduction::kSum, n, true, true, 0, two_shot_->rank() % 4);
  }
}

TEST_F(ProcessSums, OfSixteenBitsAreRoundedOnce) {
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16})
    for (const int64_t n : {1, 7, 8, 9, 1001, 70001}) expect_rounded_once(*two_shot_, dtype, n);
}

// A reduce-scatter gives the bits of an all-reduce, and gathers of parts in place make it whole.
TEST_F(ProcessSums, MayBeScatteredAndGathered) {
  for (const int64_t part : {1, 4, 6, 100, 5000, 30004, 2500004})
    // Parts that are not whole packs go to NCCL, which adds in its own order.
    for (const bool shared : {false, true}) expect_parts(*two_shot_, part, shared, part % 4 == 0);
}

TEST_F(ProcessSums, AreReplayed) {
  const CommunicatorPtr other = made_with(*all_, "two-shot", "pool");
  expect_replays(*two_shot_, *other, {100003, 40002, 70000});
}

// A call waits for the one before it on another stream, but not for what follows that one there.
TEST_F(ProcessSums, WaitForTheCallBeforeAlone) {
  const CommunicatorPtr comm = made_with(*all_, "auto", "pool");
  const Device gpu = comm->device();
  const Stream a = Stream::create(gpu), b = Stream::create(gpu);
  for (const int64_t n : {1000, 1000000}) {  // by exchange and in two steps
    const Array x = full({n}, 1.f, {Dtype::kFloat32, gpu});
    const auto call = [&](const Stream& stream) {
      comm->all_reduce_async(x, Reduction::kMean, stream);
    };
    call(a);
    call(b);
    call(a);
    const auto may_end = std::make_shared<std::atomic<bool>>(false);
    a.launch_host_func([may_end] {
      for (int i = 0; i < 5000 && !*may_end; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    call(b);
    b.synchronize();
    EXPECT_FALSE(a.query());
    *may_end = true;
    a.synchronize();
    EXPECT_TRUE(x.to_vector<float>() == Floats(size_t(n), 1.f));
  }
}

TEST_F(ProcessSums, GraphsKeepTheSharedMemoryOfTheirCalls) {
  const CommunicatorPtr comm = made_with(*all_, "two-shot", "peers");
  const comm::CommunicatorInternals inside = comm::internals(*comm);
  constexpr int64_t kCount = 1 << 20;
  const void* where = nullptr;
  cuda::Graph graph;
  {
    const Placed x(*comm, true, kCount, 0);
    where = x.whole.raw_data();
    const auto step = [&] { comm->all_reduce(x.view, Reduction::kMean, x.view); };
    step();
    graph = cuda::Graph::capture(comm->device(), step);
  }
  const size_t bytes = size_t(kCount) * 4;
  StoragePtr next = inside.allocate_shared(bytes);
  ASSERT_TRUE(next);
  EXPECT_NE(next->data, where) << "replays write there";
  graph.launch();
  synchronize(comm->device());
  next = {};
  graph = {};
  next = inside.allocate_shared(bytes);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->data, where);
}

TEST_F(ProcessSums, SharedMemoryIsReusedAndOutlivesItsCommunicator) {
  CommunicatorPtr comm = made_with(*all_, "auto", "peers");
  const comm::CommunicatorInternals inside = comm::internals(*comm);
  StoragePtr first = inside.allocate_shared(5 << 20), second = inside.allocate_shared(5 << 20);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->data, second->data);
  const void* const where = first->data;
  // One rank lets it go later than the others.
  const StoragePtr held = comm->rank() == 0 ? first : StoragePtr();
  first = {};
  StoragePtr third = inside.allocate_shared(5 << 20);
  EXPECT_NE(third->data, where);
  const void* const next = third->data;
  third = {};
  third = inside.allocate_shared(4 << 20);
  EXPECT_EQ(third->data, next);
  EXPECT_FALSE(inside.allocate_shared(size_t(1 + comm->rank()) << 20)) << "of different sizes";

  const Shape shape{1 << 20};
  const Array x =
      Array::from_storage(third, 0, shape, contiguous_strides(shape, 4), Dtype::kFloat32);
  x.fill(float(comm->rank()));
  comm->all_reduce(x, Reduction::kSum, x);
  comm.reset();
  EXPECT_EQ(x.to_vector<float>()[12345], float(all_->size() * (all_->size() - 1) / 2));
  x.fill(5);
  EXPECT_EQ(x.to_vector<float>()[0], 5.f);
}

// The parameters after steps whose gradients lie in the communicator's memory.
Floats trained(Communicator& comm, parallel::Sharding sharding, bool replayed) {
  const Device gpu = comm.device();
  const DeviceScope scope(gpu);
  functions::Linear model(300, 200);
  model.W.data().assign(array(operands(9, 60000), {200, 300}, cpu(0)) * 0.01f);
  model.to(gpu);
  auto optimizer =
      create_multi_node_optimizer(optimizers::Adam(0.01), comm, {.sharding = sharding});
  optimizer.setup(model);
  const Array x = array(operands(comm.rank(), 1200), {4, 300}, cpu(0)).to(gpu);
  const auto step = [&] {
    optimizer.zero_grads();
    const Variable y = model(Variable(x));
    functions::sum(y * y).backward();
    optimizer.update();
  };
  for (int i = 0; i < 2; ++i) step();
  if (replayed) {
    optimizer->prepare_for_capture();
    cuda::Graph graph = cuda::Graph::capture(gpu, step);
    for (int i = 0; i < 3; ++i) graph.launch();
  } else {
    for (int i = 0; i < 3; ++i) step();
  }
  optimizer.check_state();
  return model.W.data().to_vector<float>();
}

// Small enough for the kernels of our own, which give the same bits wherever gradients lie.
TEST_F(ProcessSums, OfGradientsTrainOneModelInAnyMemory) {
  using parallel::Sharding;
  Floats first;
  for (const char* memory : {"pool", "peers", "window"}) {
    const CommunicatorPtr comm = made_with(*all_, "auto", memory);
    const Floats eager = trained(*comm, Sharding::kNone, false);
    if (first.empty()) first = eager;
    EXPECT_TRUE(eager == first) << memory;
    EXPECT_TRUE(trained(*comm, Sharding::kNone, true) == first) << memory << ", replayed";
    EXPECT_TRUE(trained(*comm, Sharding::kStates, false) == first) << memory << ", sharded";
  }
}

// Operands whose sums are exact, for NCCL adds in an order of its own.
TEST_F(ProcessSums, AreExactInWindowsOfNccl) {
  const CommunicatorPtr comm = made_with(*all_, "nccl", "window");
  for (const int64_t n : {1, 5000, 300001}) {
    const Placed x(*comm, true, n, 0);
    Floats own, sums(size_t(n), 0.f);
    for (int r = 0; r < comm->size(); ++r) {
      for (int64_t i = 0; i < n; ++i) {
        const float value = float((i * 7 + r * 3) % 101 - 50);
        sums[size_t(i)] += value;
        if (r == comm->rank()) own.push_back(value);
      }
    }
    x.view.assign(array(own, cpu(0)).to(comm->device()));
    comm->all_reduce(x.view, Reduction::kSum, x.view);
    EXPECT_TRUE(x.view.to_vector<float>() == sums) << n;
  }
}

}  // namespace
}  // namespace catena
