// A batch that is divided over ranks, passes and micro-batches trains as one pass over all of it,
// whatever its loss divides by.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/function.h"
#include "catena/comm/factory.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/functions/recompute.h"
#include "catena/optimizers/sgd.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/parallel/pipeline/pipeline.h"
#include "deterministic_scope.h"
#include "error_text.h"

namespace catena::parallel::divided {
namespace {

namespace F = catena::functions;

constexpr int64_t kInputs = 40, kClasses = 3;

// How a batch is divided, and what its loss divides by.
struct Division {
  enum class Loss { kIgnored, kClassWeights, kUser, kTokens, kSigmoid, kSum };
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

Batch batch_of(const Division& d) {
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

Variable loss_of(const Division& d, const Variable& y, const Array& t) {
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
Array one_pass(const Division& d) {
  Net net;
  optimizers::SGD optimizer(1);
  optimizer.setup(net);
  const Batch batch = batch_of(d);
  optimizer.zero_grads();
  loss_of(d, net.l(batch.x), batch.t).backward();
  optimizer.update();
  return net.l.W.data().copy();
}

// cuts[i] to cuts[i + 1]: part i of the batch. Part r * passes + p belongs to pass p of rank r.
std::vector<int64_t> cuts_of(const Division& d, int parts) {
  std::mt19937_64 random(d.seed + 17);
  std::vector<int64_t> cuts{0, d.samples};
  // Ranks without samples must say so, unless they leave a pass of several out.
  const bool may_be_empty = d.gives_weights || d.passes > 1;
  while (int(cuts.size()) <= parts) {
    const auto cut = int64_t(random() % uint64_t(d.samples + 1));
    if (may_be_empty || std::find(cuts.begin(), cuts.end(), cut) == cuts.end()) cuts.push_back(cut);
  }
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

Array divided(const Division& d, Communicator& comm) {
  Net net;
  auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm, {.sharding = d.sharding});
  optimizer.setup(net);
  net.to(comm.device());
  const Batch batch = batch_of(d);
  const std::vector<int64_t> cuts = cuts_of(d, comm.size() * d.passes);
  optimizer.zero_grads();
  for (int p = 0; p < d.passes; ++p) {
    std::optional<NoSync> more;
    if (p + 1 < d.passes) more.emplace(optimizer.accumulate());
    int64_t all = 0;
    for (int r = 0; r < comm.size(); ++r)
      all += cuts[size_t(r * d.passes + p + 1)] - cuts[size_t(r * d.passes + p)];
    const size_t own = size_t(comm.rank() * d.passes + p);
    const Batch part = batch.rows(cuts[own], cuts[own + 1]);
    if (d.gives_weights && all > 0) optimizer.set_batch_weight(part.size(), all);
    if (part.size() == 0) continue;
    loss_of(d, net.l(part.x.to(comm.device())), part.t.to(comm.device())).backward();
  }
  optimizer.update();
  optimizer.check_state();
  return net.l.W.data().copy();
}

double relative_difference(const Array& a, const Array& b) {
  return amax(abs(a - b)).item<double>() / std::max(amax(abs(b)).item<double>(), 1e-300);
}

std::string text_of(const Division& d) {
  return message("seed ", d.seed, ", ", d.samples, " samples, ", d.passes, " passes, loss ",
                 int(d.loss), d.gives_weights ? ", weights given" : ", no weights", ", sharding ",
                 name(d.sharding));
}

TEST(LossWeight, DivisionsOverRanksAndPassesAreOnePass) {
  using Loss = Division::Loss;
  constexpr Loss kLosses[] = {Loss::kIgnored, Loss::kClassWeights, Loss::kUser,
                              Loss::kTokens,  Loss::kSigmoid,      Loss::kSum};
  for (int ranks = 1; ranks <= 4; ++ranks)
    comm::run_threads(ranks, [&](Communicator& comm) {
      for (int trial = 0; trial < 90; ++trial) {
        std::mt19937_64 random(uint64_t(ranks * 1000 + trial));
        Division d{.seed = random(),
                   .samples = int64_t(4 + random() % 36),
                   .passes = int(1 + random() % 3),
                   .loss = kLosses[random() % 6],
                   .gives_weights = random() % 4 != 0};
        // A rank that keeps parts says which passes it leaves out.
        constexpr Sharding kShardings[] = {Sharding::kNone, Sharding::kStates,
                                           Sharding::kGradients};
        d.sharding = kShardings[d.gives_weights ? random() % 3 : random() % 2];
        if (d.loss == Loss::kSum) {  // no factor is right for parts of which no count is known
          d.passes = 1;
          d.gives_weights = true;
        }
        const double difference = relative_difference(divided(d, comm), one_pass(d));
        EXPECT_LE(difference, 1e-12) << text_of(d) << ", " << ranks << " ranks";
      }
    });
}

// Both factors are exactly one then.
TEST(LossWeight, NothingChangesWhereEverythingCounts) {
  comm::run_threads(3, [&](Communicator& comm) {
    for (const bool gives : {true, false}) {
      const Division d{.seed = 3, .samples = 12, .gives_weights = gives, .all_count = true};
      Array results[2];
      for (const bool declares : {true, false}) {
        Net net;
        auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm);
        optimizer.setup(net);
        const Batch all = batch_of(d);
        const Batch part = all.rows(4 * comm.rank(), 4 * comm.rank() + 4);
        optimizer.zero_grads();
        if (gives) optimizer.set_batch_weight(4, 12);
        F::softmax_cross_entropy(net.l(part.x), part.t, YesNo(declares)).backward();
        optimizer.update();
        results[declares] = net.l.W.data().copy();
      }
      EXPECT_TRUE(array_equal(results[0], results[1]));
    }
  });
}

TEST(LossWeight, AWeightThatChangesBehindAPassIsAnError) {
  comm::run_threads(2, [&](Communicator& comm) {
    Net net;
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm);
    optimizer.setup(net);
    const Batch batch = batch_of({.seed = 1, .samples = 8});
    optimizer.zero_grads();
    optimizer.set_batch_weight(2, 4);
    {
      const NoSync local = optimizer.no_sync();
      F::softmax_cross_entropy(net.l(batch.x), batch.t).backward();
    }
    optimizer.set_batch_weight(3, 6);  // the same weight
    EXPECT_NE(error_of<ValueError>([&] { optimizer.set_batch_weight(1, 4); }).find("accumulate()"),
              std::string::npos);
    const auto late = error_of<GradientError>([&] { static_cast<void>(optimizer.accumulate()); });
    EXPECT_NE(late.find("zero_grads()"), std::string::npos);
  });
}

// What the mean of all passes divides by is not known in the first.
TEST(LossWeight, ASumOfMeansDoesNotAccumulateUnlessAllCount) {
  comm::run_threads(1, [&](Communicator& comm) {
    Net net;
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm);
    optimizer.setup(net);
    const auto pass = [&](bool all_count) {
      const Batch batch = batch_of({.seed = 1, .samples = 9, .all_count = all_count});
      optimizer.zero_grads();
      const NoSync more = optimizer.accumulate();
      const Variable y = net.l(batch.x);
      (F::softmax_cross_entropy(y, batch.t) + F::sum(y * y)).backward();
    };
    EXPECT_NO_THROW(pass(true));
    EXPECT_NE(error_of<GradientError>([&] { pass(false); }).find("mean_over"), std::string::npos);
  });
}

// The mean of squares over samples, and a penalty on the weights, which an empty batch has, too.
Variable with_penalty(Net& net, const Batch& part) {
  const Variable y = net.l(part.x);
  const auto samples = double(std::max<int64_t>(part.size(), 1));
  return F::sum(y * y) / samples + F::sum(F::square(net.l.W.variable())) * 0.1;
}

// Ranks that meet in the model run it on an empty batch as well.
TEST(LossWeight, APenaltyOfAnEmptyBatchIsNoPartOfAccumulatedPasses) {
  const Batch batch = batch_of({.seed = 2, .samples = 7});
  Net one;
  optimizers::SGD alone(1);
  alone.setup(one);
  alone.zero_grads();
  with_penalty(one, batch).backward();
  alone.update();
  comm::run_threads(2, [&](Communicator& comm) {
    Net net;
    net.to(comm.device());
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm);
    optimizer.setup(net);
    optimizer.zero_grads();
    const int64_t first[] = {0, 4, 4}, last[] = {4, 5, 7};  // of ranks 0 and 1
    const auto pass = [&](const int64_t* cuts, int64_t all) {
      const Batch part = batch.rows(cuts[comm.rank()], cuts[comm.rank() + 1]);
      optimizer.set_batch_weight(part.size(), all);
      with_penalty(net, {part.x.to(comm.device()), part.t}).backward();
    };
    {
      const NoSync more = optimizer.accumulate();
      pass(first, 4);
    }
    pass(last, 3);
    optimizer.update();
    EXPECT_LE(relative_difference(net.l.W.data().to(cpu(0)), one.l.W.data()), 1e-12);
  });
}

// A pass for the gradient of the input leaves the step as it is.
TEST(LossWeight, PassesThatDropTheGradientsOfParametersAreNotWeighed) {
  const Division d{.seed = 4, .samples = 9};
  const Array expected = one_pass(d);
  for (const bool accumulates : {true, false})
    comm::run_threads(2, [&](Communicator& comm) {
      Net net;
      auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm);
      optimizer.setup(net);
      net.to(comm.device());
      const Batch whole = batch_of(d);
      const Batch own = comm.rank() == 0 ? whole.rows(0, 6) : whole.rows(6, 9);
      const Array x = own.x.to(comm.device()), t = own.t.to(comm.device());
      optimizer.zero_grads();
      const auto gradient_of_input = [&] {
        const Variable input(x.copy());
        loss_of(d, net.l(input), t).backward({.drop_parameter_gradients = true});
        return input.grad();
      };
      Array in_scope;
      {
        const NoSync scope = accumulates ? optimizer.accumulate() : optimizer.no_sync();
        optimizer.set_batch_weight(own.size(), d.samples);
        in_scope = gradient_of_input();
      }
      loss_of(d, net.l(x), t).backward();
      optimizer.update();
      EXPECT_LE(relative_difference(net.l.W.data().to(cpu(0)), expected), 1e-12) << accumulates;
      // Outside of a step nothing weighs it.
      Net first;
      first.to(comm.device());
      const Variable input(x.copy());
      loss_of(d, first.l(input), t).backward({.drop_parameter_gradients = true});
      EXPECT_TRUE(array_equal(in_scope, input.grad()));
    });
}

// What weights leave for later is weighed then.
TEST(LossWeight, PassesInPartsAreOnePass) {
  for (const auto loss : {Division::Loss::kIgnored, Division::Loss::kClassWeights}) {
    const Division d{.seed = 6, .samples = 11, .loss = loss};
    const Array expected = one_pass(d);
    comm::run_threads(2, [&](Communicator& comm) {
      Net net;
      auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm);
      optimizer.setup(net);
      net.to(comm.device());
      const Batch whole = batch_of(d);
      const Batch own = comm.rank() == 0 ? whole.rows(0, 7) : whole.rows(7, 11);
      const Array x = own.x.to(comm.device()), t = own.t.to(comm.device());
      optimizer.zero_grads();
      optimizer.set_batch_weight(own.size(), d.samples);
      DeferredWeights later;
      loss_of(d, net.l(x), t).backward({.weights_later = &later});
      backward_weights(later);
      optimizer.update();
      EXPECT_LE(relative_difference(net.l.W.data().to(cpu(0)), expected), 1e-12);
    });
  }
}

// Of a sum of means nothing is known any more when weights get their gradients.
TEST(LossWeight, ASumOfMeansDoesNotRunInParts) {
  const Division d{.seed = 6, .samples = 8, .loss = Division::Loss::kSum};
  comm::run_threads(2, [&](Communicator& comm) {
    Net net;
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm);
    optimizer.setup(net);
    net.to(comm.device());
    const Batch batch = batch_of(d);
    optimizer.zero_grads();
    DeferredWeights later;
    loss_of(d, net.l(batch.x.to(comm.device())), batch.t.to(comm.device()))
        .backward({.weights_later = &later});
    EXPECT_NE(error_of<GradientError>([&] { backward_weights(later); }).find("whole passes"),
              std::string::npos);
  });
}

// The model's zero_grads() begins a step, also on a rank that has no pass in it.
TEST(LossWeight, AFactorIsThatOfTheStepWhereTheModelZeroesItsGradients) {
  for (const Sharding sharding : {Sharding::kNone, Sharding::kStates, Sharding::kGradients})
    comm::run_threads(2, [&](Communicator& comm) {
      Net net, one;
      net.to(comm.device());
      one.to(comm.device());
      auto optimizer =
          create_multi_node_optimizer(optimizers::SGD(0.1), comm, {.sharding = sharding});
      optimizer.setup(net);
      optimizers::SGD alone(0.1);
      alone.setup(one);
      for (int step = 0; step < 4; ++step) {
        const Division d{.seed = uint64_t(step), .samples = 5 + step};
        const Batch batch = batch_of(d);
        // Rank 1 has samples in every other step.
        const int64_t cut = step % 2 == 0 ? 3 : d.samples;
        const Batch own = comm.rank() == 0 ? batch.rows(0, cut) : batch.rows(cut, d.samples);
        step == 0 ? optimizer.zero_grads() : net.zero_grads();
        optimizer.set_batch_weight(own.size(), d.samples);
        if (own.size() > 0)
          loss_of(d, net.l(own.x.to(comm.device())), own.t.to(comm.device())).backward();
        optimizer.update();
        alone.zero_grads();
        loss_of(d, one.l(batch.x.to(comm.device())), batch.t.to(comm.device())).backward();
        alone.update();
        EXPECT_LE(relative_difference(net.l.W.data(), one.l.W.data()), 1e-12)
            << step << ", " << name(sharding);
      }
    });
}

// A rank that leaves a pass out must say so, since all count by the samples of the first one.
TEST(LossWeight, ARankThatDoesNotSetTheWeightOfTheFirstPassIsNamed) {
  const auto train = [](Communicator& comm) {
    Net net;
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm);
    optimizer.setup(net);
    net.to(comm.device());
    const Batch batch = batch_of({.seed = 3, .samples = 8});
    optimizer.zero_grads();
    for (int pass = 0; pass < 3; ++pass) {
      if (comm.rank() == 1 && pass == 0) continue;  // no samples
      std::optional<NoSync> more;
      if (pass < 2) more.emplace(optimizer.accumulate());
      optimizer.set_batch_weight(pass == 0 ? 4 : 1, pass == 0 ? 4 : 2);
      F::softmax_cross_entropy(net.l(batch.x.to(comm.device())), batch.t.to(comm.device()))
          .backward();
    }
    optimizer.update();
  };
  const auto text = error_of<ValueError>([&] { comm::run_threads(2, train); });
  EXPECT_NE(text.find("the number of samples of the first pass"), std::string::npos) << text;
  EXPECT_NE(text.find("set_batch_weight in every pass"), std::string::npos) << text;
}

// Passes that the caller weighs, of which a rank has none in the scope of no_sync().
TEST(LossWeight, AStepIsWeighedByHandOnARankWithoutAPassInTheScope) {
  const Division d{.seed = 8, .samples = 10};
  const Array expected = one_pass(d);
  comm::run_threads(2, [&](Communicator& comm) {
    Net net;
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm);
    optimizer.setup(net);
    net.to(comm.device());
    const Batch whole = batch_of(d);
    const auto counted = [](const Batch& part) {
      return sum(not_equal(part.t, -1).astype(dtype::float64)).item<double>();
    };
    const auto pass = [&](const Batch& part) {
      const double share = counted(part) / counted(whole) * comm.size();
      (loss_of(d, net.l(part.x.to(comm.device())), part.t.to(comm.device())) * share).backward();
    };
    optimizer.zero_grads();
    {
      const NoSync more = optimizer.no_sync();
      if (comm.rank() == 0) pass(whole.rows(0, 4));
    }
    pass(comm.rank() == 0 ? whole.rows(4, 8) : whole.rows(8, 10));
    optimizer.update();
    EXPECT_LE(relative_difference(net.l.W.data().to(cpu(0)), expected), 1e-12);
  });
}

// Gradients are zero behind setup: a program may call zero_grads() at the end of its steps.
TEST(LossWeight, TheFirstStepMayBeginWithoutZeroGrads) {
  using Loss = Division::Loss;
  for (const Sharding sharding :
       {Sharding::kNone, Sharding::kStates, Sharding::kGradients, Sharding::kParameters})
    for (const Loss loss : {Loss::kIgnored, Loss::kClassWeights, Loss::kUser, Loss::kTokens})
      for (const int64_t cut : {6, 10})  // of 10 samples: rank 1 has 4, or none
        comm::run_threads(2, [&](Communicator& comm) {
          if (cut == 10 && sharding == Sharding::kParameters) return;
          Net net, one;
          net.to(comm.device());
          one.to(comm.device());
          auto optimizer =
              create_multi_node_optimizer(optimizers::SGD(0.1), comm, {.sharding = sharding});
          optimizer.setup(net);
          optimizers::SGD alone(0.1);
          alone.setup(one);
          for (int step = 0; step < 3; ++step) {
            const Division d{.seed = uint64_t(step), .samples = 10, .loss = loss};
            const Batch all = batch_of(d);
            const Batch batch{all.x.to(comm.device()), all.t.to(comm.device())};
            const Batch own = comm.rank() == 0 ? batch.rows(0, cut) : batch.rows(cut, 10);
            optimizer.set_batch_weight(own.size(), 10);
            if (own.size() > 0) loss_of(d, net.l(own.x), own.t).backward();
            optimizer.update();
            optimizer.zero_grads();
            loss_of(d, one.l(batch.x), batch.t).backward();
            alone.update();
            alone.zero_grads();
            optimizer.gather_parameters();
            EXPECT_LE(relative_difference(net.l.W.data(), one.l.W.data()), 1e-12)
                << text_of(d) << ", step " << step << ", " << name(sharding);
          }
        });
}

TEST(LossWeight, ASumOfMeansBeforeTheFirstZeroGradsIsAnError) {
  comm::run_threads(2, [&](Communicator& comm) {
    Net net;
    net.to(comm.device());
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm);
    optimizer.setup(net);
    const Division d{.seed = 6, .samples = 8, .loss = Division::Loss::kSum};
    const Batch batch = batch_of(d);
    loss_of(d, net.l(batch.x.to(comm.device())), batch.t.to(comm.device())).backward();
    EXPECT_NE(error_of<GradientError>([&] { optimizer.update(); }).find("before the first pass"),
              std::string::npos);
  });
}

// Means inside of what is recomputed show when it runs again.
TEST(LossWeight, ASumOfMeansIsNotRecomputedUnlessAllCount) {
  comm::run_threads(2, [&](Communicator& comm) {
    Net net;
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm);
    optimizer.setup(net);
    net.to(comm.device());
    const auto pass = [&](bool all_count, Division::Loss loss) {
      const Division d{.seed = 1, .samples = 9, .loss = loss, .all_count = all_count};
      const Batch batch = batch_of(d);
      const Array x = batch.x.to(comm.device()), t = batch.t.to(comm.device());
      optimizer.zero_grads();
      F::recompute([&net, d, t](const Variable& in) { return loss_of(d, net.l(in), t); },
                   Variable::constant(x))
          .backward();
      optimizer.update();
    };
    EXPECT_NO_THROW(pass(false, Division::Loss::kIgnored));
    EXPECT_NO_THROW(pass(false, Division::Loss::kTokens));
    EXPECT_NE(error_of<GradientError>([&] { pass(false, Division::Loss::kSum); }).find("Recompute"),
              std::string::npos);
  });
}

// Slices ------------------------------------------------------------------------------------------

Array sliced(const Division& d, Communicator& comm) {
  Net net;
  auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm, {.slices = 4});
  optimizer.setup(net);
  const Batch batch = batch_of(d);
  const int64_t begin = slice_bounds(d.samples, comm.rank() * 4 / comm.size(), 4).begin,
                end = slice_bounds(d.samples, (comm.rank() + 1) * 4 / comm.size() - 1, 4).end;
  const Batch own = batch.rows(begin, end);
  optimizer.zero_grads();
  for (const auto& slice : optimizer.slices(own.size(), d.samples))
    loss_of(d, net.l(slice(own.x)), slice(own.t)).backward();
  optimizer.update();
  return net.l.W.data().copy();
}

TEST(LossWeight, SlicesGiveTheBitsOfOneRankAndOnePass) {
  const DeterministicScope deterministic;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Division d{.seed = seed,
                     .samples = int64_t(5 + seed),
                     .loss = seed % 2 ? Division::Loss::kClassWeights : Division::Loss::kIgnored};
    Array alone;
    for (const int ranks : {1, 2, 4})
      comm::run_threads(ranks, [&](Communicator& comm) {
        const Array w = sliced(d, comm);
        if (comm.rank() != 0) return;
        if (ranks == 1) alone = w;
        EXPECT_TRUE(array_equal(w, alone)) << ranks << " ranks, seed " << seed;
        EXPECT_LE(relative_difference(w, one_pass(d)), 1e-12) << text_of(d);
      });
  }
}

// Pipelines ---------------------------------------------------------------------------------------

using pipeline::Pipeline;
using pipeline::Sequence;

void fill_sequence(Sequence& model) {
  RandomState random(5);
  const auto add = [&](int64_t in, int64_t out) {
    F::Linear layer(in, out, {.nobias = true, .dtype = dtype::float64});
    layer.W.data().assign(random.normal({out, in}, 0, 0.5, dtype::float64));
    model.add(std::move(layer));
  };
  add(kInputs, 5);
  add(5, 5);
  add(5, kClasses);
}

Array weights_of(Sequence& model) {
  Arrays flat;
  for (const auto& [name, p] : model.named_parameters())
    flat.push_back(p.data().reshape({-1}).to(cpu(0)));
  return concatenate(flat);
}

// The loss and the parameters after one step in one process.
std::pair<double, Array> one_step(const Division& d) {
  Sequence model;
  fill_sequence(model);
  optimizers::SGD optimizer(1);
  optimizer.setup(model);
  const Batch batch = batch_of(d);
  optimizer.zero_grads();
  const Variable loss = loss_of(d, model(Variable::constant(batch.x)), batch.t);
  loss.backward();
  optimizer.update();
  return {loss.item<double>(), weights_of(model)};
}

Division pipeline_division(uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr Division::Loss kLosses[] = {Division::Loss::kIgnored, Division::Loss::kClassWeights,
                                        Division::Loss::kUser};
  return {.seed = random(), .samples = int64_t(8 + random() % 20), .loss = kLosses[seed % 3]};
}

TEST(LossWeight, MicroBatchesAreOnePass) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const Division d = pipeline_division(seed);
    const Batch batch = batch_of(d);
    Sequence model;
    fill_sequence(model);
    const int stages = 1 + int(seed % 3);
    std::vector<Device> devices;
    for (int s = 0; s < stages; ++s) devices.push_back(cpu(s));
    Pipeline p(model, pipeline::partition(model, stages),
               pipeline::one_forward_one_backward(stages, 4), devices);
    p.setup([] { return optimizers::SGD(1); });
    p.step(batch.x, batch.t, [&](const Variable& y, const Array& t) { return loss_of(d, y, t); });
    const auto [loss, weights] = one_step(d);
    EXPECT_NEAR(p.loss(), loss, 1e-12 * std::abs(loss)) << text_of(d);
    EXPECT_LE(relative_difference(weights_of(model), weights), 1e-12) << text_of(d);
  }
}

// The loss of one micro-batch alone declares what it counts: a part of its samples. The others
// count by theirs.
TEST(LossWeight, MicroBatchesOfWhichOneDeclaresACountAreOnePass) {
  // Micro-batch `declaring` counts `part` of its samples, or, without one, all weigh the same.
  const auto weights_after = [](int declaring, double part, const std::vector<double>& weights) {
    Sequence model;
    fill_sequence(model);
    Pipeline p(model, pipeline::partition(model, 2), pipeline::one_forward_one_backward(2, 4),
               {cpu(0), cpu(1)});
    p.setup([] { return optimizers::SGD(1); });
    int calls = 0;
    const Batch batch = batch_of({.samples = 10});
    p.step(batch.x, batch.t, [&](const Variable& y, const Array&) {
      const Variable mean = F::mean(F::square(y));
      const auto n = double(y.shape()[0]);
      const int m = calls++;
      if (m == declaring) return F::mean_over(mean * (n * part), full({}, n * part), n);
      return mean * weights[size_t(m)];
    });
    return weights_of(model);
  };
  const std::vector<double> equal(4, 1);
  for (const int m : {0, 2}) {
    EXPECT_LE(relative_difference(weights_after(m, 1, equal), weights_after(-1, 1, equal)), 1e-12);
    const double samples = m < 2 ? 3 : 2, rest = 10 - samples, part = 0.5;
    const double counted = rest + samples * part;
    std::vector<double> weights(4, 10 / counted);
    weights[size_t(m)] *= part;
    EXPECT_LE(relative_difference(weights_after(m, part, equal), weights_after(-1, 1, weights)),
              1e-12);
  }
}

// Each stage's gradients are those of the mean times a number of its own.
TEST(LossWeight, TheNormOverStagesOfOneDeviceIsThatOfOnePass) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Division d = pipeline_division(seed);
    const Batch batch = batch_of(d);
    Sequence model, one;
    fill_sequence(model);
    fill_sequence(one);
    Pipeline p(model, pipeline::partition(model, 3), pipeline::one_forward_one_backward(3, 4),
               {cpu(0), cpu(0), cpu(0)}, {.clip_norm = 0.01});
    p.setup([] { return optimizers::SGD(1); });
    p.step(batch.x, batch.t, [&](const Variable& y, const Array& t) { return loss_of(d, y, t); });
    optimizers::SGD optimizer(1);
    optimizer.setup(one);
    optimizer.zero_grads();
    loss_of(d, one(Variable::constant(batch.x)), batch.t).backward();
    optimizer.clip_grads(0.01);
    optimizer.update();
    EXPECT_LE(relative_difference(weights_of(model), weights_of(one)), 1e-13) << text_of(d);
  }
}

TEST(LossWeight, MicroBatchesOverRanksAndReplicasAreOnePass) {
  for (const int replicas : {1, 2}) {
    comm::run_threads(2 * replicas, [&](Communicator& comm) {
      for (uint64_t seed = 0; seed < 12; ++seed) {
        const Division d = pipeline_division(seed);
        const Batch batch = batch_of(d);
        Grid grid(comm, {replicas, 2, 1});
        Sequence model;
        fill_sequence(model);
        Pipeline p(model, pipeline::partition(model, 2), pipeline::one_forward_one_backward(2, 4),
                   grid);
        p.setup([] { return optimizers::SGD(1); });
        const int replica = grid.replica();
        const int64_t cut = replicas == 1 ? d.samples : 4 + int64_t(seed % 3) * (d.samples - 8) / 2;
        const Batch own = replica == 0 ? batch.rows(0, cut) : batch.rows(cut, d.samples);
        if (replicas > 1) p.set_batch_weight(own.size(), d.samples);
        p.step(own.x, own.t, [&](const Variable& y, const Array& t) { return loss_of(d, y, t); });
        const auto [loss, weights] = one_step(d);
        EXPECT_NEAR(p.loss(), loss, 1e-12 * std::abs(loss)) << text_of(d);
        p.collect();
        if (comm.rank() != 0) continue;
        EXPECT_LE(relative_difference(weights_of(model), weights), 1e-12) << text_of(d);
      }
    });
  }
}

}  // namespace
}  // namespace catena::parallel::divided
