// Communication and data-parallel training over the ranks that catena-run started:
//   catena-run -n 8 build/bin/bench_comm
// All-reduce through our communicator against NCCL called directly, both back to back on one
// stream; copies between two GPUs; data-parallel steps against the same step without communication.
// Without GPUs the same cases run over mpi on the CPU, in small sizes and without limits of NCCL.
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "catena/array/creation.h"
#include "catena/comm/factory.h"
#include "catena/core/backend.h"
#include "catena/core/config.h"
#include "catena/core/graph.h"
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

class Bench {
 public:
  Bench(catena::comm::Communicator& comm, bool quick)
      : comm_(comm), device_(comm.device()), quick_(quick) {
    if (comm.rank() == 0) table_.emplace(title(), describe());
    if (on_gpu()) catena::backend(device_.type()).make_current(device_.index());
  }

  void all_reduce();
  void peer_copy();
  void mnist();
  void linear_stack();

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
  for (const char* rule : {"SGD", "Adam"}) {
    MnistStep alone(device_, kBatch), shared(device_, kBatch);
    const auto own = make_rule(rule);
    own->setup(alone.model());
    auto averaged = catena::create_multi_node_optimizer(make_rule(rule), comm_);
    averaged.setup(shared.model());
    catena::Optimizer& optimizer = averaged.actual_optimizer();
    const std::string name = std::string("MNIST step, batch 100 a rank, ") + rule;
    Row r{.name = name + ", eager",
          .precision = "float32",
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

int body(int argc, char** argv) {
  const Arguments arguments(argc, argv,
                            "Communication and data-parallel steps; start it with catena-run.");
  const auto comm = catena::create_communicator();
  const catena::DeviceScope scope(comm->device());
  Bench bench(*comm, arguments.quick());
  bench.all_reduce();
  bench.peer_copy();
  bench.mnist();
  bench.linear_stack();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
