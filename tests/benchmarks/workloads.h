// The training steps that several benchmark programs time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "catena/array/array.h"
#include "catena/functions/connection/linear.h"
#include "catena/optimizers/optimizer.h"
#include "models.h"

namespace bench {

// 784-1000-1000-10 with relu on random images that lie on the device as a whole, as the examples in
// examples/mnist train it: a step fetches its batch, runs forward and backward and updates.
class MnistStep {
 public:
  struct Mlp : catena::FunctionSet {
    catena::functions::Linear l1{784, 1000}, l2{1000, 1000}, l3{1000, 10};
    CATENA_FUNCTIONS(l1, l2, l3)
    catena::Variable operator()(const catena::Variable& x) const;
  };

  MnistStep(catena::Device device, int64_t batch, int64_t images = 60000);
  // The rule, or what wraps it; set up with model().
  Mlp& model() { return model_; }
  // The batch cut out of the shuffled order by the host's own position.
  void step(catena::Optimizer& optimizer);
  // The batch at a cursor on the device, which the step advances: can be captured and replayed.
  void step_at_cursor(catena::Optimizer& optimizer);
  // Forward, backward and update on one fixed batch.
  void train_on(const catena::Array& x, const catena::Array& t, catena::Optimizer& optimizer);
  const std::vector<int64_t>& widths() const;
  int64_t batch() const { return batch_; }
  float last_loss() const { return loss_.data().item<float>(); }

 private:
  int64_t batch_, position_ = 0;
  Mlp model_;
  catena::Array images_, labels_, order_, offsets_, cursor_;
  catena::Variable loss_;
};

// A network of examples/mnist, "lenet" or "resnet", in that dtype, on one fixed batch of images of
// 28 x 28.
class NetworkStep {
 public:
  NetworkStep(const std::string& name, catena::Device device, int64_t batch, catena::Dtype dtype);
  catena::Parameterized& model() { return model_; }
  void step(catena::Optimizer& optimizer);

 private:
  mnist::Network model_;
  catena::Array x_, t_;
};

// n x Linear(width, width) with relu between, mean squared error against zeros, on one fixed batch.
class LinearStack {
 public:
  struct Stack : catena::FunctionSet {
    std::vector<catena::functions::Linear> layers;
    CATENA_FUNCTIONS(layers)
  };

  LinearStack(catena::Device device, int layers, int64_t width, int64_t batch);
  Stack& model() { return model_; }
  void step(catena::Optimizer& optimizer);

 private:
  Stack model_;
  catena::Array x_, target_;
};

// h = relu(h @ W) `times` times with one shared weight of 32 x 32, then the sum of all elements and
// backward to the weight.
class SharedWeightChain {
 public:
  explicit SharedWeightChain(catena::Device device, int times = 20);
  void step();
  const catena::Parameter& weight() const { return weight_; }

 private:
  int times_;
  catena::Parameter weight_;
  catena::Array x_;
};

// optimizers::SGD(0.01), optimizers::Adam(0.001) or optimizers::AdamW(0.001), by the names "SGD",
// "Adam" and "AdamW".
std::unique_ptr<catena::Optimizer> make_rule(const std::string& name);
// Bytes that an update of float32 parameters moves: SGD reads two and writes one value for each,
// Adam and AdamW read four and write three.
double update_bytes(const std::string& rule, int64_t parameters);

}  // namespace bench
