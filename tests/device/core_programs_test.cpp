// The core of the kernel bundle holds every program that training requests: the steps of the MNIST
// programs, and each layer, loss, optimizer and hook, forward and backward, in every floating
// dtype. Needs no GPU: the calls are those of the CPU's slots.
#include <gtest/gtest.h>

#include "../examples/mnist/parallel_mlp.h"
#include "backends/cuda/jit/tool/bundle_list.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/autograd/grad_mode.h"
#include "catena/comm/factory.h"
#include "catena/datasets/dataset.h"
#include "catena/datasets/prefetch.h"
#include "catena/functions/activation/elementwise.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/array.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/functions/noise.h"
#include "catena/optimizers/ada_delta.h"
#include "catena/optimizers/ada_grad.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/lamb.h"
#include "catena/optimizers/lars.h"
#include "catena/optimizers/lion.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/nesterov_ag.h"
#include "catena/optimizers/rmsprop.h"
#include "catena/optimizers/rmsprop_graves.h"
#include "catena/optimizers/sgd.h"
#include "catena/optimizers/smorms3.h"
#include "catena/parallel/data_parallel.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/training/evaluator.h"
#include "device/program_requests.h"

namespace catena::jit {
namespace {

namespace F = functions;
const Dtype kFloats[] = {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat64};

class CorePrograms : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { record_requests(); }
  void SetUp() override { take_requests(); }
  void TearDown() override { EXPECT_TRUE(checked_); }

  // Expects that something was requested, and all of it is in the core.
  void check(const std::string& what) {
    static const std::set<std::string> core = [] {
      std::set<std::string> texts;
      for (const BundleItem& item : core_programs()) texts.insert(item.source);
      return texts;
    }();
    checked_ = true;
    const auto requests = take_requests();
    EXPECT_FALSE(requests.empty()) << what;
    for (const auto& [text, name] : requests) {
      EXPECT_TRUE(core.count(text))
          << what << " requests '" << name << "', which core_programs.cpp does not list";
    }
  }

  bool checked_ = false;
};

// Training --------------------------------------------------------------------------------------

struct Small : FunctionSet {
  F::Linear l1, l2;
  CATENA_FUNCTIONS(l1, l2)
  explicit Small(Dtype d = Dtype::kFloat32)
      : l1(6, 8, {.wscale = 0.5, .dtype = d}), l2(8, 3, {.dtype = d}) {}
  Variable operator()(const Variable& x) { return l2(F::relu(l1(x))); }
};

datasets::DatasetPtr images() {
  return std::make_shared<datasets::ImageDataset>(zeros({10, 6}, Dtype::kUInt8),
                                                  zeros({10}, Dtype::kInt32), Shape{6});
}

std::vector<std::unique_ptr<Optimizer>> rules() {
  std::vector<std::unique_ptr<Optimizer>> list;
  list.push_back(std::make_unique<optimizers::SGD>(0.1));
  list.push_back(std::make_unique<optimizers::MomentumSGD>(0.1, 0.9));
  list.push_back(std::make_unique<optimizers::Adam>());
  list.push_back(std::make_unique<optimizers::AdamW>());
  list.push_back(std::make_unique<optimizers::LARS>());
  list.push_back(std::make_unique<optimizers::AdaGrad>());
  list.push_back(std::make_unique<optimizers::RMSprop>());
  list.push_back(std::make_unique<optimizers::RMSpropGraves>());
  list.push_back(std::make_unique<optimizers::NesterovAG>());
  list.push_back(std::make_unique<optimizers::AdaDelta>());
  list.push_back(std::make_unique<optimizers::SMORMS3>());
  list.push_back(std::make_unique<optimizers::Lion>());
  list.push_back(std::make_unique<optimizers::LAMB>());
  return list;
}

void step(Optimizer& optimizer, Small& model, const Array& x, const Array& t) {
  optimizer.zero_grads();
  const Variable y = model(x);
  F::softmax_cross_entropy(y, t).backward();
  F::accuracy(y, t);
  optimizer.update();
}

TEST_F(CorePrograms, AnEpochWithEachRule) {
  for (const auto& rule : rules()) {
    Small model;
    rule->setup(model);
    rule->prepare_for_capture();  // counts and rates where a GPU has them
    datasets::ResidentIterator batches(images(), datasets::ShuffledIterator(10, 4, 1), cpu(0));
    training::Means means({"loss", "accuracy"});
    while (batches.epoch() < 1) {
      const auto batch = batches.next();
      rule->zero_grads();
      const Variable y = model(batch->x());
      const Variable loss = F::softmax_cross_entropy(y, batch->t());
      loss.backward();
      rule->update();
      means.add("loss", loss.data(), double(batch->size()));
      means.add("accuracy", F::accuracy(y, batch->t()).data(), double(batch->size()));
    }
    means.values();
    rule->set_lr(0.05);
  }
  check("an epoch");
}

TEST_F(CorePrograms, HooksAndClippingInBothDtypesOfRules) {
  for (const Dtype d : {Dtype::kFloat32, Dtype::kFloat64}) {
    for (const auto& rule : rules()) {
      Small model(d);
      rule->setup(model);
      rule->add_hook("decay", optimizers::weight_decay(0.01));
      rule->add_hook("clip", optimizers::gradient_clipping(0.1));
      rule->add_hook("decay again", optimizers::weight_decay(0.01));
      rule->prepare_for_capture();
      const Array x = random::normal({4, 6}, 0, 1, d);
      for (int i = 0; i < 2; ++i) step(*rule, model, x, zeros({4}, Dtype::kInt32));
      rule->zero_grads();
      F::sum(model(x)).backward();
      rule->compute_grads_norm();
      rule->clip_grads(1e-3);
      rule->weight_decay(0.1);
      rule->update();
    }
  }
  check("hooks");
}

TEST_F(CorePrograms, MixedPrecision) {
  for (const Dtype d : kFloats) {
    Small model(d);
    optimizers::AdamW rule;
    rule.setup(model);
    const auto scale = optimizers::add_loss_scale(rule);
    rule.add_hook("clip", optimizers::gradient_clipping(0.1));
    rule.add_hook("decay", optimizers::weight_decay(0.01));
    rule.prepare_for_capture();
    const Variable x = Variable::constant(random::normal({4, 6}, 0, 1, Dtype::kFloat32).astype(d));
    for (int i = 0; i < 2; ++i) {
      rule.zero_grads();
      const Variable y = F::cast(model(x), Dtype::kFloat32);
      scale->scaled(F::softmax_cross_entropy(y, zeros({4}, Dtype::kInt32))).backward();
      rule.update();
    }
  }
  check("mixed precision");
}

// What examples/mnist/graph_step.cpp does beside the step.
TEST_F(CorePrograms, CursorsOfGraphs) {
  const Array order = arange(10), cursor = zeros({}, Dtype::kInt64),
              sum = zeros({}, Dtype::kFloat32);
  const Array positions =
      take(order, arange(0, 4, 1, Dtype::kInt64) + cursor, 0, OutOfRange::kClip);
  take(random::normal({10, 6}, 0, 1, Dtype::kFloat32), positions, 0, OutOfRange::kClip);
  Array total = sum, at = cursor;
  total += zeros({}, Dtype::kFloat32);
  at += 4;
  check("a graph's cursor");
}

TEST_F(CorePrograms, ModelParallel) {
  mnist::ParallelMlp model{mnist::NetworkOptions()};
  model.place(cpu(0), cpu(1));
  optimizers::Adam rule;
  rule.setup(model);
  const Array x = random::normal({2, 784}, 0, 1, Dtype::kFloat32);
  rule.zero_grads();
  F::softmax_cross_entropy(model(x), zeros({2}, Dtype::kInt32)).backward();
  rule.update();
  check("the model-parallel program");
}

TEST_F(CorePrograms, Replicas) {
  const std::vector<Device> devices{cpu(0), cpu(1)};
  Small model;
  optimizers::Adam rule;
  rule.setup(model);
  parallel::Replicas<Small> replicas(model, devices);
  const auto x = parallel::scatter_batch(random::normal({5, 6}, 0, 1, Dtype::kFloat32), devices),
             t = parallel::scatter_batch(zeros({5}, Dtype::kInt32), devices);
  rule.zero_grads();
  Array total;
  for (size_t i = 0; i < 2; ++i) {
    const double weight = parallel::shard_weight(5, 2, i);
    const Variable loss = F::softmax_cross_entropy(replicas[i](x[i]), t[i]);
    parallel::backward(loss, weight);
    const Array part = (loss.data() * weight).to(devices[0]);
    total = total.defined() ? total + part : part;
  }
  replicas.accumulate_into(rule);
  rule.update();
  replicas.copy_from(rule);
  check("replicas");
}

TEST_F(CorePrograms, Ranks) {
  comm::run_threads(2, [](Communicator& comm) {
    Small model;
    model.to(comm.device());
    auto optimizer = create_multi_node_optimizer(optimizers::Adam(), comm);
    optimizer.setup(model);
    // Equal and unequal parts of the batch.
    for (const auto& [size, of_all] : {std::pair<int64_t, int64_t>{2, 4}, {3 - comm.rank(), 5}}) {
      const DeviceScope scope(comm.device());
      optimizer.zero_grads();
      optimizer.set_batch_weight(size, of_all);
      const Array x = random::normal({size, 6}, 0, 1, Dtype::kFloat32);
      F::softmax_cross_entropy(model(x), zeros({size}, Dtype::kInt32)).backward();
      optimizer.update();
    }
  });
  check("ranks");
}

// Layers and losses -----------------------------------------------------------------------------

using Call = std::function<Variable(const Variable&, const Variable&)>;
const std::pair<const char*, Call> kCalls[] = {
#define CATENA_CALL(expression)                                                                   \
  {                                                                                               \
#expression, [](const Variable& x, [[maybe_unused]] const Variable& y) { return expression; } \
  }
    CATENA_CALL(x + y),
    CATENA_CALL(x - y),
    CATENA_CALL(x* y),
    CATENA_CALL(x / y),
    CATENA_CALL(-x),
    CATENA_CALL(x * 2.0 + 1.0),
    CATENA_CALL(1.0 - x),
    CATENA_CALL(1.0 / x),
    CATENA_CALL(x / 3.0),
    CATENA_CALL(F::square(x)),
    CATENA_CALL(F::sqrt(x)),
    CATENA_CALL(F::rsqrt(x)),
    CATENA_CALL(F::exp(x)),
    CATENA_CALL(F::log(x)),
    CATENA_CALL(F::absolute(x)),
    CATENA_CALL(F::maximum(x, y)),
    CATENA_CALL(F::minimum(x, y)),
    CATENA_CALL(F::clip(x, 0.0, 1.0)),
    CATENA_CALL(F::relu(x)),
    CATENA_CALL(F::sigmoid(x)),
    CATENA_CALL(F::tanh(x)),
    CATENA_CALL(F::softplus(x)),
    CATENA_CALL(F::softplus(x, 2.0)),
    CATENA_CALL(F::softmax(x)),
    CATENA_CALL(F::log_softmax(x)),
    CATENA_CALL(F::dropout(x)),
    CATENA_CALL(F::sum(x)),
    CATENA_CALL(F::sum(x, 0)),
    CATENA_CALL(F::mean(x)),
    CATENA_CALL(F::mean(x, 1)),
    CATENA_CALL(F::max(x, 1)),
    CATENA_CALL(F::min(x, 0)),
    CATENA_CALL(F::sum_to(x, {1, 4})),
    CATENA_CALL(F::reshape(F::transpose(x), {3, 4})),
    CATENA_CALL(F::broadcast_to(F::sum(x, 0, true), {5, 4})),
    CATENA_CALL(F::concat({x, y})),
    CATENA_CALL(F::split_axis(x, 2, 1)[0]),
    CATENA_CALL(F::get_item(x, {Slice(1, 3)})),
    CATENA_CALL(F::copy(x, cpu(1))),
    CATENA_CALL(F::linear(x, y)),
    CATENA_CALL(F::linear(x, y, F::sum(y, 1))),
    CATENA_CALL(F::linear_relu(x, y, F::sum(y, 1))),
    CATENA_CALL(F::matmul(x, y, false, true)),
    CATENA_CALL(F::mean_squared_error(x, y)),
    CATENA_CALL(F::softmax_cross_entropy(x, zeros({3}, Dtype::kInt32))),
    CATENA_CALL(F::softmax_cross_entropy(x, zeros({3}, Dtype::kInt64))),
    CATENA_CALL(F::sigmoid_cross_entropy(x, zeros({3, 4}, Dtype::kInt32))),
    CATENA_CALL(F::sigmoid_cross_entropy(x, zeros({3, 4}, Dtype::kInt32), true)),
#undef CATENA_CALL
};

TEST_F(CorePrograms, LayersAndLosses) {
  for (const Dtype d : kFloats) {
    for (const auto& [name, call] : kCalls) {
      const Variable x(random::uniform({3, 4}, 0.5, 2, d)), y(random::uniform({3, 4}, 0.5, 2, d));
      Variable result = call(x, y);
      if (result.ndim() > 0) result = F::sum(result * result);  // gradients that are not constant
      result.backward();
      x.grad();
      check(std::string(name) + " in " + catena::name(d));
    }
  }
}

TEST_F(CorePrograms, NewLayersAndCasts) {
  for (const Dtype d : kFloats) {
    const F::Linear layer(5, 3, {.wscale = 0.5, .bias = 0.25, .dtype = d});
    const Variable x(random::uniform({2, 5}, 0, 1, d));
    F::sum(F::cast(layer(x), Dtype::kFloat32)).backward();
    F::accuracy(layer(x), zeros({2}, Dtype::kInt32)).data().item<double>();
  }
  check("new layers and casts");
}

}  // namespace
}  // namespace catena::jit
