// What ranks know of states that are spread over them, and models and rules that do not fit.
// Training is in sharding_test.cpp.
#include "catena/parallel/sharded_states.h"

#include <gtest/gtest.h>

#include "catena/optimizers/adamw.h"
#include "error_text.h"
#include "parallel/network.h"
#include "rank_results.h"
#include "set_up.h"

namespace catena::parallel {
namespace {

using catena::testing::batch_of;
using catena::testing::loss_of;
using catena::testing::Net;
using catena::testing::part;
using optimizers::Adam;

TEST(ShardedStates, KnowTheirParts) {
  comm::run_threads(2, [&](Communicator& comm) {
    Net net(dtype::float32);
    auto optimizer = testing::set_up(net, Adam(0.01), comm, {.sharding = Sharding::kStates});
    int64_t elements = 0;
    for (const optimizers::ShardedArray& part : optimizer->local_state()) {
      EXPECT_EQ(part.local.size(), part.covers.size()) << part.name;
      EXPECT_LE(part.covers.end, element_count(part.shape)) << part.name;
      elements += part.covers.size();
    }
    const auto all = comm.all_gather_object(elements);
    EXPECT_EQ(all[0] + all[1], 2 * net.parameter_count());
    expect_contains(error_of<ValueError>([&] { optimizer->state_of(net.l1.W); }),
                    {"state_of", "spread over processes", "local_state()"});
  });
}

// Of one rank alone this is an error on all, which says so, and not a hang.
TEST(ShardedStates, AModelThatMovedOnOneRankIsAnError) {
  const auto errors =
      testing::errors_of_ranks(testing::AfterError::kGoOn, 2, [](Communicator& comm) {
        Net net(dtype::float32);
        auto optimizer = testing::set_up(net, Adam(0.01), comm);
        if (comm.rank() == 1) {
          net.to(cpu(40));
          net.to(comm.device());
        }
        optimizer.zero_grads();
        loss_of(net, part(batch_of(0, 6, dtype::float32), 0, 6, comm.device())).backward();
        optimizer.update();
      });
  for (const std::string& error : errors)
    expect_contains(error, {"the parameters of rank 1 have moved, those of rank 0 have not",
                            "all_reduce", "on all ranks in the same step"});
}

// States of 16 bits, with and without master copies: whole states give the same bits.
TEST(ShardedStates, OfSixteenBitsTrainAsWholeOnes) {
  for (const bool masters : {true, false}) {
    comm::run_threads(2, [&](Communicator& comm) {
      std::vector<std::vector<std::vector<double>>> found;
      for (const Sharding sharding : {Sharding::kNone, Sharding::kStates, Sharding::kParameters}) {
        Net net(dtype::bfloat16);
        optimizers::AdamW rule(
            0.01, {.beta2 = 0.99, .state_dtype = dtype::bfloat16, .master_copies = masters});
        auto optimizer = testing::set_up(net, std::move(rule), comm, {.sharding = sharding});
        for (int64_t t = 0; t < 5; ++t) {
          optimizer->zero_grads();
          const auto batch = part(batch_of(t, 6, dtype::bfloat16), 3 * comm.rank(),
                                  3 * comm.rank() + 3, comm.device());
          loss_of(net, batch).backward();
          optimizer->update();
        }
        auto& values = found.emplace_back();
        for (const auto& [name, array] : optimizer->state())
          if (name.find('/') != name.npos) values.push_back(array.to_vector<double>());
        EXPECT_EQ(values.size(), net.parameters().size() * (masters ? 3 : 2));
      }
      EXPECT_EQ(found[1], found[0]);
      EXPECT_EQ(found[2], found[0]);
    });
  }
}

struct Plain : Optimizer {
  Plain() : Optimizer("lr", 0.1) {}
  void update_one(const Array& p, const Array& g, const Arrays&) override { p -= lr() * g; }
};

TEST(ShardedStates, WantRulesOverArenas) {
  comm::run_threads(2, [&](Communicator& comm) {
    Net net(dtype::float32);
    net.to(comm.device());
    auto optimizer = create_multi_node_optimizer(std::make_unique<Plain>(), comm,
                                                 {.sharding = Sharding::kStates});
    expect_contains(error_of<ValueError>([&] { optimizer.setup(net); }),
                    {"setup", "2 processes", "parameter by parameter", "Sharding::kNone"});
    Adam late;
    late.setup(net);
    expect_contains(
        error_of<ValueError>([&] { late.add_stage(std::make_shared<ShardedStates>(comm)); }),
        {"add_stage", "before setup"});
  });
}

}  // namespace
}  // namespace catena::parallel
