#include "workloads.h"

#include "catena/catena.h"

namespace bench {

namespace F = catena::functions;
using catena::Array;
using catena::Device;
using catena::Variable;

namespace {

Array uniform(const catena::Shape& shape, double low, double high, Device device) {
  return catena::random::default_state(device).uniform(shape, low, high,
                                                       {catena::dtype::float32, device});
}

}  // namespace

Variable MnistStep::Mlp::operator()(const Variable& x) const {
  return l3(F::relu(l2(F::relu(l1(x)))));
}

MnistStep::MnistStep(Device device, int64_t batch, int64_t images)
    : batch_(batch),
      images_(uniform({images, 784}, 0, 1, device)),
      labels_(catena::random::default_state(device).integers({images}, 0, 10,
                                                             {catena::dtype::int32, device})),
      order_(catena::random::default_state(device).permutation(images, device)),
      offsets_(catena::arange(0, batch, 1, {catena::dtype::int64, device})),
      cursor_(catena::zeros({}, {catena::dtype::int64, device})) {
  model_.to(device);
}

const std::vector<int64_t>& MnistStep::widths() const {
  static const std::vector<int64_t> widths{784, 1000, 1000, 10};
  return widths;
}

void MnistStep::train_on(const Array& x, const Array& t, catena::Optimizer& optimizer) {
  optimizer.zero_grads();
  loss_ = F::softmax_cross_entropy(model_(x), t);
  loss_.backward();
  optimizer.update();
}

void MnistStep::step(catena::Optimizer& optimizer) {
  if (position_ + batch_ > images_.length()) position_ = 0;
  const Array positions = order_(catena::Slice(position_, position_ + batch_));
  position_ += batch_;
  train_on(catena::take(images_, positions, 0, catena::OutOfRange::kClip),
           catena::take(labels_, positions, 0, catena::OutOfRange::kClip), optimizer);
}

void MnistStep::step_at_cursor(catena::Optimizer& optimizer) {
  const Array positions = catena::take(order_, offsets_ + cursor_, 0, catena::OutOfRange::kWrap);
  train_on(catena::take(images_, positions, 0, catena::OutOfRange::kClip),
           catena::take(labels_, positions, 0, catena::OutOfRange::kClip), optimizer);
  cursor_ += batch_;
}

NetworkStep::NetworkStep(const std::string& name, Device device, int64_t batch, catena::Dtype dtype)
    : model_(mnist::NetworkOptions{.name = name, .dtype = dtype}),
      x_(uniform({batch, 784}, 0, 1, device)),
      t_(catena::random::default_state(device).integers({batch}, 0, 10,
                                                        {catena::dtype::int32, device})) {
  model_.to(device);
}

void NetworkStep::step(catena::Optimizer& optimizer) {
  optimizer.zero_grads();
  F::softmax_cross_entropy(model_(x_), t_).backward();
  optimizer.update();
}

LinearStack::LinearStack(Device device, int layers, int64_t width, int64_t batch)
    : x_(uniform({batch, width}, -1, 1, device)),
      target_(catena::zeros({batch, width}, {catena::dtype::float32, device})) {
  catena::DeviceScope scope(device);
  for (int i = 0; i < layers; ++i) model_.layers.emplace_back(width, width);
}

void LinearStack::step(catena::Optimizer& optimizer) {
  optimizer.zero_grads();
  Variable h = Variable::constant(x_);
  for (size_t i = 0; i < model_.layers.size(); ++i) h = model_.layers[i](i == 0 ? h : F::relu(h));
  F::mean_squared_error(h, target_).backward();
  optimizer.update();
}

SharedWeightChain::SharedWeightChain(Device device, int times)
    : times_(times),
      weight_(uniform({32, 32}, -0.05, 0.1, device), "W"),
      x_(uniform({32, 32}, 0, 1, device)) {}

void SharedWeightChain::step() {
  weight_.zero_grad();
  Variable h = Variable::constant(x_);
  for (int i = 0; i < times_; ++i) h = F::relu(F::matmul(h, weight_));
  F::sum(h).backward();
}

std::unique_ptr<catena::Optimizer> make_rule(const std::string& name) {
  if (name == "Adam") return std::make_unique<catena::optimizers::Adam>(0.001);
  if (name == "AdamW") return std::make_unique<catena::optimizers::AdamW>(0.001);
  return std::make_unique<catena::optimizers::SGD>(0.01);
}

double update_bytes(const std::string& rule, int64_t parameters) {
  return 4.0 * double(parameters) * (rule == "SGD" ? 3 : 7);
}

}  // namespace bench
