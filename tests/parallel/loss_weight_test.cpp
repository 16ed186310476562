// A batch that is divided over ranks and passes trains as one pass over all of it, whatever its
// loss divides by.
#include <gtest/gtest.h>

#include <optional>

#include "catena/comm/factory.h"
#include "error_text.h"
#include "parallel/loss_divisions.h"
#include "set_up.h"

namespace catena::parallel::divided {
namespace {

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
  auto optimizer = testing::set_up(net, optimizers::SGD(1), comm, {.sharding = d.sharding});
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

TEST(LossWeight, DivisionsOverRanksAndPassesAreOnePass) {
  using Loss = Division::Loss;
  constexpr Loss kLosses[] = {Loss::kIgnored, Loss::kClassWeights, Loss::kUser,  Loss::kTokens,
                              Loss::kSigmoid, Loss::kSum,          Loss::kLinear};
  for (int ranks = 1; ranks <= 4; ++ranks)
    comm::run_threads(ranks, [&](Communicator& comm) {
      for (int trial = 0; trial < 90; ++trial) {
        std::mt19937_64 random(uint64_t(ranks * 1000 + trial));
        Division d{.seed = random(),
                   .samples = int64_t(4 + random() % 36),
                   .passes = int(1 + random() % 3),
                   .loss = kLosses[random() % 7],
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
    expect_contains(late, {"zero_grads()"});
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
    auto optimizer = testing::set_up(net, optimizers::SGD(1), comm);
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
      auto optimizer = testing::set_up(net, optimizers::SGD(1), comm);
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
      auto optimizer = testing::set_up(net, optimizers::SGD(1), comm);
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
    auto optimizer = testing::set_up(net, optimizers::SGD(1), comm);
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
    auto optimizer = testing::set_up(net, optimizers::SGD(1), comm);
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
  expect_contains(text,
                  {"the number of samples of the first pass", "set_batch_weight in every pass"});
}

// Passes that the caller weighs, of which a rank has none in the scope of no_sync().
TEST(LossWeight, AStepIsWeighedByHandOnARankWithoutAPassInTheScope) {
  const Division d{.seed = 8, .samples = 10};
  const Array expected = one_pass(d);
  comm::run_threads(2, [&](Communicator& comm) {
    Net net;
    auto optimizer = testing::set_up(net, optimizers::SGD(1), comm);
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

// The pass of a batch of ignored labels must not be left out: its samples count then.
TEST(LossWeight, ARankWithoutAPassIsTold) {
  const auto output = [](bool runs_all, bool gives_weights) {
    ::testing::internal::CaptureStderr();
    comm::run_threads(2, [&](Communicator& comm) {
      const Division d{.seed = 8, .samples = 10};
      const Batch whole = batch_of(d);
      Net net;
      auto optimizer = testing::set_up(net, optimizers::SGD(1), comm);
      for (int step = 0; step < 2; ++step) {
        optimizer.zero_grads();
        if (gives_weights) optimizer.set_batch_weight(comm.rank() == 0 ? 4 : 0, 4);
        const Batch part = whole.rows(0, 4);
        if (comm.rank() == 0 || runs_all)
          loss_of(d, net.l(part.x.to(comm.device())), part.t.to(comm.device())).backward();
        optimizer.update();
      }
    });
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string warning = "no backward pass of this rank";
  const std::string text = output(false, false);
  EXPECT_NE(text.find(warning), text.npos) << text;
  EXPECT_EQ(text.find(warning), text.rfind(warning)) << "once: " << text;
  EXPECT_EQ(output(true, false).find(warning), text.npos);
  EXPECT_EQ(output(false, true).find(warning), text.npos);
}

// Gradients are zero behind setup: a program may call zero_grads() at the end of its steps.
TEST(LossWeight, TheFirstStepMayBeginWithoutZeroGrads) {
  using Loss = Division::Loss;
  for (const Sharding sharding :
       {Sharding::kNone, Sharding::kStates, Sharding::kGradients, Sharding::kParameters})
    for (const Loss loss :
         {Loss::kIgnored, Loss::kClassWeights, Loss::kUser, Loss::kTokens, Loss::kLinear})
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
    auto optimizer = testing::set_up(net, optimizers::SGD(1), comm);
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
    auto optimizer = testing::set_up(net, optimizers::SGD(1), comm);
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

}  // namespace
}  // namespace catena::parallel::divided
