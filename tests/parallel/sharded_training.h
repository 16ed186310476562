// Training whose arrays are spread over ranks, and the same training on one process, for the tests
// over threads, processes and GPUs.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "catena/core/graph.h"
#include "catena/optimizers/lamb.h"
#include "catena/optimizers/lars.h"
#include "catena/optimizers/moving_average.h"
#include "catena/parallel/no_sync.h"
#include "parallel/network.h"

namespace catena::testing {

// More units than are in use at once.
struct DeepNet : FunctionSet {
  F::Linear l1, l2, l3, l4, l5, l6;
  explicit DeepNet(Dtype dtype, double phase = 0)
      : l1(layer(kInputs, 9, dtype, phase + 1)),
        l2(layer(9, 9, dtype, phase + 2)),
        l3(layer(9, 8, dtype, phase + 3)),
        l4(layer(8, 9, dtype, phase + 4)),
        l5(layer(9, 9, dtype, phase + 5)),
        l6(layer(9, kClasses, dtype, phase + 6)) {}
  CATENA_FUNCTIONS(l1, l2, l3, l4, l5, l6)

  Variable operator()(const Variable& x) {
    const Variable h = F::tanh(l2(F::tanh(l1(x))));
    return l6(F::tanh(l5(F::tanh(l4(F::tanh(l3(h)))))) + h);
  }
};

struct ShardedJob {
  std::string rule = "Adam";  // "LARS", "LAMB", or one that make_rule knows
  Dtype dtype = dtype::float64;
  parallel::BucketOptions options = {};
  int hosts = 1;             // arrays are spread over the ranks of each
  int begin = 0, end = 10;   // steps
  int64_t samples = 7;       // of a batch over all ranks: not equally many on each
  double clip_norm = 0;      // 0: no clipping
  int64_t passes = 1;        // of each batch, all but the last inside of no_sync()
  bool accumulates = false;  // passes over parts of the batch, all but the last in accumulate()
  bool freezes = false;
  bool replays = false;  // steps from the third on, as a captured graph
  // Where training goes on from.
  std::optional<std::map<std::string, Array>> state = std::nullopt;
  Values values = {};
};

inline parallel::BucketOptions sharded(parallel::Sharding sharding, bool gather_ahead = false) {
  parallel::BucketOptions options{300, 700, 200, sharding};  // a few buckets
  options.gather_ahead = gather_ahead;
  return options;
}

// Every way of spreading arrays, and none.
inline std::vector<parallel::BucketOptions> all_shardings() {
  using parallel::Sharding;
  return {sharded(Sharding::kNone),
          sharded(Sharding::kStates),
          sharded(Sharding::kGradients),
          sharded(Sharding::kStates, true),
          sharded(Sharding::kGradients, true),
          sharded(Sharding::kParameters)};
}

inline std::string shown(const parallel::BucketOptions& options) {
  return message(name(options.sharding), options.gather_ahead ? ", gathered ahead" : "");
}

inline std::unique_ptr<Optimizer> rule_of(const ShardedJob& job) {
  std::unique_ptr<Optimizer> rule;
  if (job.rule == "LARS")
    rule = std::make_unique<optimizers::LARS>(0.5,
                                              optimizers::LARSOptions{.trust = 0.1, .decay = 0.01});
  else if (job.rule == "LAMB")
    rule = std::make_unique<optimizers::LAMB>(0.01);
  else
    rule = make_rule(job.rule);
  rule->add_group("biases", {"*/b"}, {.rate = 0.5, .decay = 0});
  rule->add_hook("decay", optimizers::weight_decay(0.01));
  if (job.clip_norm > 0) rule->add_hook("clip", optimizers::gradient_clipping(job.clip_norm));
  return rule;
}

inline std::map<std::string, Array> host_copy_of(const NamedArrays& state) {
  std::map<std::string, Array> result;
  for (const auto& [name, array] : state) result[name] = array.to(cpu(0)).copy();
  return result;
}

struct ShardedResult {
  Values values, averages;
  std::map<std::string, Array> state;
  std::vector<double> norms;  // of the gradients, where they are clipped
  int64_t bytes = 0;          // of all arenas between two steps
  int64_t gathers = 0;
};

// What the parameters are while their moving averages are in use.
inline Values averages_of(const Parameterized& model, optimizers::MovingAverage& average) {
  const optimizers::MovingAverage::Scope in_use(average);
  return values_of(model);
}

inline void write_values(const Parameterized& model, const Values& values) {
  const Parameters parameters = model.parameters();
  for (size_t k = 0; k < values.size(); ++k)
    parameters[k].copy_from(
        array(values[k], parameters[k].shape(), cpu(0)).astype(parameters[k].dtype()));
}

inline Variable mean_loss(DeepNet& net, const Batch& batch) {
  return F::softmax_cross_entropy(net(Variable(batch.x, Volatile::off)), batch.t);
}

// This rank's samples [begin, end) of a step's batch, in as many passes as the job says. The loss
// is the mean over them.
// With `runs_empty` also without samples: ranks that gather parameters as they use them all do.
inline void run_passes(DeepNet& net, const Batch& batch, int64_t passes, Communicator* comm,
                       bool runs_empty = false) {
  if (batch.size() == 0 && !runs_empty) return;
  for (int64_t k = 0; k < passes; ++k) {
    std::optional<parallel::NoSync> apart;
    if (comm != nullptr && k + 1 < passes) apart.emplace(*comm);
    const Variable loss = mean_loss(net, batch);
    (passes == 1 ? loss : loss * (1.0 / double(passes))).backward();
  }
}

// This rank's samples in passes over parts of them, of which some may be empty.
inline void run_accumulated(DeepNet& net, const Batch& batch, const ShardedJob& job,
                            MultiNodeOptimizer& optimizer) {
  const Communicator& comm = optimizer.comm();
  const auto rows_of = [&](int rank, int64_t pass) {
    const auto [begin, end] = testing::shard(job.samples, rank, comm.size());
    return testing::shard(end - begin, int((pass + rank) % job.passes), int(job.passes));
  };
  for (int64_t pass = 0; pass < job.passes; ++pass) {
    std::optional<parallel::NoSync> more;
    if (pass + 1 < job.passes) more.emplace(optimizer.accumulate());
    const auto [begin, end] = rows_of(comm.rank(), pass);
    int64_t all = 0;
    for (int r = 0; r < comm.size(); ++r) all += rows_of(r, pass).second - rows_of(r, pass).first;
    optimizer.set_batch_weight(end - begin, all);
    const bool is_empty = begin == end;
    if (is_empty && !optimizer.gathers_in_use()) continue;
    mean_loss(net, {batch.x(Slice(begin, end)), batch.t(Slice(begin, end))})
        .backward({.drop_parameter_gradients = is_empty});
  }
}

inline ShardedResult train_alone(const ShardedJob& job, Device device = cpu(0)) {
  DeepNet net(job.dtype);
  net.to(device);
  const auto rule = rule_of(job);
  const auto average = optimizers::add_moving_average(*rule, 0.9);
  rule->setup(net);
  if (job.freezes) rule->freeze("/l3");
  ShardedResult result;
  for (int step = job.begin; step < job.end; ++step) {
    rule->zero_grads();
    const Batch batch = batch_of(step, job.samples, job.dtype);
    run_passes(net, part(batch, 0, job.samples, device), job.passes, nullptr);
    if (job.clip_norm > 0) result.norms.push_back(rule->compute_grads_norm());
    rule->update();
  }
  result.averages = averages_of(net, *average);
  result.values = values_of(net);
  return result;
}

inline parallel::BatchRanks ranks_of(Communicator& comm, int hosts) {
  if (hosts == 1) return comm;
  Mesh mesh(comm, {{"host", hosts}, {"rank", -1}});
  return parallel::DataAxes{mesh, {"host", "rank"}, {"rank"}};
}

inline ShardedResult train_sharded(Communicator& comm, const ShardedJob& job) {
  DeepNet net(job.dtype, job.values.empty() ? comm.rank() : 0);
  net.to(comm.device());
  auto optimizer =
      create_multi_node_optimizer(rule_of(job), ranks_of(comm, job.hosts), job.options);
  const auto average = optimizers::add_moving_average(optimizer.actual_optimizer(), 0.9);
  optimizer.setup(net);
  if (job.freezes) optimizer->freeze("/l3");
  if (job.state) {
    optimizer.gather_parameters();
    write_values(net, job.values);
    optimizer->load_state(*job.state);
  }
  ShardedResult result;
  const auto [begin, end] = testing::shard(job.samples, comm.rank(), comm.size());
  const auto batch_at = [&, begin = begin, end = end](int step) {
    return part(batch_of(step, job.samples, job.dtype), begin, end, comm.device());
  };
  const Batch batch = batch_at(job.begin);
  if (!job.accumulates && job.samples % comm.size() != 0)
    optimizer.set_batch_weight(end - begin, job.samples);
  const auto step = [&] {
    optimizer.zero_grads();
    if (job.accumulates)
      run_accumulated(net, batch, job, optimizer);
    else
      run_passes(net, batch, job.passes, &optimizer.comm(),
                 job.options.sharding == parallel::Sharding::kParameters);
    if (job.clip_norm > 0 && !job.replays) result.norms.push_back(optimizer->compute_grads_norm());
    optimizer.update();
  };
  cuda::Graph graph;
  for (int i = job.begin; i < job.end; ++i) {
    const Batch next = batch_at(i);
    batch.x.assign(next.x);
    batch.t.assign(next.t);
    if (job.replays && i == job.begin + 3) {
      optimizer->prepare_for_capture();
      graph = cuda::Graph::capture(comm.device(), step);
    }
    graph.defined() ? graph.launch() : step();
  }
  for (const auto& arena : optimizer->layout().arenas()) result.bytes += arena.bytes();
  result.state = host_copy_of(optimizer->state());
  if (optimizer.sharded() != nullptr) result.gathers = optimizer.sharded()->gathers();
  optimizer.gather_parameters();
  optimizer.check_state();
  result.averages = averages_of(net, *average);
  result.values = values_of(net);
  return result;
}

// What each rank of threads ends with.
inline std::vector<ShardedResult> over_threads(int ranks, const ShardedJob& job) {
  std::vector<ShardedResult> results(static_cast<size_t>(ranks));
  comm::run_threads(
      ranks, [&](Communicator& comm) { results[size_t(comm.rank())] = train_sharded(comm, job); });
  return results;
}

// A model and its optimizer, and a step by the same batch on all ranks.
struct ShardedModel {
  DeepNet net{dtype::float64};
  MultiNodeOptimizer optimizer;
  ShardedModel(Communicator& comm, const parallel::BucketOptions& options)
      : optimizer(create_multi_node_optimizer(optimizers::Adam(0.01), comm, options)) {
    net.to(comm.device());
    optimizer.setup(net);
  }
  Batch batch() const { return part(batch_of(0, 6, dtype::float64), 0, 6, net.l1.W.device()); }
  void pass() { mean_loss(net, batch()).backward(); }
  // A capture has no copies from the host: it takes a batch that is on the device.
  void step() { step(batch()); }
  void step(const Batch& batch) {
    optimizer.zero_grads();
    mean_loss(net, batch).backward();
    optimizer.update();
  }
  size_t count(const std::function<bool(const optimizers::ParameterArena&)>& is_such) const {
    const auto& arenas = const_cast<MultiNodeOptimizer&>(optimizer)->layout().arenas();
    return size_t(std::count_if(arenas.begin(), arenas.end(), is_such));
  }
};

}  // namespace catena::testing
