// Data-parallel training steps over the ranks that catena-run started, beside the same step of one
// rank alone:
//   catena-run -n 4 build/bin/bench_data_parallel
// MNIST, 8 x Linear(4096, 4096) with each way to spread its arrays over the ranks, a step so long
// that communication should hide behind it, and, with --slices, steps in slices, whose bits do not
// depend on the number of ranks, against those without. data_parallel_peers.py runs the first
// three with PyTorch.
// Without GPUs the same cases run over mpi on the CPU, in small sizes and without goals.
#include <optional>
#include <string>
#include <vector>

#include "catena/catena.h"
#include "rank_timing.h"
#include "workloads.h"

namespace {

using namespace bench;
using catena::Array;
using catena::Device;
using catena::Precision;
using catena::parallel::BucketOptions;
using catena::parallel::Sharding;

constexpr const char* kAlone = "the step without communication";

// How the gradients of the linear layers are averaged, and the goal on four ranks in milliseconds.
struct Way {
  std::string name, rule;
  BucketOptions options;
  double goal;  // 0: none
  bool has_16_bit_products = false;
};

// Each layer of the stack.
std::vector<std::string> layer_paths() {
  std::vector<std::string> paths;
  for (int i = 0; i < 8; ++i) paths.push_back("/layers/" + std::to_string(i));
  return paths;
}

std::vector<Way> ways() {
  return {
      {"SGD", "SGD", {}, 4.2},
      {"Adam", "Adam", {}, 4.6},
      {"SGD, nothing sharded", "SGD", {.sharding = Sharding::kNone}, 4.2},
      {"Adam, nothing sharded", "Adam", {.sharding = Sharding::kNone}, 4.6},
      {"SGD, gradients sent as bfloat16", "SGD", {.reduce_dtype = catena::Dtype::kBFloat16}, 3.8},
      {"SGD, nothing sharded, gradients sent as bfloat16",
       "SGD",
       {.sharding = Sharding::kNone, .reduce_dtype = catena::Dtype::kBFloat16},
       3.8},
      {"SGD, sharded states, gathered ahead",
       "SGD",
       {.sharding = Sharding::kStates, .gather_ahead = true},
       4.2},
      {"SGD, sharded states, gathered ahead, gradients sent as bfloat16",
       "SGD",
       {.sharding = Sharding::kStates,
        .gather_ahead = true,
        .reduce_dtype = catena::Dtype::kBFloat16},
       3.8},
      {"Adam, bfloat16 products", "Adam", {}, 0, true},
      {"Adam, bfloat16 products, nothing sharded", "Adam", {.sharding = Sharding::kNone}, 0, true},
      {"Adam, sharded states", "Adam", {.sharding = Sharding::kStates}, 4.6},
      {"Adam, sharded states, gathered ahead",
       "Adam",
       {.sharding = Sharding::kStates, .gather_ahead = true},
       4.6},
      {"Adam, sharded gradients", "Adam", {.sharding = Sharding::kGradients}, 4.6},
      {"Adam, sharded parameters",
       "Adam",
       {.sharding = Sharding::kParameters, .units = layer_paths()},
       4.6}};
}

class Bench : public RankBench {
 public:
  Bench(catena::comm::Communicator& comm, bool quick) : RankBench(comm), quick_(quick) {}

  void mnist(Precision precision, double goal);
  void linear_stack(const Way& way, bool with_memory);
  void long_step(const std::string& name, const BucketOptions& options);
  void long_step_in_lockstep();
  void slices();

 private:
  template <class Step>
  void long_row(const std::string& name, LinearStack& alone, Step&& together, double goal_ratio);
  int64_t long_width() const { return on_gpu() ? 4096 : 128; }
  int64_t long_batch() const { return on_gpu() ? 20 * 1024 : 64; }
  const char* precision() const {
    return catena::config().matmul_precision == Precision::kTf32 ? "tf32" : "float32";
  }
  std::optional<double> at_four(double goal) const {
    return goal > 0 && on_gpu() && !quick_ && comm_.size() == 4 ? std::optional(goal)
                                                                : std::nullopt;
  }
  // The step as a graph.
  template <class Step>
  catena::cuda::Graph captured(catena::Optimizer& optimizer, Step&& step) {
    for (int i = 0; i < 3; ++i) step();
    optimizer.prepare_for_capture();
    return catena::cuda::Graph::capture(device_, step);
  }
  // The slowest rank's time of it.
  template <class Step>
  double slowest_replay(const Sampling& sampling, catena::Optimizer& optimizer, Step&& step) {
    catena::cuda::Graph graph = captured(optimizer, step);
    return slowest(sampling, [&] { graph.launch(); });
  }
  double most_gib(size_t bytes);

  bool quick_;
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

// The most that a rank has.
double Bench::most_gib(size_t bytes) {
  return comm_.all_reduce_value(double(bytes), catena::comm::Reduction::kMax) / double(1 << 30);
}

// Of an optimizer's arenas, those that are in memory of the communicator.
size_t bytes_outside_of_pool(catena::Optimizer& optimizer) {
  size_t bytes = 0;
  for (const auto& arena : optimizer.layout().arenas())
    for (const Array& block : {arena.data().memory, arena.gradient().memory})
      if (block.storage()->deleter == nullptr) bytes += block.storage()->bytes;
  return bytes;
}

void Bench::linear_stack(const Way& way, bool with_memory) {
  const int64_t width = !on_gpu() ? 128 : quick_ ? 1024 : 4096, batch = on_gpu() ? 1024 : 32;
  if (on_gpu()) catena::config().matmul_precision = Precision::kTf32;
  std::optional<catena::AutocastScope> autocast;
  if (way.has_16_bit_products) autocast.emplace(catena::Dtype::kBFloat16);
  const Sampling sampling{5, quick_ ? 3 : 7, on_gpu() ? 20 : 3};
  const size_t free_before = catena::memory_info(device_).free,
               used_before = catena::memory_statistics(device_).in_use;
  LinearStack shared(device_, 8, width, batch);
  auto averaged = catena::create_multi_node_optimizer(make_rule(way.rule), comm_, way.options);
  averaged.setup(shared.model());
  catena::Optimizer& optimizer = averaged.actual_optimizer();
  const auto step = [&] { shared.step(optimizer); };
  step();
  catena::synchronize(device_);
  catena::reset_peak_memory(device_);
  const double eager = slowest(sampling, step) * 1e3;
  catena::synchronize(device_);
  const double taken = most_gib(free_before - catena::memory_info(device_).free);
  const double of_arrays = most_gib(catena::memory_statistics(device_).peak_in_use - used_before +
                                    bytes_outside_of_pool(optimizer));
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
  if (!with_memory) return;
  Row memory{.name = name + ", arrays of a rank in eager steps at most",
             .precision = precision(),
             .value = of_arrays,
             .unit = "GiB"};
  row(memory);
  memory.name = name + ", memory that a rank takes from its device";
  memory.value = taken;
  row(memory);
}

// Weak scaling: the same work of each rank, about 50 ms on an H200. In turn, as such steps warm a
// GPU until it lowers its clock.
template <class Step>
void Bench::long_row(const std::string& name, LinearStack& alone, Step&& together,
                     double goal_ratio) {
  const Sampling sampling{2, quick_ ? 3 : 5, on_gpu() ? 10 : 3};
  const auto own = make_rule("SGD");
  own->setup(alone.model());
  Row r{.name = "8 x Linear(" + std::to_string(long_width()) + "), batch " +
                std::to_string(long_batch()) + " a rank, " + name + ", eager",
        .precision = precision(),
        .unit = "ms",
        .limit_name = kAlone};
  if (at_four(goal_ratio)) r.goal_ratio = goal_ratio;
  const auto [value, limit] = slowest_in_turn(
      sampling, [&] { together(*own); }, [&] { alone.step(*own); });
  r.value = value * 1e3;
  r.limit = limit * 1e3;
  row(r);
}

void Bench::long_step(const std::string& name, const BucketOptions& options) {
  LinearStack alone(device_, 8, long_width(), long_batch()),
      shared(device_, 8, long_width(), long_batch());
  auto averaged = catena::create_multi_node_optimizer(make_rule("SGD"), comm_, options);
  averaged.setup(shared.model());
  long_row(
      name, alone, [&](catena::Optimizer&) { shared.step(averaged.actual_optimizer()); }, 1 / 0.98);
}

// What is lost where ranks only wait for each other, one number long, in each step: the slowest of
// them is another one each time.
void Bench::long_step_in_lockstep() {
  LinearStack alone(device_, 8, long_width(), long_batch());
  const Array number = catena::zeros({1}, {catena::dtype::float32, device_});
  const auto together = [&](catena::Optimizer& own) {
    alone.step(own);
    comm_.all_reduce(number, {}, number);
  };
  long_row("SGD, one number exchanged in each step", alone, together, 0);
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
      catena::cuda::Graph whole_graph = captured(whole.optimizer(), [&] { whole(); }),
                          sliced_graph = captured(sliced.optimizer(), [&] { sliced(); });
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
  const Arguments arguments(
      argc, argv, "Data-parallel steps; start it with catena-run.",
      {{"--way=",
        "only the linear layers in this way, such as 'Adam, sharded states', and the "
        "memory that a rank takes for it"},
       {"--mnist", "only the MNIST steps"},
       {"--slices", "only steps in slices, beside those without"}});
  const auto comm = catena::create_communicator();
  const catena::DeviceScope scope(comm->device());
  Bench bench(*comm, arguments.quick());
  if (arguments.has("--slices")) {
    bench.slices();
    return 0;
  }
  const std::string only = arguments.value("--way=");
  if (only.empty()) {
    bench.mnist(Precision::kFloat32, 130);
    if (comm->device().is_cuda()) bench.mnist(Precision::kTf32, 105);
    if (arguments.has("--mnist")) return 0;
    if (comm->device().is_cuda()) catena::config().matmul_precision = Precision::kTf32;
    bench.long_step_in_lockstep();
    bench.long_step("SGD", {});
    bench.long_step("SGD, nothing sharded", {.sharding = Sharding::kNone});
    bench.long_step("SGD, sharded states, gathered ahead",
                    {.sharding = Sharding::kStates, .gather_ahead = true});
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
