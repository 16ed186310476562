// Communication and data-parallel training over the ranks that catena-run started:
//   catena-run -n 8 build/bin/bench_comm
// All-reduce through our communicator against NCCL called directly, both back to back on one
// stream; copies between two GPUs; data-parallel steps against the same step without communication.
// With --ways only tables of all ways that an all-reduce can go, from which the sizes in
// src/comm/nccl/ways.cpp are taken; with --mnist only the steps of the MNIST network.
// Without GPUs the same cases run over mpi on the CPU, in small sizes and without limits of NCCL.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/comm/factory.h"
#include "catena/comm/internals.h"
#include "catena/core/backend.h"
#include "catena/core/config.h"
#include "catena/core/graph.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "timing.h"
#include "workloads.h"
#ifdef BENCH_NCCL
#include "raw_nccl.h"
#endif

namespace {

using namespace bench;
using catena::Array;
using catena::Device;

// TF32 products while it lives, or exact ones.
class PrecisionScope {
 public:
  explicit PrecisionScope(bool tf32) : before_(catena::config().matmul_precision) {
    if (tf32) catena::config().matmul_precision = catena::Precision::kTf32;
  }
  ~PrecisionScope() { catena::config().matmul_precision = before_; }
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  const catena::Precision before_;
};

class Bench {
 public:
  Bench(catena::comm::Communicator& comm, bool quick)
      : comm_(comm), device_(comm.device()), quick_(quick) {
    if (comm.rank() == 0) table_.emplace(title(), describe());
    if (on_gpu()) catena::backend(device_.type()).make_current(device_.index());
  }

  void all_reduce();
  void ways();
  void blocks();
  void parts();
  void peer_copy();
  void mnist();
  void linear_stack();
  void slices();

 private:
  bool on_gpu() const { return device_.is_cuda(); }
  std::string title() const {
    return std::to_string(comm_.size()) + " ranks, communicator " + comm_.name();
  }
  std::string describe() const {
    std::string text = on_gpu() ? catena::backend(device_.type()).describe(device_.index())
                                : std::to_string(catena::cpu_threads()) + " threads a rank";
#ifdef BENCH_NCCL
    if (on_gpu()) text += ", " + raw::Nccl::version();
#endif
    return text;
  }
  // Median time of a call as the slowest rank saw it; all ranks start together.
  template <class Call>
  double slowest(const Sampling& sampling, Call&& call) {
    comm_.barrier();
    const double mine = wall_time(sampling, device_, call).median;
    return comm_.all_reduce_value(mine, catena::comm::Reduction::kMax);
  }
  // The same of two calls in turn, run by run: what changes meanwhile meets both.
  template <class First, class Second>
  std::pair<double, double> slowest_in_turn(Sampling sampling, First&& first, Second&& second) {
    const int runs = std::exchange(sampling.runs, 1);
    std::vector<double> of_first, of_second;
    for (int run = 0; run < runs; ++run) {
      of_first.push_back(slowest(sampling, first));
      of_second.push_back(slowest(sampling, second));
    }
    return {summarize(std::move(of_first)).median, summarize(std::move(of_second)).median};
  }
  void row(const Row& row) {
    if (table_) table_->row(row);
  }
  // Microseconds of an all-reduce in place, called and replayed; negative: this way does not take
  // so many bytes.
  struct Way {
    const char* name;
    const char* sums;    // CATENA_ALL_REDUCE
    const char* memory;  // CATENA_SHARED_MEMORY
    int64_t largest;     // bytes that it takes
    int64_t smallest = 0;
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
  std::optional<double> at_eight(double goal) const {
    return on_gpu() && comm_.size() == 8 ? std::optional(goal) : std::nullopt;
  }

  catena::comm::Communicator& comm_;
  Device device_;
  bool quick_;
  std::optional<Table> table_;
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
  if (bytes > way.largest || bytes < way.smallest) return {};
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
              {"two-shot, copied", "two-shot", "pool", 64 * kWayMiB},
              {"two-shot, mapped", "two-shot", "peers", 64 * kWayMiB},
              {"copy engines", "copies", "pool", kWayGiB, 64 * kWayKiB},
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
  const std::vector<Way> all = {{"two-shot, copied", "two-shot", "pool", 64 * kWayMiB},
                                {"two-shot, mapped", "two-shot", "peers", 64 * kWayMiB},
                                {"copy engines", "copies", "pool", kWayGiB, 64 * kWayKiB},
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

void Bench::mnist() {
  constexpr int64_t kBatch = 100;
  const Sampling sampling{20, quick_ ? 3 : 9, on_gpu() ? (quick_ ? 30 : 200) : 5};
  for (const auto& [rule, tf32] : {std::pair("SGD", false), std::pair("Adam", false),
                                   std::pair("SGD", true), std::pair("Adam", true)}) {
    if (tf32 && !on_gpu()) continue;
    const PrecisionScope scope(tf32);
    MnistStep alone(device_, kBatch), shared(device_, kBatch);
    const auto own = make_rule(rule);
    own->setup(alone.model());
    auto averaged = catena::create_multi_node_optimizer(make_rule(rule), comm_);
    averaged.setup(shared.model());
    catena::Optimizer& optimizer = averaged.actual_optimizer();
    const std::string name = std::string("MNIST step, batch 100 a rank, ") + rule;
    Row r{.name = name + ", eager",
          .precision = tf32 ? "tf32" : "float32",
          .unit = "us",
          .limit_name = "the step without communication"};
    if (std::string_view(rule) == "SGD") r.goal = at_eight(300);
    r.limit = slowest(sampling, [&] { alone.step(*own); }) * 1e6;
    r.value = slowest(sampling, [&] { shared.step(optimizer); }) * 1e6;
    row(r);
    if (!on_gpu()) continue;
    const auto captured = [&](MnistStep& mnist, catena::Optimizer& with) {
      for (int i = 0; i < 3; ++i) mnist.step_at_cursor(with);
      with.prepare_for_capture();
      return catena::cuda::Graph::capture(device_, [&] { mnist.step_at_cursor(with); });
    };
    catena::cuda::Graph alone_graph = captured(alone, *own),
                        shared_graph = captured(shared, optimizer);
    r.name = name + ", replayed";
    if (r.goal) r.goal = at_eight(200);
    if (std::string_view(rule) == "SGD" && comm_.size() == 4) r.goal = tf32 ? 105 : 130;
    r.limit = slowest(sampling, [&] { alone_graph.launch(); }) * 1e6;
    r.value = slowest(sampling, [&] { shared_graph.launch(); }) * 1e6;
    row(r);
  }
}

void Bench::linear_stack() {
  const int64_t width = !on_gpu() ? 128 : quick_ ? 1024 : 4096, batch = on_gpu() ? 1024 : 32;
  if (on_gpu()) catena::config().matmul_precision = catena::Precision::kTf32;
  const Sampling sampling{5, quick_ ? 3 : 7, on_gpu() ? 20 : 3};
  LinearStack alone(device_, 8, width, batch), shared(device_, 8, width, batch);
  const auto own = make_rule("SGD");
  own->setup(alone.model());
  auto averaged = catena::create_multi_node_optimizer(make_rule("SGD"), comm_);
  averaged.setup(shared.model());
  const std::string w = std::to_string(width);
  Row r{.name = "8 x Linear(" + w + ", " + w + "), batch " + std::to_string(batch) +
                " a rank, SGD, eager",
        .precision = on_gpu() ? "tf32" : "float32",
        .unit = "ms",
        .limit_name = "the step without communication",
        .goal = at_eight(4.4)};
  r.limit = slowest(sampling, [&] { alone.step(*own); }) * 1e3;
  r.value = slowest(sampling, [&] { shared.step(averaged.actual_optimizer()); }) * 1e3;
  row(r);
}

// Steps on this rank's part of a global batch, which is cut into slices, or not (0).
class SlicedStep {
 public:
  SlicedStep(const std::string& network, catena::comm::Communicator& comm, int64_t batch,
             int slices)
      : model_(mnist::NetworkOptions{.name = network, .dtype = catena::dtype::float32}),
        optimizer_(
            catena::create_multi_node_optimizer(make_rule("Adam"), comm, {.slices = slices})),
        batch_(batch) {
    const Device device = comm.device();
    const int64_t own = catena::parallel::slice_bounds(batch, comm.rank(), comm.size()).size();
    x_ = catena::random::uniform({own, 784}, 0, 1.0, {catena::dtype::float32, device});
    t_ = catena::random::integers({own}, 0, 10, {catena::dtype::int32, device});
    model_.to(device);
    optimizer_.setup(model_);
  }
  void operator()() {
    optimizer_.zero_grads();
    for (const auto& slice : optimizer_.slices(x_.length(), batch_))
      catena::functions::softmax_cross_entropy(model_(slice(x_)), slice(t_)).backward();
    optimizer_.update();
  }
  catena::Optimizer& optimizer() { return optimizer_.actual_optimizer(); }

 private:
  mnist::Network model_;
  catena::MultiNodeOptimizer optimizer_;
  int64_t batch_;
  Array x_, t_;
};

void Bench::slices() {
  catena::config().deterministic = true;
  const int64_t batch = on_gpu() ? 2048 : 256;
  const Sampling sampling{5, quick_ ? 3 : 9, on_gpu() ? (quick_ ? 10 : 50) : 3};
  if (16 % comm_.size() != 0) return;  // slices cannot be divided
  for (const char* network : {"mlp", "lenet", "resnet"}) {
    for (const int slices : {8, 16}) {
      if (slices % comm_.size() != 0) continue;
      SlicedStep whole(network, comm_, batch, 0), sliced(network, comm_, batch, slices);
      Row r{.name = std::string(network) + " step, batch " + std::to_string(batch) +
                    " of all ranks, Adam, " + std::to_string(slices) + " slices, eager",
            .precision = "float32",
            .unit = "ms",
            .limit_name = "the step without slices"};
      const auto [value, limit] = slowest_in_turn(sampling, sliced, whole);
      r.value = value * 1e3;
      r.limit = limit * 1e3;
      row(r);
      if (!on_gpu()) continue;
      const auto captured = [&](SlicedStep& step) {
        step.optimizer().prepare_for_capture();
        return catena::cuda::Graph::capture(device_, [&] { step(); });
      };
      catena::cuda::Graph whole_graph = captured(whole), sliced_graph = captured(sliced);
      r.name.replace(r.name.size() - 5, 5, "replayed");
      const auto [replayed, of_whole] = slowest_in_turn(
          sampling, [&] { sliced_graph.launch(); }, [&] { whole_graph.launch(); });
      r.value = replayed * 1e3;
      r.limit = of_whole * 1e3;
      row(r);
    }
  }
}

int body(int argc, char** argv) {
  const Arguments arguments(argc, argv,
                            "Communication and data-parallel steps; start it with catena-run.",
                            {{"--ways", "only the ways that an all-reduce can go"},
                             {"--mnist", "only the steps of the MNIST network"}});
  const auto comm = catena::create_communicator();
  const catena::DeviceScope scope(comm->device());
  Bench bench(*comm, arguments.quick());
  if (arguments.has("--ways")) {
    bench.ways();
    bench.blocks();
    bench.parts();
    return 0;
  }
  if (!arguments.has("--mnist")) {
    bench.all_reduce();
    bench.peer_copy();
  }
  bench.mnist();
  if (arguments.has("--mnist")) return 0;
  bench.linear_stack();
  bench.slices();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
