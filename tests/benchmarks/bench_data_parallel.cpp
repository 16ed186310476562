// Data-parallel training steps over the ranks that catena-run started, beside the same step of one
// rank alone:
//   catena-run -n 4 build/bin/bench_data_parallel
// MNIST, 8 x Linear(4096, 4096) with each way to spread its arrays over the ranks, and a step so
// long that communication should hide behind it. data_parallel_peers.py runs the same with PyTorch.
// Without GPUs the same cases run over mpi on the CPU, in small sizes and without goals.
#include <optional>
#include <string>
#include <vector>

#include "catena/comm/factory.h"
#include "catena/core/backend.h"
#include "catena/core/config.h"
#include "catena/core/graph.h"
#include "catena/core/memory.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "timing.h"
#include "workloads.h"

namespace {

using namespace bench;
using catena::Device;
using catena::Precision;
using catena::parallel::BucketOptions;
using catena::parallel::Sharding;

constexpr const char* kAlone = "the step without communication";

// How the gradients of the linear layers are averaged, and the goal on four ranks in milliseconds.
struct Way {
  std::string name, rule;
  BucketOptions options;
  double goal;
};

std::vector<Way> ways() {
  return {{"SGD", "SGD", {}, 4.2},
          {"Adam", "Adam", {}, 4.6},
          {"Adam, sharded states", "Adam", {.sharding = Sharding::kStates}, 4.6}};
}

class Bench {
 public:
  Bench(catena::comm::Communicator& comm, bool quick)
      : comm_(comm), device_(comm.device()), quick_(quick) {
    const std::string title = std::to_string(comm.size()) + " ranks, communicator " + comm.name();
    const std::string machine = on_gpu()
                                    ? catena::backend(device_.type()).describe(device_.index())
                                    : std::to_string(catena::cpu_threads()) + " threads a rank";
    if (comm.rank() == 0) table_.emplace(title, machine);
    if (on_gpu()) catena::backend(device_.type()).make_current(device_.index());
  }

  void mnist(Precision precision, double goal);
  void linear_stack(const Way& way, bool with_memory);
  void long_step();

 private:
  bool on_gpu() const { return device_.is_cuda(); }
  const char* precision() const {
    return catena::config().matmul_precision == Precision::kTf32 ? "tf32" : "float32";
  }
  std::optional<double> at_four(double goal) const {
    return on_gpu() && !quick_ && comm_.size() == 4 ? std::optional(goal) : std::nullopt;
  }
  // Median time of a call as the slowest rank saw it; all ranks start together.
  template <class Call>
  double slowest(const Sampling& sampling, Call&& call) {
    comm_.barrier();
    const double mine = wall_time(sampling, device_, call).median;
    return comm_.all_reduce_value(mine, catena::comm::Reduction::kMax);
  }
  // The same of the step as a graph.
  template <class Step>
  double slowest_replay(const Sampling& sampling, catena::Optimizer& optimizer, Step&& step) {
    for (int i = 0; i < 3; ++i) step();
    optimizer.prepare_for_capture();
    catena::cuda::Graph graph = catena::cuda::Graph::capture(device_, step);
    return slowest(sampling, [&] { graph.launch(); });
  }
  void row(const Row& row) {
    if (table_) table_->row(row);
  }
  double peak_gib();

  catena::comm::Communicator& comm_;
  Device device_;
  bool quick_;
  std::optional<Table> table_;
};

void Bench::mnist(Precision precision, double goal) {
  catena::config().matmul_precision = precision;
  const Sampling sampling{20, quick_ ? 3 : 9, on_gpu() ? (quick_ ? 30 : 200) : 5};
  constexpr int64_t kBatch = 100;
  MnistStep alone(device_, kBatch), shared(device_, kBatch);
  const auto own = make_rule("SGD");
  own->setup(alone.model());
  auto averaged = catena::create_multi_node_optimizer(make_rule("SGD"), comm_);
  averaged.setup(shared.model());
  catena::Optimizer& optimizer = averaged.actual_optimizer();
  Row r{.name = "MNIST step, batch 100 a rank, SGD, eager",
        .precision = this->precision(),
        .unit = "us",
        .limit_name = kAlone};
  r.limit = slowest(sampling, [&] { alone.step(*own); }) * 1e6;
  r.value = slowest(sampling, [&] { shared.step(optimizer); }) * 1e6;
  row(r);
  if (!on_gpu()) return;
  r.name = "MNIST step, batch 100 a rank, SGD, replayed";
  r.goal = at_four(goal);
  r.limit = slowest_replay(sampling, *own, [&] { alone.step_at_cursor(*own); }) * 1e6;
  r.value = slowest_replay(sampling, optimizer, [&] { shared.step_at_cursor(optimizer); }) * 1e6;
  row(r);
}

// The most memory that a rank's arrays have taken since the process began.
double Bench::peak_gib() {
  const double peak = double(catena::memory_statistics(device_).peak_in_use);
  return comm_.all_reduce_value(peak, catena::comm::Reduction::kMax) / double(1 << 30);
}

void Bench::linear_stack(const Way& way, bool with_memory) {
  const int64_t width = !on_gpu() ? 128 : quick_ ? 1024 : 4096, batch = on_gpu() ? 1024 : 32;
  if (on_gpu()) catena::config().matmul_precision = Precision::kTf32;
  const Sampling sampling{5, quick_ ? 3 : 7, on_gpu() ? 20 : 3};
  LinearStack shared(device_, 8, width, batch);
  auto averaged = catena::create_multi_node_optimizer(make_rule(way.rule), comm_, way.options);
  averaged.setup(shared.model());
  catena::Optimizer& optimizer = averaged.actual_optimizer();
  const auto step = [&] { shared.step(optimizer); };
  const double eager = slowest(sampling, step) * 1e3, peak = peak_gib();
  std::optional<double> replayed;
  if (on_gpu()) replayed = slowest_replay(sampling, optimizer, step) * 1e3;

  LinearStack alone(device_, 8, width, batch);
  const auto own = make_rule(way.rule);
  own->setup(alone.model());
  const std::string name = "8 x Linear(" + std::to_string(width) + "), batch " +
                           std::to_string(batch) + " a rank, " + way.name;
  Row r{.name = name + ", eager",
        .precision = precision(),
        .value = eager,
        .unit = "ms",
        .limit_name = kAlone,
        .goal = at_four(way.goal)};
  r.limit = slowest(sampling, [&] { alone.step(*own); }) * 1e3;
  row(r);
  if (replayed) {
    r.name = name + ", replayed";
    r.value = *replayed;
    row(r);
  }
  if (with_memory)
    row({.name = name + ", memory of a rank",
         .precision = precision(),
         .value = peak,
         .unit = "GiB"});
}

// Weak scaling: the same work of each rank, about 50 ms on an H200.
void Bench::long_step() {
  const int64_t width = !on_gpu() ? 128 : 4096, batch = on_gpu() ? 20 * 1024 : 64;
  if (on_gpu()) catena::config().matmul_precision = Precision::kTf32;
  const Sampling sampling{2, quick_ ? 3 : 5, on_gpu() ? 4 : 3};
  LinearStack alone(device_, 8, width, batch), shared(device_, 8, width, batch);
  const auto own = make_rule("SGD");
  own->setup(alone.model());
  auto averaged = catena::create_multi_node_optimizer(make_rule("SGD"), comm_);
  averaged.setup(shared.model());
  Row r{.name = "8 x Linear(" + std::to_string(width) + "), batch " + std::to_string(batch) +
                " a rank, SGD, eager",
        .precision = precision(),
        .unit = "ms",
        .limit_name = kAlone};
  if (at_four(1)) r.goal_ratio = 1 / 0.98;
  r.limit = slowest(sampling, [&] { alone.step(*own); }) * 1e3;
  r.value = slowest(sampling, [&] { shared.step(averaged.actual_optimizer()); }) * 1e3;
  row(r);
}

int body(int argc, char** argv) {
  const Arguments arguments(
      argc, argv, "Data-parallel steps; start it with catena-run.",
      {{"--way=",
        "only the linear layers in this way, such as 'Adam, sharded states', and the "
        "memory that a rank takes for it"}});
  const auto comm = catena::create_communicator();
  const catena::DeviceScope scope(comm->device());
  Bench bench(*comm, arguments.quick());
  const std::string only = arguments.value("--way=");
  if (only.empty()) {
    bench.mnist(Precision::kFloat32, 130);
    if (comm->device().is_cuda()) bench.mnist(Precision::kTf32, 105);
    bench.long_step();
  }
  int found = 0;
  for (const Way& way : ways()) {
    if (!only.empty() && way.name != only) continue;
    bench.linear_stack(way, !only.empty());
    ++found;
  }
  if (found == 0) throw catena::ValueError("bench_data_parallel: no way is called '" + only + "'");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
