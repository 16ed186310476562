// Batches with elements that do not count, losses that divide by those that do, and one pass over
// all of a batch, with which divided ones are compared.
#pragma once

#include <random>
#include <string>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/function.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/functions/recompute.h"
#include "catena/optimizers/sgd.h"
#include "catena/parallel/multi_node_optimizer.h"

namespace catena::parallel::divided {

namespace F = catena::functions;

constexpr int64_t kInputs = 40, kClasses = 3;

// How a batch is divided, and what its loss divides by.
struct Division {
  enum class Loss { kIgnored, kClassWeights, kUser, kTokens, kSigmoid, kSum, kLinear };
  uint64_t seed = 0;
  int64_t samples = 0;
  int passes = 1;
  Loss loss = Loss::kIgnored;
  bool gives_weights = true;
  bool all_count = false;
  Sharding sharding = Sharding::kNone;
};

struct Batch {
  Array x, t;
  int64_t size() const { return x.shape()[0]; }
  Batch rows(int64_t begin, int64_t end) const {
    return {x(Slice(begin, end)), t(Slice(begin, end))};
  }
};

inline Batch batch_of(const Division& d) {
  RandomState random(d.seed);
  Batch batch{random.normal({d.samples, kInputs}, 0, 1, dtype::float64),
              random.integers({d.samples}, 0, kClasses, dtype::int32)};
  const Array draws = random.uniform({d.samples}, 0, 1, dtype::float64);
  if (!d.all_count) batch.t.assign(where(less(draws, 0.4), -1, batch.t).astype(dtype::int32));
  return batch;
}

// The mean of squares over the rows whose label counts, with its own backward.
struct CountedSquares : Function {
  Arrays forward(const Arrays& in) override {
    const Array mask = not_equal(in[1], -1).astype(in[0].dtype()).reshape({-1, 1});
    const Array counted = sum(mask);
    set_mean(counted, double(in[1].size()));
    return {sum(in[0] * in[0] * mask) / maximum(counted, 1.0)};
  }
  Arrays backward(const Arrays& in, const Arrays& gy) override {
    const Array mask = not_equal(in[1], -1).astype(in[0].dtype()).reshape({-1, 1});
    return {in[0] * mask * (gy[0] * (2.0 / maximum(sum(mask), 1.0))), Array()};
  }
};

inline Variable loss_of(const Division& d, const Variable& y, const Array& t) {
  const Array weights = array(std::vector<double>{0.2, 1, 3}).to(y.device());
  const auto cross_entropy = [&] { return F::softmax_cross_entropy(y, t); };
  switch (d.loss) {
    case Division::Loss::kIgnored: return cross_entropy() * 1.5;
    case Division::Loss::kClassWeights:
      return F::softmax_cross_entropy(y, t, {.class_weight = weights}).reshape({1});
    case Division::Loss::kUser: return call(CountedSquares(), y, Variable::constant(t));
    case Division::Loss::kTokens: {
      const Array mask = not_equal(t, -1).astype(dtype::float64).reshape({-1, 1});
      return F::mean_over(F::sum(F::sin(y) * mask), sum(mask) * double(kClasses), double(y.size()));
    }
    case Division::Loss::kSigmoid:
      return F::sigmoid_cross_entropy(y,
                                      where(equal(t.reshape({-1, 1}), -1), -1,
                                            greater(arange(kClasses), 0).astype(dtype::int32))
                                          .astype(dtype::int32),
                                      true);
    case Division::Loss::kLinear: {
      const Array head = sin(arange(4 * kClasses, dtype::float64)).reshape({4, kClasses});
      return F::linear_cross_entropy(y, head.to(y.device()), t, {.z_loss = 0.1, .chunk = 3});
    }
    case Division::Loss::kSum:
      return cross_entropy() +
             F::mean_squared_error(y, Variable::constant(zeros_like(y.data()))) * 0.3 +
             call(CountedSquares(), F::sin(y),
                  Variable::constant(where(equal(t, 1), -1, t).astype(dtype::int32)));
  }
  return {};
}

struct Net : FunctionSet {
  Net() {
    RandomState random(5);
    l.W.data().assign(random.normal({kClasses, kInputs}, 0, 1, dtype::float64));
  }
  F::Linear l{kInputs, kClasses, {.nobias = true, .dtype = dtype::float64}};
  CATENA_FUNCTIONS(l)
};

// The parameters after a step of SGD(1) on the whole batch.
inline Array one_pass(const Division& d) {
  Net net;
  optimizers::SGD optimizer(1);
  optimizer.setup(net);
  const Batch batch = batch_of(d);
  optimizer.zero_grads();
  loss_of(d, net.l(batch.x), batch.t).backward();
  optimizer.update();
  return net.l.W.data().copy();
}

inline double relative_difference(const Array& a, const Array& b) {
  return amax(abs(a - b)).item<double>() / std::max(amax(abs(b)).item<double>(), 1e-300);
}

inline std::string text_of(const Division& d) {
  return message("seed ", d.seed, ", ", d.samples, " samples, ", d.passes, " passes, loss ",
                 int(d.loss), d.gives_weights ? ", weights given" : ", no weights", ", sharding ",
                 name(d.sharding));
}

}  // namespace catena::parallel::divided
