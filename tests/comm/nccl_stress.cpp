// Memory that is freed, overwritten and allocated again while collectives on side streams, copies
// between GPUs and asynchronous transfers still read and write it, with exact results. 1/20 of the
// rounds that an issue is closed with; CATENA_TEST_REPEATS=20 for all. Once more with CATENA_P2P=0,
// see tests/CMakeLists.txt.
//
// A program of its own: among the other tests it stood still twice, until the deadline, and by
// itself never. The streams of a process share a few queues of a GPU, in which work keeps its
// order; with the streams of many tests a rank's copy on the other rank's GPU may wait behind that
// rank's collective, which waits for the first rank.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "catena/core/backend.h"
#include "catena/core/stream.h"
#include "comm/nccl.h"
#include "cuda/gpu.h"

namespace catena {
namespace {

using comm::Reduction;
using comm_suite::run_nccl;

constexpr int kRanks = 2;
constexpr size_t kCheckEvery = 16;

constexpr int kSizes = 16;  // 2 to 2^16, multiples of the number of ranks

// Sizes that all ranks draw alike.
class Sizes {
 public:
  int64_t next() { return int64_t{2} << (engine_() % kSizes); }

 private:
  std::mt19937 engine_{7};
};

// Numbers that are on their way back to the host: number k is to be `first` + k * `step`.
struct Returned {
  StoragePtr bytes;
  int64_t n;
  int32_t first, step;

  ::testing::AssertionResult right() const {
    const auto* numbers = static_cast<const int32_t*>(bytes->data);
    for (int64_t k = 0; k < n; ++k) {
      if (numbers[k] != first + int32_t(k) * step)
        return ::testing::AssertionFailure()
               << "element " << k << " of " << n << " is " << numbers[k] << ", expected "
               << first + int32_t(k) * step;
    }
    return ::testing::AssertionSuccess();
  }
};

// Sends x to pinned memory on `stream`, behind what is queued there; x may be let go at once.
StoragePtr send_home(const Array& x, const Stream& stream) {
  const size_t bytes = static_cast<size_t>(x.nbytes());
  const StoragePtr home = allocate_pinned(cpu(), bytes);
  backend(DeviceType::kCuda).copy_bytes(home->data, cpu(), x.raw_data(), x.device(), bytes, stream);
  record_use(*home, stream);
  record_use(*x.storage(), stream);
  return home;
}

// int32 first, first + 1, ... on a GPU, by way of pinned memory and a stream of its own. What was
// queued on the current stream stays before it.
Array bring(int64_t n, int32_t first, Device gpu, const Stream& stream,
            std::vector<StoragePtr>* held) {
  const StoragePtr stage = allocate_pinned(cpu(), size_t(n) * 4);
  auto* numbers = static_cast<int32_t*>(stage->data);
  std::iota(numbers, numbers + n, first);
  const Array x = empty({n}, {Dtype::kInt32, gpu});
  stream.wait(current_stream(gpu));
  backend(DeviceType::kCuda)
      .copy_bytes(x.raw_data(), gpu, stage->data, cpu(), size_t(n) * 4, stream);
  record_use(*stage, stream);
  record_use(*x.storage(), stream);
  current_stream(gpu).wait(stream);
  if (held) held->push_back(stage);
  return x;
}

void check(std::vector<Returned>& returned, const Stream& stream) {
  if (returned.size() < kCheckEvery) return;
  stream.synchronize();
  for (const Returned& r : returned) ASSERT_TRUE(r.right());
  returned.clear();
}

// The rounds once without collectives, then with: kernels are loaded and memory is taken from the
// driver in the rehearsal, for either may wait for a GPU whose collective waits for this thread.
// `held` keeps all that a rehearsal lets go until its next check, for every size, as if the GPUs
// had done nothing since the last one: no later round needs more than that.
using Round = std::function<void(int number, int64_t n, bool rehearsal)>;
void run_rounds(Communicator& comm, const Round& round) {
  const int each = 2 * int(kCheckEvery);
  for (int i = 0; i < kSizes * each && !::testing::Test::HasFatalFailure(); ++i)
    round(i, int64_t{2} << (i / each), true);
  synchronize(comm.device());
  comm.barrier();
  Sizes sizes;
  for (int i = 0; i < test::repeats(5000) && !::testing::Test::HasFatalFailure(); ++i)
    round(i, sizes.next(), false);
  synchronize(comm.device());
  comm.barrier();
}

// Host to GPU, all-reduce on the communicator's side stream as data-parallel buckets do, copy to
// the other GPU, back to the host: each on a stream of its own, each source let go at once.
// No stream of a rank waits for one that the other rank queues work on, but through NCCL.
void everything(Communicator& comm) {
  const Device gpu = comm.device(), other = cuda_device(1 - comm.rank());
  const Stream transfers = Stream::create(gpu), there = Stream::create(other);
  const Stream side = comm.side_stream();
  std::vector<Returned> returned;
  std::vector<StoragePtr> held;
  run_rounds(comm, [&](int i, int64_t n, bool rehearsal) {
    Array x = bring(n, i + comm.rank(), gpu, transfers, rehearsal ? &held : nullptr);
    if (rehearsal) held.push_back(x.storage());
    if (rehearsal)
      side.wait(current_stream(gpu));
    else
      comm.all_reduce_async(x, Reduction::kSum, side);
    Array copied;
    {
      const StreamScope on_side(side);
      const Array reduced = x.copy();
      x.fill(-1);  // behind the collective that still works on it
      record_use(*x.storage(), side);
      x = Array();
      const StreamScope on_other(there);
      copied = reduced.copy_to(other);
      reduced.fill(-2);
      if (rehearsal) held.insert(held.end(), {reduced.storage(), copied.storage()});
    }
    const int32_t first = rehearsal ? i + comm.rank() : 2 * i + 1;
    returned.push_back({send_home(copied, there), n, first, rehearsal ? 1 : 2});
    copied = Array();
    check(returned, there);
    if (returned.empty()) held.clear();
  });
}

// Out of place: the input is let go while the collective reads it, the output while it is read on a
// third stream.
void out_of_place(Communicator& comm) {
  const Device gpu = comm.device();
  const Stream mine = Stream::create(gpu), home = Stream::create(gpu);
  const Stream side = comm.side_stream();
  const int32_t rank = comm.rank();
  std::vector<Returned> returned;
  std::vector<StoragePtr> held;
  run_rounds(comm, [&](int i, int64_t n, bool rehearsal) {
    Array x = arange(int64_t{i} + rank, int64_t{i} + rank + n, 1, {Dtype::kInt32, gpu});
    Array y;
    Returned r{nullptr, n, i, 1};
    Stream worked = side;
    if (rehearsal) {
      y = empty({kRanks * n}, {Dtype::kInt32, gpu});
      worked = current_stream(gpu);
    } else if (i % 3 == 0) {
      y = empty({n / kRanks}, {Dtype::kInt32, gpu});
      comm.reduce_scatter_async(x, Reduction::kSum, y, side);
      r = {nullptr, n / kRanks, 2 * i + 1 + rank * int32_t(n), 2};
    } else if (i % 3 == 1) {
      y = empty({kRanks * n}, {Dtype::kInt32, gpu});
      comm.all_gather_async(x, y, side);
      r.first = i + (1 - rank);  // what the other rank sent
    } else {
      mine.wait(current_stream(gpu));
      mine.wait(side);  // collectives of one communicator run one after the other
      const StreamScope scope(mine);
      y = comm.all_reduce(x, Reduction::kMax);
      worked = mine;
      r.first = i + 1;
    }
    const StoragePtr x_storage = rehearsal ? x.storage() : nullptr,
                     y_storage = rehearsal ? y.storage() : nullptr;
    x = Array();
    home.wait(worked);
    if (!(worked == side)) side.wait(worked);
    const bool gathered = y.size() == kRanks * n;
    r.bytes = send_home(gathered ? y(Slice((1 - rank) * n, (2 - rank) * n)) : y, home);
    y = Array();
    if (rehearsal) held.insert(held.end(), {x_storage, y_storage, r.bytes});
    if (!rehearsal) returned.push_back(r);
    check(returned, home);
    if (held.size() >= 3 * kCheckEvery) held.clear();
  });
}

TEST(NcclStress, CollectivesBetweenTransfersAndPeerCopies) {
  CATENA_NEEDS_NCCL(kRanks);
  run_nccl(kRanks, everything);
}

TEST(NcclStress, CollectivesOutOfPlaceOnTwoStreams) {
  CATENA_NEEDS_NCCL(kRanks);
  run_nccl(kRanks, out_of_place);
}

}  // namespace
}  // namespace catena
