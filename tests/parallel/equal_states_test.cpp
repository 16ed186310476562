// Ranks whose parameters, states or hyper-parameters differ: an error on all of them, with names.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "catena/comm/factory.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "cuda/gpu.h"
#include "error_text.h"
#include "parallel/network.h"
#include "set_up.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // the network

// One rank of three in training.
struct Rank {
  Rank(Communicator& comm, const std::string& rule)
      : comm(comm),
        net(dtype::float32, comm.rank()),
        optimizer(create_multi_node_optimizer(make_rule(rule), comm)) {
    net.to(comm.device());
    optimizer.setup(net);
  }
  void update() {
    optimizer.zero_grads();
    loss_of(net, part(batch_of(0, 4, dtype::float32), 0, 4, comm.device())).backward();
    optimizer.update();
  }
  bool is_odd() const { return comm.rank() == 1; }

  Communicator& comm;
  Net net;
  MultiNodeOptimizer optimizer;
};

comm::ThreadsOptions options_of(bool gpus) {
  comm::ThreadsOptions options;
  if (!gpus) return options;
  options.implementation = "nccl";
  for (int r = 0; r < 3; ++r) options.devices.push_back(cuda_device(r));
  return options;
}

// All ranks are told the same, by an update after `spoil`; how many updates that took.
int expect_told(const std::string& rule, const std::function<void(Rank&)>& spoil, int before,
                const std::string& what, bool gpus = false) {
  std::vector<std::string> texts(3);
  std::vector<int> updates(3);
  comm::run_threads(
      3,
      [&](Communicator& comm) {
        Rank rank(comm, rule);
        for (int i = 0; i < before; ++i) rank.update();
        spoil(rank);
        const auto r = static_cast<size_t>(comm.rank());
        texts[r] = error_of<ValueError>([&] {
          while (++updates[r] < 200) rank.update();
        });
        EXPECT_TRUE(comm.failed());
      },
      options_of(gpus));
  for (const std::string& text : texts) {
    EXPECT_EQ(text, texts[0]);
    EXPECT_EQ(text.find("update: the ranks do not hold the same state: " + what + ". All"), 0u)
        << text;
  }
  return updates[0];
}

TEST(EqualStates, AParameterThatDiffersIsNamedByTheFirstUpdate) {
  const auto spoil = [](Rank& rank) {
    if (rank.is_odd()) rank.net.l2.b.data()(0) += 1.0;
  };
  EXPECT_EQ(expect_told("SGD", spoil, 0, "parameter '/l2/b' on rank 1 differs from that on rank 0"),
            1);
}

TEST(EqualStates, WhatDiffersLaterIsNamedWithin64Updates) {
  const auto spoil = [](Rank& rank) {
    if (rank.comm.rank() > 0) rank.net.l1.W.data()(0, 0) += 1e-3;
  };
  const char* const what = "parameter '/l1/W' on ranks 1, 2 differ from that on rank 0";
  EXPECT_EQ(expect_told("Adam", spoil, 10, what), 54);
}

TEST(EqualStates, StatesAndNumbersCountToo) {
  const auto state = [](Rank& rank) {
    if (rank.is_odd()) rank.optimizer->state_of(rank.net.l2.W)[1](0, 0) += 1.0;
  };
  expect_told("Adam", state, 0, "parameter '/l2/W' on rank 1 differs from that on rank 0");
  const auto momentum = [](Rank& rank) {
    if (rank.is_odd()) rank.optimizer->set_hyper_parameter("momentum", 0.75);
  };
  expect_told("MomentumSGD", momentum, 0,
              "hyper-parameter 'momentum' is 0.9 on ranks 0, 2, 0.75 on rank 1");
}

// What one element loses and another gains leaves the sum of all as it is.
TEST(EqualStates, ChangesThatCancelAreSeen) {
  comm::run_threads(2, [](Communicator& comm) {
    F::Linear big(200, 100);
    auto optimizer = set_up(big, optimizers::SGD(0.1), comm);
    optimizer.check_state();
    const Array first = big.W.data()(0, 0), last = big.W.data()(99, 199);
    const double a = first.item<double>(), b = last.item<double>();
    ASSERT_NE(a, b);
    if (comm.rank() == 1) {
      first.fill(b);
      last.fill(a);
    }
    expect_contains(
        error_of<ValueError>([&] { optimizer.check_state(); }),
        {"check_state: the ranks do not hold the same state: parameter '/W' on rank 1"});
  });
}

TEST(EqualStates, OnlyAStateDiffers) {
  comm::run_threads(2, [](Communicator& comm) {
    Rank rank(comm, "MomentumSGD");
    if (rank.is_odd()) rank.optimizer->state_of(rank.net.l1.b)[0](1) += 0.5;
    const std::string text = error_of<ValueError>([&] { rank.optimizer.check_state(); });
    expect_contains(text, {"optimizer state 'v/l1/b' on rank 1 differs from that on rank 0"});
  });
}

TEST(EqualStates, SetupRefusesOtherHyperParametersAndRules) {
  comm::run_threads(3, [](Communicator& comm) {
    Net net(dtype::float32);
    net.to(comm.device());
    auto optimizer =
        create_multi_node_optimizer(optimizers::SGD(comm.rank() == 1 ? 0.2 : 0.1), comm);
    expect_contains(error_of<ValueError>([&] { optimizer.setup(net); }),
                    {"setup: the ranks do not hold the same state: hyper-parameter 'lr' is 0.1 on "
                     "ranks 0, 2, 0.2 on rank 1. All ranks must start"});
  });
  comm::run_threads(2, [](Communicator& comm) {
    Net net(dtype::float32);
    net.to(comm.device());
    auto optimizer =
        create_multi_node_optimizer(make_rule(comm.rank() == 0 ? "SGD" : "Adam"), comm);
    expect_contains(error_of<ValueError>([&] { optimizer.setup(net); }),
                    {"setup: ", "the ranks have different update rules: where rank 0 has ",
                     "rank 1 has hyper-parameter '"});
  });
}

// What stages of the update were made with counts like the rule's own numbers.
TEST(EqualStates, SetupRefusesOtherSettingsOfStages) {
  comm::run_threads(3, [](Communicator& comm) {
    Net net(dtype::float32);
    net.to(comm.device());
    auto optimizer = create_multi_node_optimizer(make_rule("SGD"), comm);
    optimizers::add_loss_scale(optimizer.actual_optimizer(),
                               {.interval = comm.rank() == 2 ? 100 : 2000});
    expect_contains(error_of<ValueError>([&] { optimizer.setup(net); }),
                    {"loss scale 'interval' is 2000 on ranks 0, 1, 100 on rank 2"});
  });
}

TEST(EqualStates, ALossScaleOnOneRankAloneIsNamed) {
  comm::run_threads(2, [](Communicator& comm) {
    Net net(dtype::float32);
    net.to(comm.device());
    auto optimizer = create_multi_node_optimizer(make_rule("SGD"), comm);
    if (comm.rank() == 1) optimizers::add_loss_scale(optimizer.actual_optimizer());
    expect_contains(
        error_of<ValueError>([&] { optimizer.setup(net); }),
        {"the stages of an update are ", "rule on rank 0, ", "loss scale", " on rank 1"});
  });
}

TEST(EqualStates, BroadcastStateIsTheCure) {
  comm::run_threads(3, [](Communicator& comm) {
    Rank rank(comm, "Adam");
    for (int i = 0; i < 3; ++i) rank.update();
    if (rank.is_odd()) rank.net.l1.W.data() += 1.0;
    if (rank.is_odd()) rank.optimizer->set_lr(0.5);
    rank.optimizer.broadcast_state();
    for (int i = 0; i < 130; ++i) rank.update();
    rank.optimizer.check_state();
  });
}

TEST(EqualStates, NotANumberOnAllRanksIsEqual) {
  comm::run_threads(2, [](Communicator& comm) {
    Rank rank(comm, "SGD");
    rank.net.l1.W.data().fill(std::nan(""));
    rank.optimizer.check_state();
  });
}

TEST(EqualStates, NeedASetup) {
  comm::run_threads(1, [](Communicator& comm) {
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm);
    expect_contains(error_of<ValueError>([&] { optimizer.check_state(); }), {"not set up"});
  });
}

TEST(EqualStates, OnGpus) {
  CATENA_NEEDS_GPUS(3);
  const auto spoil = [](Rank& rank) {
    if (rank.is_odd()) rank.net.l2.b.data()(0) += 1.0;
  };
  expect_told("Adam", spoil, 0, "parameter '/l2/b' on rank 1 differs from that on rank 0", true);
}

}  // namespace
}  // namespace catena::parallel
