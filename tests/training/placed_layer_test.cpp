// A user's layer of which ranks have uneven slices, placed by a line each: norms, clipping, rules
// with norms, checkpoints, pipelines and summaries do the rest.
#include <map>

#include "catena/array/manipulation.h"
#include "catena/array/random.h"
#include "catena/comm/factory.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/lamb.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/parallel/grid.h"
#include "catena/parallel/pipeline/pipeline.h"
#include "catena/parallel/pipeline/schedules.h"
#include "catena/parallel/tensor/functions.h"
#include "catena/parallel/tensor/norms.h"
#include "catena/parallel/tensor/placement.h"
#include "catena/training/checkpoint_folder.h"
#include "catena/training/model_summary.h"
#include "error_text.h"
#include "rank_results.h"
#include "temp_folder.h"

namespace catena::training {
namespace {

namespace F = functions;
namespace pp = parallel::pipeline;

constexpr int64_t kOuter = 4, kInner = 10, kBatch = 6;
constexpr uint64_t kSeed = 5;
constexpr double kClip = 0.05;

// Rows of the inner products on each of so many ranks.
std::vector<int64_t> sizes_of(const Communicator& comm) {
  if (comm.size() == 1) return {kInner};
  return comm.size() == 2 ? std::vector<int64_t>{7, 3} : std::vector<int64_t>{5, 1, 4};
}

// x + down(value(x) * sigmoid(gate(x))).
struct Gated : Parameterized {
  OwnedParameter value, gate, down;
  CATENA_PARAMETERS(value, gate, down)

  explicit Gated(Communicator& comm) : comm_(comm.shared_from_this()) {
    const auto whole = [](int64_t in, int64_t out) {
      return F::Linear(in, out, {.nobias = true, .dtype = dtype::float64}).W.data();
    };
    const std::vector<int64_t> sizes = sizes_of(comm);
    value = parallel::part_of_whole(whole(kOuter, kInner), comm, 0, sizes);
    gate = parallel::part_of_whole(whole(kOuter, kInner), comm, 0, sizes);
    down = parallel::part_of_whole(whole(kInner, kOuter), comm, 1, sizes);
  }
  Variable operator()(const Variable& x) const {
    const Variable own = F::copy_to_ranks(x, *comm_);
    const Variable inner = F::linear(own, value) * F::sigmoid(F::linear(own, gate));
    return x + F::sum_of_ranks(F::linear(inner, down), *comm_);
  }

 private:
  CommunicatorPtr comm_;
};

// Two of them with something whole in between.
struct Net : FunctionSet {
  Gated first;
  F::Linear middle;
  Gated last;
  CATENA_FUNCTIONS(first, middle, last)
  explicit Net(Communicator& comm)
      : first(comm), middle(kOuter, kOuter, {.dtype = dtype::float64}), last(comm) {}
  Variable operator()(const Variable& x) { return last(middle(first(x))); }
};

std::pair<Array, Array> samples_of(int64_t step, Device device) {
  const Array x = sin(arange(kBatch * kOuter, {dtype::float64, device}) * (1.0 + double(step)));
  return {x.reshape({kBatch, kOuter}), cos(x * 3).reshape({kBatch, kOuter})};
}

Variable loss_of(const Variable& y, const Array& t) { return F::mean_squared_error(y, t); }

using Named = std::map<std::string, Array>;

// On cpu:0, of all ranks.
Array joined(Communicator& comm, const Parameter& p) {
  const Placement* placement = p.placement();
  if (placement == nullptr || placement->boxes() == 1) return p.data().to(cpu(0));
  const int axis = p.shape()[0] == placement->whole[0] ? 1 : 0;
  const auto sizes = comm.all_gather_object(p.shape()[size_t(axis)]);
  const auto values = comm.all_gather_object(p.data().to_vector<double>());
  Arrays all;
  for (size_t r = 0; r < sizes.size(); ++r) {
    Shape shape = p.shape();
    shape[size_t(axis)] = sizes[r];
    all.push_back(array(values[r], shape, cpu(0)));
  }
  return concatenate(all, axis);
}

Named values_of(Communicator& comm, Parameterized& model) {
  Named values;
  for (const auto& [path, p] : model.named_parameters()) values[path] = joined(comm, p);
  return values;
}

void expect_equal(const Named& got, const Named& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [path, values] : expected) {
    ASSERT_EQ(got.at(path).shape(), values.shape()) << path;
    const std::vector<double> a = got.at(path).to_vector<double>(), b = values.to_vector<double>();
    for (size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-11) << path << " at " << i;
  }
}

std::unique_ptr<Optimizer> rule_of(bool lamb) {
  if (lamb) return std::make_unique<optimizers::LAMB>(0.02);
  return std::make_unique<optimizers::Adam>(0.02);
}

struct Run {
  bool lamb = false;
  int64_t first = 0, last = 6;
  std::string load_from = {}, save_to = {};
};

// On so many ranks, which clip; the values on rank 0.
Named train(int ranks, const Run& run) {
  return testing::of_ranks(ranks, [&](Communicator& comm) {
    const DeviceScope scope(comm.device());
    random::default_state(comm.device()).seed(kSeed);
    Net net(comm);
    const auto rule = rule_of(run.lamb);
    rule->add_hook("clip", optimizers::gradient_clipping(kClip));
    parallel::share_norms(*rule, net, comm);
    rule->setup(net);
    serializers::Checkpoint state;
    state.add("model", net);
    state.add("optimizer", *rule);
    if (!run.load_from.empty()) CheckpointFolder(run.load_from, &comm).load(state);
    for (int64_t step = run.first; step < run.last; ++step) {
      const auto [x, t] = samples_of(step, comm.device());
      rule->zero_grads();
      loss_of(net(Variable::constant(x)), t).backward();
      EXPECT_GT(rule->compute_grads_norm(), kClip) << "clips";
      rule->update();
    }
    if (!run.save_to.empty()) CheckpointFolder(run.save_to, &comm).save(state, run.last);
    return values_of(comm, net);
  })[0];
}

TEST(PlacedLayer, ClipsAndTakesNormsAsOneProcess) {
  for (const bool lamb : {false, true}) {
    const Named expected = train(1, {.lamb = lamb});
    for (const int ranks : {2, 3}) expect_equal(train(ranks, {.lamb = lamb}), expected);
  }
}

TEST(PlacedLayer, IsSavedForAnyNumberOfRanks) {
  const Named expected = train(1, {});
  for (const int saved : {1, 2, 3}) {
    const TempFolder folder;
    train(saved, {.last = 3, .save_to = folder.path()});
    for (const int loaded : {1, 2, 3})
      expect_equal(train(loaded, {.first = 3, .load_from = folder.path()}), expected);
  }
}

// In stages over ranks that share layers, with the norm of all; a loss scale changes nothing.
TEST(PlacedLayer, TrainsInAPipeline) {
  for (const bool lamb : {false, true}) {
    const Named expected = train(1, {.lamb = lamb});
    comm::run_threads(4, [&](Communicator& comm) {
      const parallel::Grid grid(comm, {.pipeline = 2, .tensor = 2});
      const DeviceScope scope(comm.device());
      random::default_state(comm.device()).seed(kSeed);
      Net net(grid.tensor());
      pp::Sequence model;
      model.add("first", std::move(net.first)).add("middle", std::move(net.middle));
      model.add("last", std::move(net.last));
      pp::Pipeline pipeline(model, {{0, 2}}, pp::gpipe(2, 2), grid, {.clip_norm = kClip});
      pipeline.setup([&] {
        auto rule = rule_of(lamb);
        optimizers::add_loss_scale(*rule, {.initial = 64});
        return rule;
      });
      for (int64_t step = 0; step < 6; ++step) {
        const auto [x, t] = samples_of(step, comm.device());
        pipeline.step(x, t, loss_of);
      }
      pipeline.collect();
      const Named all = values_of(grid.tensor(), model);
      if (comm.rank() == 0) expect_equal(all, expected);
    });
  }
}

// Which stage has a parameter stays known: the other rank's values, which are old, are not saved.
TEST(PlacedLayer, DeclaredSlicesStayInTheirStage) {
  const TempFolder folder;
  comm::run_threads(2, [&](Communicator& comm) {
    const DeviceScope scope(comm.device());
    random::default_state(comm.device()).seed(kSeed);
    F::Linear first(kOuter, kOuter, {.dtype = dtype::float64}), last = first;
    const Parameter W = first.W;
    pp::Sequence model;
    model.add("first", std::move(first)).add("last", std::move(last));
    pp::Pipeline pipeline(model, {{0, 1}}, pp::gpipe(2, 2), comm);
    pipeline.setup([] { return optimizers::Adam(0.02); });
    const auto [x, t] = samples_of(0, comm.device());
    pipeline.step(x, t, loss_of);
    serializers::Checkpoint state;
    add_pipeline(state, pipeline);
    state.declare_slice(W, {.axis = 0});
    CheckpointFolder(folder.path(), &comm).save(state, 1);
    const Array trained = comm.broadcast(W.data().copy(), 0);
    CheckpointFolder(folder.path(), &comm).load(state);
    if (comm.rank() != 0) return;
    EXPECT_EQ(W.data().to_vector<double>(), trained.to_vector<double>());
  });
}

TEST(PlacedLayer, SummarySaysWhatIsHere) {
  comm::run_threads(2, [](Communicator& comm) {
    const DeviceScope scope(comm.device());
    random::default_state(comm.device()).seed(kSeed);
    Net net(comm);
    const std::string text =
        summary(net, Variable::constant(samples_of(0, comm.device()).first)).to_string();
    if (comm.rank() == 1)
      expect_contains(
          text, {"first/gate: 3 of 10 rows, ranks 1/2", "first/down: 3 of 10 columns, ranks 1/2"});
    EXPECT_EQ(text.find("middle/W:"), std::string::npos);
  });
}

}  // namespace
}  // namespace catena::training
