// Models of tensor-parallel layers trained against one process: alone, with replicas, and as
// pipelines of replicas.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>

#include "catena/core/backend.h"
#include "catena/functions/activation.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/noise/dropout.h"
#include "catena/functions/normalization/layer_normalization.h"
#include "catena/optimizers/lamb.h"
#include "catena/optimizers/lars.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/parallel/grid.h"
#include "catena/parallel/pipeline/pipeline.h"
#include "catena/parallel/pipeline/schedules.h"
#include "catena/parallel/tensor/embed_id.h"
#include "catena/parallel/tensor/linear.h"
#include "catena/parallel/tensor/normalization.h"
#include "catena/parallel/tensor/norms.h"
#include "catena/parallel/tensor/softmax_cross_entropy.h"
#include "cuda/gpu.h"
#include "error_text.h"
#include "parallel/tensor/ranks.h"

namespace catena::parallel::tensor_training {
namespace {

using namespace testing;  // NOLINT: waves and ranks

constexpr int64_t kVocab = 12, kHidden = 12, kInner = 24, kTokens = 24;
constexpr int kSteps = 10;

F::LinearOptions of_double(bool nobias = false) {
  return {.bias = nobias ? 0 : 0.1, .nobias = nobias, .dtype = dtype::float64};
}
F::LayerNormalizationOptions double_norm() { return {.dtype = dtype::float64}; }
F::RMSNormalizationOptions double_rms() { return {.dtype = dtype::float64}; }

// A block of a transformer without attention.
template <class Norm, class Up, class Down>
struct Block : FunctionSet {
  Norm norm;
  Up up;
  Down down;
  Block(Norm n, Up u, Down d) : norm(std::move(n)), up(std::move(u)), down(std::move(d)) {}
  CATENA_FUNCTIONS(norm, up, down)
  Variable operator()(const Variable& h) const { return h + down(F::gelu(up(norm(h)))); }
};

template <class Norm, class Output>
struct Head : FunctionSet {
  Norm norm;
  Output out;
  Head(Norm n, Output o) : norm(std::move(n)), out(std::move(o)) {}
  CATENA_FUNCTIONS(norm, out)
  Variable operator()(const Variable& h) const { return out(norm(h)); }
};

template <class Embed, class B, class H>
struct Net : FunctionSet {
  Embed embed;
  B block;
  H head;
  Net(Embed e, B b, H h) : embed(std::move(e)), block(std::move(b)), head(std::move(h)) {}
  CATENA_FUNCTIONS(embed, block, head)
  Variable operator()(const Array& ids) const { return head(block(embed(ids))); }
};

// Draws in the same order as split_net; braces keep the order of the arguments.
auto whole_net() {
  return Net{
      F::EmbedID(kVocab, kHidden, {.dtype = dtype::float64}),
      Block{F::LayerNormalization(kHidden, double_norm()), F::Linear(kHidden, kInner, of_double()),
            F::Linear(kInner, kHidden, of_double())},
      Head{F::RMSNormalization(kHidden, double_rms()),
           F::Linear(kHidden, kVocab, of_double(true))}};
}

auto split_net(Communicator& comm) {
  return Net{VocabParallelEmbedID(kVocab, kHidden, comm, {.dtype = dtype::float64}),
             Block{F::LayerNormalization(kHidden, double_norm()),
                   ColumnParallelLinear(kHidden, kInner, comm, of_double()),
                   RowParallelLinear(kInner, kHidden, comm, of_double())},
             Head{F::RMSNormalization(kHidden, double_rms()),
                  ColumnParallelLinear(kHidden, kVocab, comm, of_double(true))}};
}

auto sequence_net(Communicator& comm) {
  return Net{
      VocabParallelEmbedID(kVocab, kHidden, comm, {.dtype = dtype::float64},
                           {.sequence_parallel = true}),
      Block{SequenceParallelLayerNormalization(kHidden, comm, double_norm()),
            ColumnParallelLinear(kHidden, kInner, comm, of_double(), {.sequence_parallel = true}),
            RowParallelLinear(kInner, kHidden, comm, of_double(), {.sequence_parallel = true})},
      Head{SequenceParallelRMSNormalization(kHidden, comm, double_rms()),
           ColumnParallelLinear(kHidden, kVocab, comm, of_double(true),
                                {.sequence_parallel = true})}};
}

// Tokens and the ones to predict, on cpu:0; the last but one of each step is ignored.
std::pair<Array, Array> tokens_of(int step) {
  std::vector<int32_t> ids(kTokens), labels(kTokens);
  for (int i = 0; i < kTokens; ++i) {
    ids[size_t(i)] = (i * i + 5 * i + 3 * step) % int(kVocab);
    labels[size_t(i)] = (ids[size_t(i)] * 5 + 1) % int(kVocab);
  }
  return {array(ids, {kTokens}, cpu(0)), array(labels, {kTokens}, cpu(0))};
}

using Named = std::map<std::string, Array>;

struct Trained {
  std::vector<double> losses, norms;
  Named values, gradients;  // of the last step
};

// The axis along which a parameter is cut, by its path in a Net.
int cut_of(const std::string& path) {
  if (path == "block/down/W") return 1;
  for (const char* rows : {"embed/W", "block/up/W", "block/up/b", "head/out/W"})
    if (path == rows) return 0;
  return kWhole;
}

// By a rule, without the update of step `skipped`.
template <class Rule>
Trained one_process_by(Rule optimizer, double clip_norm = 0, int skipped = -1) {
  const DeviceScope scope(cpu(0));
  random::default_state(cpu(0)).seed(kSeed);
  auto net = whole_net();
  if (clip_norm > 0) optimizer.add_hook("clip", optimizers::gradient_clipping(clip_norm));
  optimizer.setup(net);
  Trained trained;
  for (int step = 0; step < kSteps; ++step) {
    const auto [ids, labels] = tokens_of(step);
    optimizer.zero_grads();
    const Variable loss = F::softmax_cross_entropy(net(ids), labels);
    loss.backward();
    trained.norms.push_back(optimizer.compute_grads_norm());
    if (step != skipped) optimizer.update();
    trained.losses.push_back(loss.item<double>());
  }
  for (const auto& [path, p] : net.named_parameters())
    trained.values[path] = p.data(), trained.gradients[path] = p.grad();
  return trained;
}

optimizers::Adam adam() { return optimizers::Adam(0.01); }

Trained one_process(double clip_norm = 0, int skipped = -1) {
  return one_process_by(adam(), clip_norm, skipped);
}

void expect_joined(Communicator& comm, const std::string& path, const Array& own,
                   const Array& expected, const std::string& what) {
  const int axis = cut_of(path);
  if (axis == kWhole) expect_whole(comm, own, what + path);
  const Array got = axis == kWhole ? own.to(cpu(0)) : whole_of(comm, own, axis);
  expect_close(got, expected, what + path, 1e-9);
}

void expect_trained(Communicator& comm, Parameterized& net, const Trained& expected) {
  for (const auto& [path, p] : net.named_parameters()) {
    if (p.state()->gradient_memory().defined())  // else another rank of the data keeps it
      expect_joined(comm, path, p.grad(), expected.gradients.at(path), "gradient of ");
    expect_joined(comm, path, p.data(), expected.values.at(path), "value of ");
  }
}

// Trains on this rank's share of the batch.
template <class AnyNet, class Rule>
void train(AnyNet& net, Rule& optimizer, Communicator& data, Communicator& tensor,
           const Trained& expected) {
  optimizer.setup(net);
  const auto [begin, end] = shard(kTokens, data.rank(), data.size());
  for (int step = 0; step < kSteps; ++step) {
    const auto [ids, labels] = tokens_of(step);
    const Slice own(begin, end);
    optimizer.zero_grads();
    const Variable loss = F::vocab_parallel_softmax_cross_entropy(
        net(ids(own).to(tensor.device())), labels(own).to(tensor.device()), tensor);
    loss.backward();
    optimizer.update();
    const double mean = data.all_reduce_value(loss.item<double>()) / data.size();
    EXPECT_NEAR(mean, expected.losses[size_t(step)], 1e-10) << "step " << step;
  }
  expect_trained(tensor, net, expected);
}

TEST(TensorTraining, EqualsOneProcess) {
  const Trained expected = one_process();
  EXPECT_LT(expected.losses.back(), 0.8 * expected.losses.front());
  for (const int ranks : kRankCounts) {
    SCOPED_TRACE(message(ranks, " ranks"));
    const auto train_net = [&](auto make) {
      run_alike(ranks, [&](Communicator& comm) {
        const CommunicatorPtr alone = comm.split(comm.rank());
        optimizers::Adam optimizer = adam();
        auto net = make(comm);
        train(net, optimizer, *alone, comm, expected);
      });
    };
    train_net(split_net);
    train_net(sequence_net);
  }
}

// Ranks that share a GPU also share its generator, so the layers begin on CPUs.
TEST(TensorTraining, RunsOnAGpu) {
  CATENA_NEEDS_GPU();
  const Trained expected = one_process();
  const auto program = [&](Communicator& comm) {
    const CommunicatorPtr alone = comm.split(comm.rank());
    const auto train_net = [&](auto make) {
      random::default_state(cpu(comm.rank())).seed(kSeed);
      auto net = [&] {
        const DeviceScope scope(cpu(comm.rank()));
        return make(comm);
      }();
      net.to(comm.device());
      optimizers::Adam optimizer(0.01);
      train(net, optimizer, *alone, comm, expected);
    };
    train_net([](Communicator& c) { return split_net(c); });
    train_net([](Communicator& c) { return sequence_net(c); });
  };
  comm::run_threads(2, program, {.devices = {cuda_device(0), cuda_device(0)}, .timeout = 60});
}

struct GridRun {
  bool sequence = false;
  Sharding sharding = Sharding::kNone;
  double clip_norm = 0;
  bool shares_norms = clip_norm > 0;
};

// Gradients are averaged over replicas and summed over the ranks of a layer. Replicas begin apart
// and take the first one's values, each rank from the one with its own slices.
template <class MakeRule>
void train_on_grids(const MakeRule& make_rule, const Trained& expected, const GridRun& run) {
  for (const GridShape& shape :
       {GridShape{.tensor = 3}, GridShape{.data = 2, .tensor = 2}, {.data = 3, .tensor = 2}}) {
    SCOPED_TRACE(message(shape.data, " x ", shape.tensor, ", sequence ", run.sequence, ", spread ",
                         name(run.sharding)));
    comm::run_threads(shape.data * shape.tensor, [&](Communicator& comm) {
      const Grid grid(comm, shape);
      random::default_state(comm.device()).seed(kSeed + uint64_t(grid.replica()));
      auto optimizer =
          create_multi_node_optimizer(make_rule(), grid.data(), {.sharding = run.sharding});
      if (run.clip_norm > 0)
        optimizer->add_hook("clip", optimizers::gradient_clipping(run.clip_norm));
      const auto train_net = [&](auto net) {
        if (run.shares_norms) share_norms(optimizer.actual_optimizer(), net, grid.tensor());
        train(net, optimizer, grid.data(), grid.tensor(), expected);
        if (run.clip_norm == 0) return;
        EXPECT_NEAR(optimizer->compute_grads_norm(), expected.norms.back(), 1e-9);
      };
      if (run.sequence)
        train_net(sequence_net(grid.tensor()));
      else
        train_net(split_net(grid.tensor()));
    });
  }
}

TEST(TensorTraining, ReplicasEqualOneProcess) {
  const Trained expected = one_process();
  for (const bool sequence : {false, true})
    for (const Sharding sharding : {Sharding::kNone, Sharding::kStates})
      train_on_grids(adam, expected, {sequence, sharding});
}

// What is whole counts once in the norm, and every rank's slices do.
TEST(TensorTraining, ClipsByTheNormOfAllSlices) {
  const double clip_norm = 0.3;
  const Trained expected = one_process(clip_norm);
  EXPECT_GT(*std::min_element(expected.norms.begin(), expected.norms.end()), clip_norm);
  EXPECT_GT(std::abs(expected.losses.back() - one_process().losses.back()), 1e-6) << "clips";
  for (const bool sequence : {false, true})
    for (const Sharding sharding : {Sharding::kNone, Sharding::kStates})
      train_on_grids(adam, expected, {sequence, sharding, clip_norm});
}

// Rules that scale each parameter's step by its norm.
TEST(TensorTraining, LambAndLarsTakeTheNormsOfWholeParameters) {
  const auto lamb = [] { return optimizers::LAMB(0.02); };
  const auto lars = [] { return optimizers::LARS(0.5, {.trust = 0.02}); };
  for (const Sharding sharding : {Sharding::kNone, Sharding::kStates}) {
    const GridRun run{.sharding = sharding, .shares_norms = true};
    train_on_grids(lamb, one_process_by(lamb()), run);
    train_on_grids(lars, one_process_by(lars()), run);
  }
}

TEST(TensorTraining, NormsCountFrozenAndFurtherParametersAsTheyAre) {
  run_alike(2, [](Communicator& comm) {
    auto net = split_net(comm);
    EXPECT_EQ(sliced_parameters(net).size(), 5u);
    optimizers::SGD optimizer(0.1);
    share_norms(optimizer, net, comm, {net.head.norm.gamma});  // as if it were a slice
    optimizer.setup(net);
    for (const Parameter& p : net.parameters()) p.set_grad(zeros_like(p.data()));
    EXPECT_EQ(optimizer.compute_grads_norm(), 0);
    net.head.norm.gamma.set_grad(ones_like(net.head.norm.gamma.data()));
    EXPECT_NEAR(optimizer.compute_grads_norm(), std::sqrt(2 * kHidden), 1e-12);
    net.block.down.b.set_grad(ones_like(net.block.down.b.data()));
    EXPECT_NEAR(optimizer.compute_grads_norm(), std::sqrt(3 * kHidden), 1e-12);
    net.block.up.b.set_grad(ones_like(net.block.up.b.data()));
    EXPECT_NEAR(optimizer.compute_grads_norm(), std::sqrt(3 * kHidden + kInner), 1e-12);
    optimizer.freeze(net.block.up.b);
    EXPECT_NEAR(optimizer.compute_grads_norm(), std::sqrt(3 * kHidden), 1e-12);
    expect_contains(error_of<ValueError>([&] { share_norms(optimizer, net, comm); }),
                    {"share_norms: the optimizer shares its norms already"});
  });
}

// Overflows ---------------------------------------------------------------------------------------

constexpr int kOverflow = 3;  // the step

// Adds nothing to x, and has a slice of a parameter whose gradient is slope^2 times the sum of gy.
struct Overflow : FunctionSet {
  OwnedParameter s{zeros({1}, dtype::float64)};
  CATENA_FUNCTIONS(s)
  std::shared_ptr<double> slope = std::make_shared<double>(0);
  Variable operator()(const Variable& x) const {
    const Variable& v = s.variable();
    return x + (v - Variable::constant(v.data())) * *slope * *slope;
  }
};

// Its gradient overflows on one rank of a group alone.
double slope_of(int step, const Communicator& tensor) {
  return step == kOverflow && tensor.rank() == tensor.size() - 1 ? 1e300 : 0;
}

TEST(TensorTraining, OverflowsOfASliceSkipTheUpdateOfAll) {
  const Trained expected = one_process(0, kOverflow);
  for (const GridShape& shape :
       {GridShape{.tensor = 2}, GridShape{.tensor = 3}, GridShape{.data = 2, .tensor = 2}}) {
    comm::run_threads(shape.data * shape.tensor, [&](Communicator& comm) {
      const Grid grid(comm, shape);
      random::default_state(comm.device()).seed(kSeed);
      auto optimizer = create_multi_node_optimizer(optimizers::Adam(0.01), grid.data());
      const auto scale = optimizers::add_loss_scale(optimizer.actual_optimizer(), {.initial = 64});
      share_overflows(optimizer.actual_optimizer(), grid.tensor());
      auto net = split_net(grid.tensor());
      Overflow overflow;
      overflow.to(comm.device());
      Parameters all = net.parameters();
      all.push_back(overflow.s);
      optimizer.setup(all);
      const auto [begin, end] = shard(kTokens, grid.data().rank(), grid.data().size());
      for (int step = 0; step < kSteps; ++step) {
        *overflow.slope = slope_of(step, grid.tensor());
        const auto [ids, labels] = tokens_of(step);
        const Slice own(begin, end);
        optimizer.zero_grads();
        optimizer
            ->scaled(F::vocab_parallel_softmax_cross_entropy(
                overflow(net(ids(own).to(comm.device()))), labels(own).to(comm.device()),
                grid.tensor()))
            .backward();
        optimizer.update();
      }
      EXPECT_EQ(scale->skipped(), 1);
      EXPECT_EQ(scale->value(), 32);
      EXPECT_EQ(optimizer->t(), kSteps - 1);
      for (const auto& [path, p] : net.named_parameters())
        expect_joined(grid.tensor(), path, p.data(), expected.values.at(path), "value of ");
    });
  }
}

TEST(TensorTraining, OverflowsAreSharedBehindALossScaleAndOnce) {
  run_alike(2, [](Communicator& comm) {
    optimizers::Adam optimizer(0.01);
    expect_contains(error_of<ValueError>([&] { share_overflows(optimizer, comm); }),
                    {"no loss scale", "add_loss_scale"});
    optimizers::add_loss_scale(optimizer);
    share_overflows(optimizer, comm);
    expect_contains(error_of<ValueError>([&] { share_overflows(optimizer, comm); }), {"already"});
  });
}

// Pipelines ---------------------------------------------------------------------------------------

void fill(pipeline::Sequence& model, Communicator& comm, bool sequence) {
  if (sequence) {
    auto net = sequence_net(comm);
    model.add("embed", std::move(net.embed)).add("block", std::move(net.block));
    model.add("head", std::move(net.head));
  } else {
    auto net = split_net(comm);
    model.add("embed", std::move(net.embed)).add("block", std::move(net.block));
    model.add("head", std::move(net.head));
  }
}

struct PipelineRun {
  bool sequence = false, recompute = false;
  double clip_norm = 0, loss_scale = 0;
};

// Trains a rank's stages. With a loss scale a slice overflows in one step.
template <class MakeRule>
void train_stages(const Grid& grid, pipeline::Schedule schedule, const Trained& expected,
                  const MakeRule& make_rule, const PipelineRun& run = {}) {
  const Device here = grid.comm().device();
  random::default_state(here).seed(kSeed + uint64_t(grid.replica()));
  pipeline::Sequence model;
  fill(model, grid.tensor(), run.sequence);
  Overflow overflow;
  const std::shared_ptr<double> slope = overflow.slope;
  pipeline::PipelineOptions options{.clip_norm = run.clip_norm, .sliced = {overflow.s}, .seed = 5};
  if (run.recompute) options.recompute = {0, 1};
  model.add("overflow", std::move(overflow));
  pipeline::Pipeline pipeline(model, {{0, 2}}, std::move(schedule), grid, options);
  pipeline.setup([&] {
    auto rule = make_rule();
    if (run.loss_scale > 0) optimizers::add_loss_scale(rule, {.initial = run.loss_scale});
    return rule;
  });
  const auto [begin, end] = shard(kTokens, grid.replica(), grid.data().size());
  for (int step = 0; step < kSteps; ++step) {
    if (run.loss_scale > 0) *slope = slope_of(step, grid.tensor());
    const auto [ids, labels] = tokens_of(step);
    const Slice own(begin, end);
    pipeline.step(ids(own).to(here), labels(own).to(here), [&](const Variable& y, const Array& t) {
      return F::vocab_parallel_softmax_cross_entropy(y, t, grid.tensor());
    });
    EXPECT_NEAR(pipeline.loss(), expected.losses[size_t(step)], 1e-10) << "step " << step;
  }
  for (const auto& [path, p] : model.named_parameters()) {
    const int stage = path.rfind("head", 0) == 0 ? 1 : 0;
    if (path == "overflow/s" || !pipeline.has_stage(stage)) continue;
    EXPECT_EQ(pipeline.optimizer(stage).t(), run.loss_scale > 0 ? kSteps - 1 : kSteps);
    if (run.clip_norm == 0 && run.loss_scale == 0)
      expect_joined(grid.tensor(), path, p.grad(), expected.gradients.at(path), "gradient of ");
    expect_joined(grid.tensor(), path, p.data(), expected.values.at(path), "value of ");
  }
}

template <class MakeRule>
void train_pipeline(const GridShape& shape, const pipeline::Schedule& schedule,
                    const Trained& expected, const MakeRule& make_rule,
                    const PipelineRun& run = {}) {
  SCOPED_TRACE(message(shape.data, " x ", shape.pipeline, " x ", shape.tensor, ", ", schedule.name,
                       ", sequence ", run.sequence, ", clip ", run.clip_norm));
  comm::run_threads(shape.data * shape.pipeline * shape.tensor, [&](Communicator& comm) {
    train_stages(Grid(comm, shape), schedule, expected, make_rule, run);
  });
}

TEST(TensorTraining, PipelinesOfReplicasEqualOneProcess) {
  const Trained expected = one_process();
  const GridShape shape{.data = 2, .pipeline = 2, .tensor = 2};
  const pipeline::Schedule schedules[] = {
      pipeline::gpipe(2, 3), pipeline::one_forward_one_backward(2, 3), pipeline::zero_bubble(2, 3)};
  for (const auto& schedule : schedules)
    for (const bool sequence : {false, true})
      train_pipeline(shape, schedule, expected, adam, {.sequence = sequence});
}

TEST(TensorTraining, StagesMayBeComputedAgain) {
  train_pipeline({.pipeline = 2, .tensor = 2}, pipeline::one_forward_one_backward(2, 4),
                 one_process(), adam, {.sequence = true, .recompute = true});
}

// Ranks that share a stage drop the same elements, whatever seed each was given.
TEST(TensorTraining, RanksOfAStageDropAlike) {
  comm::run_threads(4, [](Communicator& comm) {
    const Grid grid(comm, {.pipeline = 2, .tensor = 2});
    random::default_state(comm.device()).seed(kSeed);
    auto net = split_net(grid.tensor());
    pipeline::Sequence model;
    model.add("embed", std::move(net.embed));
    model.add([](const Variable& h) { return F::dropout(h, 0.5); });
    model.add("block", std::move(net.block)).add("head", std::move(net.head));
    pipeline::Pipeline pipeline(model, {{0, 3}}, pipeline::one_forward_one_backward(2, 3), grid,
                                {.seed = 5 + uint64_t(comm.rank())});
    pipeline.setup(adam);
    for (int step = 0; step < 3; ++step) {
      const auto [ids, labels] = tokens_of(step);
      pipeline.step(ids.to(comm.device()), labels.to(comm.device()),
                    [&](const Variable& y, const Array& t) {
                      return F::vocab_parallel_softmax_cross_entropy(y, t, grid.tensor());
                    });
    }
    for (const auto& [path, p] : model.named_parameters())
      if (cut_of(path) == kWhole) expect_whole(grid.tensor(), p.data(), path);
  });
}

// What a step says in which one rank of the last stage throws.
std::string error_of_step(const Grid& grid) {
  const Communicator& comm = grid.comm();
  random::default_state(comm.device()).seed(kSeed);
  pipeline::Sequence model;
  fill(model, grid.tensor(), false);
  pipeline::Pipeline pipeline(model, {{0, 2}}, pipeline::gpipe(2, 3), grid);
  pipeline.setup(adam);
  const std::pair<Array, Array> tokens = tokens_of(0);
  const auto loss = [&](const Variable& y, const Array& t) {
    CATENA_CHECK(ValueError, comm.rank() != 3, "this rank is out of order");
    return F::vocab_parallel_softmax_cross_entropy(y, t, grid.tensor());
  };
  return error_of<Error>([&] {
    pipeline.step(tokens.first.to(comm.device()), tokens.second.to(comm.device()), loss);
    pipeline.loss();
  });
}

// The others end while the rank that threw goes on.
TEST(TensorTraining, ARankThatThrowsEndsThoseOfItsStage) {
  std::atomic<int> ended{0};
  const auto program = [&](Communicator& comm) {
    const Grid grid(comm, {.pipeline = 2, .tensor = 2});
    const std::string error = error_of_step(grid);
    expect_contains(error, {"this rank is out of order"});
    ++ended;
    if (comm.rank() != 3) return expect_contains(error, {"threw on rank 3"});
    for (int i = 0; i < 500 && ended < 4; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(ended, 4) << "others wait for this rank";
  };
  comm::run_threads(4, program, {.timeout = 20});
}

TEST(TensorTraining, PipelinesClipByTheNormOfAllSlices) {
  const double clip_norm = 0.3;
  const Trained expected = one_process(clip_norm);
  for (const GridShape& shape :
       {GridShape{.pipeline = 2, .tensor = 3}, GridShape{.data = 2, .pipeline = 2, .tensor = 2}})
    train_pipeline(shape, pipeline::one_forward_one_backward(2, 3), expected, adam,
                   {.clip_norm = clip_norm});
}

TEST(TensorTraining, PipelinesByLambTakeTheNormsOfWholeParameters) {
  const auto make_rule = [] { return optimizers::LAMB(0.02); };
  train_pipeline({.data = 2, .pipeline = 2, .tensor = 2}, pipeline::gpipe(2, 3),
                 one_process_by(make_rule()), make_rule);
}

TEST(TensorTraining, PipelinesSkipWhereASliceOverflows) {
  for (const double clip_norm : {0.0, 0.3}) {
    const Trained expected = one_process(clip_norm, kOverflow);
    for (const GridShape& shape :
         {GridShape{.pipeline = 2, .tensor = 2}, GridShape{.data = 2, .pipeline = 2, .tensor = 2}})
      train_pipeline(shape, pipeline::one_forward_one_backward(2, 3), expected, adam,
                     {.clip_norm = clip_norm, .loss_scale = 64});
  }
}

}  // namespace
}  // namespace catena::parallel::tensor_training
