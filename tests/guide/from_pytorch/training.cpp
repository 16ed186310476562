// The section Training.
#include <memory>

#include "catena/array/linalg.h"
#include "catena/array/random.h"
#include "catena/functions/functions.h"
#include "catena/optimizers/ada_delta.h"
#include "catena/optimizers/ada_grad.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/moving_average.h"
#include "catena/optimizers/rmsprop.h"
#include "catena/optimizers/schedules.h"
#include "catena/optimizers/sgd.h"
#include "guide/from_pytorch/page.h"

namespace catena::guide {
namespace {

namespace F = catena::functions;

// The problem of all rows, which Python has as W, b, x and t: three steps of a linear layer.
class Training {
 public:
  explicit Training(Page& page)
      : x_(page.operand("x", random::normal({6, 4}))),
        t_(page.operand("t", random::randint(0, 3, {6}))),
        W_(page.operand("W", random::normal({3, 4}))),
        b_(page.operand("b", random::normal({3}))) {}

  F::Linear layer() const {
    return F::Linear(4, 3, {.initialW = W_.copy(), .initial_bias = b_.copy()});
  }
  template <class Net>
  Variable loss(Net& net) const {
    return F::softmax_cross_entropy(net(x_), t_);
  }
  // With gradients that are multiplied by a number; small ones show where eps is added.
  template <class Net>
  void run(Optimizer& optimizer, Net& net, double times = 1) const {
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grads();
      (loss(net) * times).backward();
      optimizer.update();
    }
  }

 private:
  Array x_, t_, W_, b_;
};

struct Deep : FunctionSet {
  explicit Deep(F::Linear first) : body(std::move(first)) {
    head.W.data().assign(outer(body.b.data(), body.b.data()));
    head.b.data().assign(body.b.data());
  }
  Variable operator()(const Variable& x) { return head(body(x)); }
  F::Linear body, head{3, 3};
  CATENA_FUNCTIONS(body, head)
};

void add_rules(Page& page, const Training& training) {
#define CATENA_RULE(pytorch, times, ...)                                                         \
  CATENA_STEPS("net = linear(W, b); train(net, " pytorch ", " #times ")",                        \
               "[net.weight, net.bias]", (Variables{net.W, net.b}), auto net = training.layer(); \
               __VA_ARGS__; optimizer.setup(net); training.run(optimizer, net, times))
  CATENA_RULE("torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)", 1,
              auto optimizer = optimizers::MomentumSGD(0.1, 0.9))
  CATENA_RULE("torch.optim.Adam(net.parameters())", 1e-7,
              optimizers::Adam optimizer(0.001, {.corrected_eps = true}))
  CATENA_RULE("torch.optim.AdamW(net.parameters())", 1e-7, optimizers::AdamW optimizer)
  CATENA_RULE("torch.optim.RMSprop(net.parameters())", 1e-7, optimizers::RMSprop optimizer)
  CATENA_RULE("torch.optim.Adagrad(net.parameters(), 0.001, eps=1e-8)", 1e-7,
              optimizers::AdaGrad optimizer)
  CATENA_RULE("torch.optim.Adadelta(net.parameters(), rho=0.95)", 1, optimizers::AdaDelta optimizer)
  CATENA_RULE("torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=1e-4)", 1,
              optimizers::SGD optimizer(0.1);
              optimizer.add_hook("decay", optimizers::weight_decay(1e-4)))
#undef CATENA_RULE
}

void add_steps(Page& page, const Training& training) {
  const auto start = [&](F::Linear& net) {
    auto optimizer = std::make_unique<optimizers::SGD>(0.1);
    optimizer->setup(net);
    return optimizer;
  };
  CATENA_STEPS(
      "net = linear(W, b); optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
      "for k in range(3):\n  optimizer.zero_grad(); loss = loss_of(net); loss.backward(); "
      "optimizer.step()",
      "net.weight", net.W, F::Linear net = training.layer();
      const auto made = start(net); optimizers::SGD& optimizer = *made;
      for (int k = 0; k < 3; ++k) {
        optimizer.zero_grads();
        const Variable loss = training.loss(net);
        loss.backward();
        optimizer.update();
      })
  CATENA_STEPS(
      "net = linear(W, b)\ntrain(net, sgd(net), 50, lambda: clip_grad_norm_(net.parameters(), 5))",
      "net.weight", net.W, F::Linear net = training.layer();
      const auto made = start(net); optimizers::SGD& optimizer = *made;
      optimizer.add_hook("clip", optimizers::gradient_clipping(5));
      training.run(optimizer, net, 50))
  CATENA_STEPS(
      "net = linear(W, b)\ntrain(net, sgd(net), 50, lambda: clip_grad_value_(net.parameters(), 1))",
      "net.weight", net.W, F::Linear net = training.layer();
      const auto made = start(net); optimizers::SGD& optimizer = *made;
      optimizer.add_hook("bounds", optimizers::gradient_hard_clipping(-1, 1));
      training.run(optimizer, net, 50))
  CATENA_STEPS(
      "body = linear(W, b); net = nn.Sequential(body, linear(b.outer(b), b))\n"
      "for p in body.parameters(): p.requires_grad_(False)\ntrain(net, sgd(net))",
      "[net[0].weight, net[1].weight]", (Variables{net.body.W, net.head.W}),
      Deep net(training.layer());
      optimizers::SGD optimizer(0.1); optimizer.setup(net); optimizer.freeze(net.body);
      optimizer.unfreeze(net.body); optimizer.freeze("/body"); training.run(optimizer, net))
  CATENA_STEPS(
      "net = linear(W, b); biases = [net.bias]\n"
      "optimizer = torch.optim.AdamW([{\"params\": [net.weight]}, {\"params\": biases, "
      "\"weight_decay\": 0}], lr=0.1, weight_decay=0.3)\n"
      "assert len(optimizer.param_groups) == 2; train(net, optimizer)",
      "[net.weight, net.bias]", (Variables{net.W, net.b}), F::Linear net = training.layer();
      optimizers::AdamW optimizer(0.1, {.decay = 0.3}); optimizer.setup(net);
      optimizer.add_group("no decay", {"*/b"}, {.decay = 0}); training.run(optimizer, net))
  CATENA_STEPS(
      "net = linear(W, b); average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.999))\n"
      "average.update_parameters(net)  # a copy\n"
      "train(net, sgd(net), after=lambda: average.update_parameters(net))",
      "average.module.weight", average->of(net.W), F::Linear net = training.layer();
      const auto made = start(net); optimizers::SGD& optimizer = *made;
      auto average = optimizers::add_moving_average(optimizer, 0.999); training.run(optimizer, net))
  CATENA_STEPS(
      "GradScaler = lambda: torch.amp.GradScaler(\"cpu\")\n"
      "net = linear(W, b); optimizer = sgd(net); scaler = GradScaler(); loss = loss_of(net)\n"
      "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()",
      "net.weight", net.W, F::Linear net = training.layer();
      const auto made = start(net); optimizers::SGD& optimizer = *made;
      auto scale = optimizers::add_loss_scale(optimizer); optimizer.zero_grads();
      const Variable loss = training.loss(net); scale->scaled(loss).backward(); optimizer.update())
}

Array rates(const optimizers::Schedule& schedule) {
  std::vector<double> list;
  for (int64_t step = 0; step < 100; ++step) list.push_back(schedule(step));
  return array(list).astype(dtype::float32);
}

void add_schedules(Page& page) {
  CATENA_ROW("rates(StepLR, 30, 0.1)", rates(optimizers::step_decay(0.1, 0.1, 30)))
  CATENA_ROW("rates(MultiStepLR, [30, 60, 80], 0.1)",
             rates(optimizers::multi_step(0.1, 0.1, {30, 60, 80})))
  CATENA_ROW("rates(ExponentialLR, 0.97)", rates(optimizers::exponential(0.1, 0.97)))
  CATENA_ROW("rates(PolynomialLR, 100)", rates(optimizers::polynomial(0.1, 0, 100)))
  CATENA_ROW("rates(OneCycleLR, 0.1, 100)", rates(optimizers::one_cycle(0.1, 100)))
  CATENA_ROW("rates(lambda optimizer: CosineAnnealingLR(optimizer, 100))",
             rates(optimizers::cosine(0.1, 0, 100)))
}

}  // namespace

void add_training(Page& page) {
  page.begin();
  const Training training(page);
  add_rules(page, training);
  add_steps(page, training);
  add_schedules(page);
}

}  // namespace catena::guide
