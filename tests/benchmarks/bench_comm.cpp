// Communication over the ranks that catena-run started:
//   catena-run -n 8 build/bin/bench_comm
// All-reduce through our communicator against NCCL called directly, both back to back on one
// stream; copies between two GPUs. With --ways only tables of all ways that an all-reduce can go,
// from which the sizes in src/comm/nccl/ways.cpp are taken.
// Without GPUs the same cases run over mpi on the CPU, in small sizes and without limits of NCCL.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "catena/array/creation.h"
#include "catena/comm/factory.h"
#include "catena/comm/internals.h"
#include "catena/core/backend.h"
#include "catena/core/graph.h"
#include "rank_timing.h"
#ifdef BENCH_NCCL
#include "raw_nccl.h"
#endif

namespace {

using namespace bench;
using catena::Array;
using catena::Device;

class Bench : public RankBench {
 public:
  Bench(catena::comm::Communicator& comm, bool quick) : RankBench(comm), quick_(quick) {}

  void all_reduce();
  void ways();
  void blocks();
  void parts();
  void peer_copy();

 private:
  // Microseconds of an all-reduce in place, called and replayed; negative: this way does not take
  // so many bytes.
  struct Way {
    const char* name;
    const char* sums;    // CATENA_ALL_REDUCE
    const char* memory;  // CATENA_SHARED_MEMORY
    int64_t largest;     // bytes that it takes
  };
  struct Timing {
    double called = -1, replayed = -1;
  };
  using Collective = void (*)(catena::comm::Communicator& comm, const Array& whole);
  Timing time_of(catena::comm::Communicator& comm, const Way& way, int64_t bytes,
                 Collective collective);
  std::vector<Timing> times_of(const Way& way, const std::vector<int64_t>& sizes,
                               Collective collective);
  void print_ways(const char* name, Collective collective, const std::vector<Way>& all,
                  const std::vector<int64_t>& sizes);

  bool quick_;
};

std::string size_name(int64_t bytes) {
  if (bytes >= 1 << 30) return std::to_string(bytes >> 30) + " GiB";
  if (bytes >= 1 << 20) return std::to_string(bytes >> 20) + " MiB";
  return std::to_string(bytes >> 10) + " KiB";
}

void Bench::all_reduce() {
#ifdef BENCH_NCCL
  std::optional<raw::Nccl> nccl;
  if (on_gpu()) {
    nccl.emplace(comm_.rank(), comm_.size(),
                 [&](const std::string& text) { return comm_.broadcast_bytes(text, 0); });
  }
#endif
  constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;
  const int64_t largest = !on_gpu() ? kMiB : quick_ ? 64 * kMiB : 1024 * kMiB;
  for (const int64_t bytes :
       {kKiB, 32 * kKiB, kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB, 1024 * kMiB}) {
    if (bytes > largest) break;
    const Array x = catena::zeros({bytes / 4}, {catena::dtype::float32, device_});
    const int calls = bytes <= 1 << 20 ? 200 : bytes <= 64 << 20 ? 30 : 5;
    const Sampling sampling{5, quick_ ? 3 : 9, on_gpu() ? calls : 10};
    Row r{.name = "all-reduce " + size_name(bytes), .precision = "float32", .unit = "us"};
    const auto ours = [&] { comm_.all_reduce(x, {}, x); };
#ifdef BENCH_NCCL
    if (nccl) {
      void* stream = catena::current_native_stream(device_);
      const auto bare = [&] { nccl->all_reduce(x.raw_data(), size_t(bytes / 4), stream); };
      const auto [value, limit] = slowest_in_turn(sampling, ours, bare);
      r.value = value * 1e6;
      r.limit = limit * 1e6;
      r.limit_name = "ncclAllReduce";
      if (bytes >= 1 << 20)
        r.goal_ratio = 1.05;
      else
        r.goal = *r.limit + 2;
    }
#endif
    if (!r.limit) r.value = slowest(sampling, ours) * 1e6;
    row(r);
  }
}

// Ways of an all-reduce ---------------------------------------------------------------------------

constexpr int64_t kWayKiB = 1 << 10, kWayMiB = 1 << 20, kWayGiB = 1 << 30;
constexpr int64_t kMnistBytes = 7'160'832;  // of the gradients of 784-1000-1000-10

Array array_for(catena::comm::Communicator& comm, bool shared, int64_t bytes) {
  const catena::Shape shape{bytes / 4};
  if (!shared) return catena::zeros(shape, {catena::dtype::float32, comm.device()});
  const catena::StoragePtr storage =
      catena::comm::internals(comm).allocate_shared(static_cast<size_t>(bytes));
  if (!storage) return {};
  Array x = Array::from_storage(storage, 0, shape, catena::contiguous_strides(shape, 4),
                                catena::Dtype::kFloat32);
  x.fill(0);
  return x;
}

void all_reduce_in_place(catena::comm::Communicator& comm, const Array& whole) {
  comm.all_reduce(whole, {}, whole);
}
Array part_of_rank(catena::comm::Communicator& comm, const Array& whole) {
  const int64_t part = whole.size() / comm.size();
  return whole(catena::Slice(comm.rank() * part, (comm.rank() + 1) * part));
}
void reduce_scatter_in_place(catena::comm::Communicator& comm, const Array& whole) {
  comm.reduce_scatter(whole, {}, part_of_rank(comm, whole));
}
void all_gather_in_place(catena::comm::Communicator& comm, const Array& whole) {
  comm.all_gather(part_of_rank(comm, whole), whole);
}

Bench::Timing Bench::time_of(catena::comm::Communicator& comm, const Way& way, int64_t bytes,
                             Collective collective) {
  if (bytes > way.largest) return {};
  const Array x = array_for(comm, std::string_view(way.memory) != "pool", bytes);
  if (!x.defined()) return {};
  const int calls = bytes <= kWayMiB ? 100 : bytes <= 64 * kWayMiB ? 20 : 3;
  const auto call = [&] { collective(comm, x); };
  const int runs = quick_ ? 3 : 7;
  Timing result;
  result.called = slowest({5, runs, calls}, call) * 1e6;
  const int held = bytes <= 64 * kWayMiB ? 20 : 3;
  catena::cuda::Graph graph = catena::cuda::Graph::capture(device_, [&] {
    for (int i = 0; i < held; ++i) call();
  });
  result.replayed =
      slowest({2, runs, std::max(1, calls / held)}, [&] { graph.launch(); }) * 1e6 / held;
  return result;
}

// Over a communicator of its own, which reads the environment when it is made.
std::vector<Bench::Timing> Bench::times_of(const Way& way, const std::vector<int64_t>& sizes,
                                           Collective collective) {
  setenv("CATENA_ALL_REDUCE", way.sums, 1);
  setenv("CATENA_SHARED_MEMORY", way.memory, 1);
  const catena::CommunicatorPtr comm = comm_.split(0, comm_.rank());
  if (comm->rank() == 0)
    std::printf("%s: %s\n", way.name, catena::comm::internals(*comm).ways().c_str());
  std::vector<Timing> result;
  for (const int64_t bytes : sizes) result.push_back(time_of(*comm, way, bytes, collective));
  catena::synchronize(device_);
  unsetenv("CATENA_ALL_REDUCE");
  unsetenv("CATENA_SHARED_MEMORY");
  return result;
}

std::string cell(double microseconds) { return microseconds < 0 ? "-" : format(microseconds); }

std::string way_size_name(int64_t bytes) {
  return bytes == kMnistBytes ? "7.16 MB" : size_name(bytes);
}

std::vector<int64_t> sizes_of_ways(int64_t least, int64_t most) {
  std::vector<int64_t> sizes;
  for (int64_t bytes = least; bytes <= most; bytes *= bytes < 64 * kWayMiB ? 2 : 4) {
    if (bytes == 8 * kWayMiB) sizes.push_back(kMnistBytes);
    sizes.push_back(bytes);
  }
  return sizes;
}

void Bench::ways() {
  if (!on_gpu()) return;
  print_ways("all-reduce", all_reduce_in_place,
             {{"exchange", "exchange", "pool", 256 * kWayKiB},
              {"two-shot, copied", "two-shot", "pool", kWayGiB},
              {"two-shot, mapped", "two-shot", "peers", kWayGiB},
              {"NCCL, plain", "nccl", "pool", kWayGiB},
              {"NCCL, window", "nccl", "window", kWayGiB},
              {"chosen", "auto", "auto", kWayGiB}},
             sizes_of_ways(kWayKiB, quick_ ? 64 * kWayMiB : kWayGiB));
}

// The parts of an all-reduce.
void Bench::parts() {
  if (!on_gpu()) return;
  std::vector<int64_t> sizes = sizes_of_ways(16 * kWayKiB, 64 * kWayMiB);
  const int64_t unit = 16 * comm_.size();  // parts are whole packs, of three ranks too
  for (int64_t& bytes : sizes) bytes = bytes / unit * unit;
  const std::vector<Way> all = {{"two-shot, copied", "two-shot", "pool", kWayGiB},
                                {"two-shot, mapped", "two-shot", "peers", kWayGiB},
                                {"NCCL, plain", "nccl", "pool", kWayGiB},
                                {"NCCL, window", "nccl", "window", kWayGiB}};
  print_ways("reduce-scatter", reduce_scatter_in_place, all, sizes);
  print_ways("all-gather", all_gather_in_place, all, sizes);
}

void Bench::print_ways(const char* name, Collective collective, const std::vector<Way>& all,
                       const std::vector<int64_t>& sizes) {
  std::vector<std::vector<Timing>> times;
  for (const Way& way : all) times.push_back(times_of(way, sizes, collective));
  if (comm_.rank() != 0) return;
  std::printf("\n%s of float32 in place, %d ranks, us: called / replayed\n\n| bytes |", name,
              comm_.size());
  for (const Way& way : all) std::printf(" %s |", way.name);
  std::printf("\n|---|");
  for (size_t i = 0; i < all.size(); ++i) std::printf("---|");
  for (size_t s = 0; s < sizes.size(); ++s) {
    std::printf("\n| %s |", way_size_name(sizes[s]).c_str());
    for (const auto& way : times)
      std::printf(" %s / %s |", cell(way[s].called).c_str(), cell(way[s].replayed).c_str());
  }
  std::printf("\n\n");
  std::fflush(stdout);
}

// How many blocks the kernel of two steps should have.
void Bench::blocks() {
  if (!on_gpu()) return;
  const std::vector<int64_t> sizes = {256 * kWayKiB, kWayMiB,     2 * kWayMiB,
                                      4 * kWayMiB,   kMnistBytes, 16 * kWayMiB};
  const int counts[] = {8, 16, 24, 32, 48, 64, 96, 128};
  std::vector<std::vector<Timing>> times;
  for (const int count : counts) {
    setenv("CATENA_TWO_SHOT_BLOCKS", std::to_string(count).c_str(), 1);
    times.push_back(
        times_of({"two-shot, mapped", "two-shot", "peers", kWayGiB}, sizes, all_reduce_in_place));
  }
  unsetenv("CATENA_TWO_SHOT_BLOCKS");
  if (comm_.rank() != 0) return;
  std::printf("\ntwo-shot, mapped, by blocks of its kernel, us replayed\n\n| bytes |");
  for (const int count : counts) std::printf(" %d |", count);
  std::printf("\n|---|");
  for (size_t i = 0; i < std::size(counts); ++i) std::printf("---|");
  for (size_t s = 0; s < sizes.size(); ++s) {
    std::printf("\n| %s |", way_size_name(sizes[s]).c_str());
    for (const auto& count : times) std::printf(" %s |", cell(count[s].replayed).c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
}

// -------------------------------------------------------------------------------------------------

void Bench::peer_copy() {
  const int gpus = catena::device_count(catena::DeviceType::kCuda);
  if (comm_.rank() == 0 && on_gpu() && gpus >= 2) {
    const Device other = catena::cuda_device((device_.index() + 1) % gpus);
    const int64_t bytes = quick_ ? 1 << 26 : 1 << 30;
    const Array here = catena::zeros({bytes / 4}, {catena::dtype::float32, device_});
    const Sampling sampling{3, quick_ ? 3 : 7, 5};
    const auto rate = [&](double seconds) { return double(bytes) / seconds * 1e-9; };
    const auto wait = [&](auto&& call) {
      return [&, call] {
        call();
        catena::synchronize(other);  // the copy runs on the destination
      };
    };
    Row r{.name = "copy to another GPU, " + size_name(bytes),
          .precision = "float32",
          .unit = "GB/s",
          .goal = 350};
    r.value = rate(wall_time(sampling, device_, wait([&] { here.to(other); })).median);
#ifdef BENCH_NCCL
    const Array there = here.to(other);
    void* stream = catena::current_native_stream(device_);
    r.limit = rate(wall_time(sampling, device_, [&] {
                     raw::copy_to_peer(there.raw_data(), other.index(), here.raw_data(),
                                       device_.index(), size_t(bytes), stream);
                   }).median);
    r.limit_name = "cudaMemcpyPeerAsync";
#endif
    row(r);
  }
  comm_.barrier();
}

int body(int argc, char** argv) {
  const Arguments arguments(argc, argv, "Communication; start it with catena-run.",
                            {{"--ways", "only the ways that an all-reduce can go"}});
  const auto comm = catena::create_communicator();
  const catena::DeviceScope scope(comm->device());
  Bench bench(*comm, arguments.quick());
  if (arguments.has("--ways")) {
    bench.ways();
    bench.blocks();
    bench.parts();
    return 0;
  }
  bench.all_reduce();
  bench.peer_copy();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
