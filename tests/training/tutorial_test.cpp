// What Chainer's tutorial trains; the names are those of the inventory's rows.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/autograd/grad_mode.h"
#include "catena/functions/array/copy.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/evaluation/accuracy.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/functions/math.h"
#include "catena/functions/math/elementwise.h"
#include "catena/optimizers/sgd.h"
#include "catena/testing.h"
#include "catena/testing_markers.h"

namespace catena {
namespace {

namespace F = catena::functions;
using testing::difference;

TEST(TrainingTutorial, TUT_06_FunctionSet) {
  struct Model : FunctionSet {
    F::Linear l1{4, 3}, l2{3, 2}, l3{2, 2};
    CATENA_FUNCTIONS(l1, l2, l3)
  } model;
  const Variable y = model.l3(model.l2(model.l1(Variable(ones({2, 4}, dtype::float32)))));
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_EQ(model.parameters().size(), 6u);
  EXPECT_EQ(model.gradients().size(), 6u);
  EXPECT_EQ(&model["l1"], &model.l1);
  FunctionBag bag;  // filled at run time, as the tutorial adds l3
  bag.add("l1", F::Linear(4, 3));
  bag.add("l2", F::Linear(3, 2));
  EXPECT_EQ(bag.parameters().size(), 4u);
  bag.add("l3", F::Linear(2, 2));
  EXPECT_EQ(bag.parameters().size(), 6u);
}

TEST(TrainingTutorial, TUT_07_AStepOfAnOptimizer) {
  F::Linear model(3, 2);
  optimizers::SGD optimizer;
  optimizer.setup(model);
  const Array before = model.W.data().copy();
  const Variable x(ones({2, 3}, dtype::float32));
  for (int k = 0; k < 2; ++k) {
    optimizer.zero_grads();
    EXPECT_EQ(difference(model.W.grad(), zeros_like(before)), "") << "as filled by hand";
    const Variable y = model(x);
    y.set_grad(ones_like(y.data()));
    y.backward();
    EXPECT_EQ(difference(model.W.grad(), full_like(before, 2)), "") << "and not added to";
  }
  optimizer.update();
  EXPECT_EQ(difference(model.W.data(), before - 0.01f * full_like(before, 2), 1e-7), "");
}

struct Mlp : FunctionSet {
  F::Linear l1{784, 100}, l2{100, 100}, l3{100, 10};
  CATENA_FUNCTIONS(l1, l2, l3)
  Variable operator()(const Variable& x) { return l3(F::relu(l2(F::relu(l1(x))))); }
};

// Pictures of ten classes: a row of the picture is bright, and the rest is noise.
std::pair<Array, Array> pictures(int64_t n, uint64_t seed) {
  RandomState random(seed);
  const Array t = random.randint(0, 10, {n}, Dtype::kInt32);
  const Array x = random.uniform({n, 784}, 0, 0.1, dtype::float32);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = t(i).item<int64_t>() * 2;
    x(i, Slice(row * 28, row * 28 + 28)) += 0.9f;
  }
  return {x, t};
}

// The loops of the tutorial: training over a random order, and means over the test pictures.
void train_digits(Device device) {
  random::seed(1);
  const DeviceScope scope(device);
  const auto [x, t] = pictures(600, 2);
  const auto [x_test, t_test] = pictures(200, 3);
  Mlp model;
  EXPECT_EQ(&model.to(device), &model);
  optimizers::SGD optimizer(0.1);
  optimizer.setup(model);
  std::vector<double> losses;
  for (int epoch = 0; epoch < 15; ++epoch) {
    const Array order = RandomState(uint64_t(epoch)).permutation(600).to(cpu(0));
    double sum = 0;
    for (int64_t i = 0; i < 600; i += 100) {
      const Array batch = order(Slice(i, i + 100));
      optimizer.zero_grads();
      const Variable y = model(Variable(take(x.to(cpu(0)), batch, 0).to(device)));
      const Variable loss = F::softmax_cross_entropy(y, take(t.to(cpu(0)), batch, 0).to(device));
      loss.backward();
      optimizer.update();
      sum += loss.item<double>() * 100;
    }
    losses.push_back(sum / 600);
  }
  EXPECT_LT(losses.back(), losses.front() / 2);
  double correct = 0;
  for (int64_t i = 0; i < 200; i += 100) {
    const Variable y = model(Variable(x_test(Slice(i, i + 100)), Volatile::on));
    EXPECT_EQ(y.device(), device);
    correct += F::accuracy(y, t_test(Slice(i, i + 100))).item<double>() * 100;
  }
  EXPECT_GT(correct / 200, 0.8);
}

TEST(TrainingTutorial, TUT_08_DigitsOnTheCpu) { train_digits(cpu(0)); }
TEST(TrainingTutorial, TUT_16_DigitsOnOneGpu) {
  CATENA_NEEDS_GPU();
  train_digits(cuda_device(0));
}

// A language model over words 0 to 999.
struct Rnn : FunctionSet {
  F::EmbedID embed{1000, 100};
  F::Linear x_to_h{100, 50}, h_to_h{50, 50}, h_to_y{50, 1000};
  CATENA_FUNCTIONS(embed, x_to_h, h_to_h, h_to_y)

  std::pair<Variable, Variable> step(const Variable& h, const Variable& word, const Array& next) {
    const Variable state = F::tanh(x_to_h(embed(word)) + h_to_h(h));
    return {state, F::softmax_cross_entropy(h_to_y(state), next)};
  }
};
Array word(int64_t t) { return array({t * 7 % 1000}).astype(Dtype::kInt32); }
Variable first_state() { return Variable::constant(zeros({1, 50}, dtype::float32)); }

TEST(TrainingTutorial, TUT_09_ALanguageModel) {
  Rnn model;
  for (const int64_t length : {1, 5}) {  // sequences of any length
    model.zero_grads();
    Variable h = first_state(), loss;
    for (int64_t t = 0; t < length; ++t) {
      const auto [state, cost] = model.step(h, word(t), word(t + 1));
      h = state;
      loss = loss.defined() ? loss + cost : cost;
    }
    loss.backward();
    const double norm = square(model.h_to_h.W.grad()).sum().item<double>();
    EXPECT_EQ(norm > 0, length > 1) << "the first state is zero";
    // Shared layers add up the gradients of all steps: each word that was read has one.
    const Array rows = square(model.embed.W.grad()).sum(1);
    EXPECT_EQ((rows > 0.0f).sum().item<int64_t>(), length);
  }
}

TEST(TrainingTutorial, TUT_10_TruncatedBackpropagation) {
  Rnn model;
  optimizers::SGD optimizer(0.1);
  optimizer.setup(model);
  Variable h = first_state(), loss, early;
  for (int64_t t = 0; t < 90; ++t) {
    const auto [state, cost] = model.step(h, word(t), word(t + 1));
    h = state;
    if (t % 30 == 0) early = h;
    loss = loss.defined() ? loss + cost : cost;
    if ((t + 1) % 30 != 0) continue;
    EXPECT_NE(early.creator(), nullptr);
    optimizer.zero_grads();
    loss.backward();
    loss.unchain_backward();
    optimizer.update();
    EXPECT_EQ(early.creator(), nullptr) << "the history is freed";
    EXPECT_EQ(h.creator(), nullptr) << "also where the state goes on";
    EXPECT_EQ(h.shape(), (Shape{1, 50})) << "with its data";
    loss = Variable();
  }
}

TEST(TrainingTutorial, TUT_11_VolatileEvaluation) {
  Rnn model;
  const Variable h(zeros({1, 50}, dtype::float32), Volatile::on);
  const auto [state, cost] = model.step(h, Variable(word(0), Volatile::on), word(1));
  EXPECT_EQ(state.creator(), nullptr);
  EXPECT_EQ(cost.creator(), nullptr);
  EXPECT_TRUE(cost.is_volatile());
  const Variable recorded(zeros({1, 50}, dtype::float32));
  EXPECT_THROW(state + recorded, GradientError);
}

// Two halves that exchange activations after their third layers.
struct Half : FunctionSet {
  F::Linear l1{8, 6}, l2{6, 6}, l3{6, 12}, l4{12, 6}, l5{6, 6}, l6{6, 3};
  CATENA_FUNCTIONS(l1, l2, l3, l4, l5, l6)
  Variable first(const Variable& x) { return F::relu(l3(F::relu(l2(F::relu(l1(x)))))); }
  Variable second(const Variable& h) { return l6(F::relu(l5(F::relu(l4(h))))); }
};
struct TwoHalves : FunctionSet {
  Half gpu0, gpu1;
  CATENA_FUNCTIONS(gpu0, gpu1)
};

void train_two_halves(Device a, Device b) {
  random::seed(4);
  TwoHalves model;
  model.gpu0.to(a);
  model.gpu1.to(b);
  optimizers::SGD optimizer(0.1);
  optimizer.setup(model);
  optimizer.zero_grads();
  const Variable x(RandomState(5).uniform({4, 8}, -1, 1, dtype::float32).to(a));
  Variable h0 = model.gpu0.first(x), h1 = model.gpu1.first(F::copy(x, b));
  h0 = h0 + F::copy(h1, a);
  h1 = F::copy(h0, b);
  const Variable y = model.gpu0.second(h0) + F::copy(model.gpu1.second(h1), a);
  const Variable loss = F::softmax_cross_entropy(y, zeros({4}, {Dtype::kInt32, a}));
  EXPECT_EQ(loss.device(), a);
  loss.backward();
  const Device devices[] = {a, b};
  for (int half = 0; half < 2; ++half) {
    const Parameter& W = (half == 0 ? model.gpu0 : model.gpu1).l1.W;
    EXPECT_EQ(W.grad().device(), devices[half]);
    EXPECT_GT(square(W.grad()).sum().item<double>(), 0) << half;
  }
  optimizer.update();
}

TEST(TrainingTutorial, TUT_17_ModelParallel) {
  train_two_halves(cpu(0), cpu(1));
  if (device_count(DeviceType::kCuda) > 1) train_two_halves(cuda_device(0), cuda_device(1));
}

void train_replicas(Device a, Device b) {
  random::seed(6);
  Mlp model_1;
  Mlp model_0 = model_1;
  model_0.to(a);
  model_1.to(b);
  optimizers::SGD optimizer(0.1);
  optimizer.setup(model_0);
  const auto [x, t] = pictures(20, 7);
  for (int step = 0; step < 2; ++step) {
    model_0.zero_grads();
    model_1.zero_grads();
    for (const bool second : {false, true}) {
      const Slice half(second ? 10 : 0, second ? 20 : 10);
      const Device device = second ? b : a;
      const Variable y = (second ? model_1 : model_0)(Variable(x(half).to(device)));
      F::softmax_cross_entropy(y, t(half).to(device)).backward();
    }
    const Array sum = model_0.l1.W.grad().to(cpu(0)) + model_1.l1.W.grad().to(cpu(0));
    optimizer.accumulate_grads(model_1.gradients());
    EXPECT_EQ(difference(model_0.l1.W.grad().to(cpu(0)), sum), "");
    optimizer.update();
    model_1.copy_parameters_from(model_0.parameters());
    for (size_t i = 0; i < model_0.parameters().size(); ++i)
      EXPECT_EQ(difference(model_0.parameters()[i].data().to(cpu(0)),
                           model_1.parameters()[i].data().to(cpu(0))),
                "");
    EXPECT_EQ(model_1.l1.W.device(), b);
  }
}

TEST(TrainingTutorial, TUT_18_DataParallel) {
  train_replicas(cpu(0), cpu(1));
  if (device_count(DeviceType::kCuda) > 1) train_replicas(cuda_device(0), cuda_device(1));
}

}  // namespace
}  // namespace catena
