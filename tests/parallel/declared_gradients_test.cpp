// GradientReducer::gradients_are_final: averages that begin when the caller says so.
#include "error_text.h"
#include "parallel/network.h"
#include "rank_results.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // NOLINT: the network

constexpr int kRanks = 3, kSteps = 10;
constexpr int64_t kSamples = 11;  // uneven
const BucketOptions kManyBuckets{128, 256, 128};

// An optimizer with a reducer that the test can reach.
struct Trained {
  Net net;
  std::unique_ptr<Optimizer> rule = make_rule("Adam");
  std::shared_ptr<GradientReducer> reducer;
  Trained(Communicator& comm) : net(dtype::float32, comm.rank()) {
    net.to(comm.device());
    reducer = rule->add_stage(std::make_shared<GradientReducer>(comm, kManyBuckets));
    rule->setup(net);
  }
  // Backward of this rank's share, in two passes that only add.
  void accumulate(Communicator& comm, int step) {
    const NoSync only_add(comm);
    const auto [begin, end] = shard(kSamples, comm.rank(), comm.size());
    rule->zero_grads();
    reducer->set_batch_weight(end - begin, kSamples);
    for (int64_t i = begin; i < end; ++i) {
      const Batch one = part(batch_of(step, kSamples, dtype::float32), i, i + 1, comm.device());
      parallel_backward(loss_of(net, one), 1.0 / double(end - begin));
    }
  }
  static void parallel_backward(const Variable& loss, double weight) {
    loss.set_grad(full_like(loss.data(), weight));
    loss.backward();
  }
};

enum class Way { kUpdate, kAll, kByLayers };

Values train(Way way) {
  const std::vector<Values> values = of_ranks(kRanks, [&](Communicator& comm) {
    Trained t(comm);
    for (int i = 0; i < kSteps; ++i) {
      t.accumulate(comm, i);
      EXPECT_EQ(t.reducer->started(), 0u);
      if (way == Way::kAll) {
        t.reducer->gradients_are_final();
        EXPECT_EQ(t.reducer->started(), t.reducer->buckets().size());
      }
      if (way == Way::kByLayers) {
        t.reducer->gradients_are_final(t.net.l1.parameters());
        t.reducer->gradients_are_final(t.net.l1.parameters());  // twice is once
        EXPECT_EQ(t.reducer->started(), 0u) << "others come before";
        t.reducer->gradients_are_final(t.net.extra.parameters());
        EXPECT_GT(t.reducer->started(), 0u) << "the last layer's buckets come first";
        EXPECT_LT(t.reducer->started(), t.reducer->buckets().size());
        t.reducer->gradients_are_final(t.net.l3.parameters());
        t.reducer->gradients_are_final();
        EXPECT_EQ(t.reducer->started(), t.reducer->buckets().size());
      }
      t.rule->update();
    }
    return values_of(t.net);
  });
  for (const Values& one : values) EXPECT_EQ(one, values[0]);
  return values[0];
}

TEST(DeclaredGradients, GiveWhatUpdateGives) {
  const Values expected = train(Way::kUpdate);
  EXPECT_EQ(train(Way::kAll), expected);
  EXPECT_EQ(train(Way::kByLayers), expected);
}

TEST(DeclaredGradients, OfARankThatSaysNothingAreReducedInItsUpdate) {
  const auto trained = [](int ranks) {
    return of_ranks(ranks, [&](Communicator& comm) {
      Trained t(comm);
      t.rule->zero_grads();
      t.reducer->set_batch_weight(comm.rank() == 0 ? kSamples : 0, kSamples);
      if (comm.rank() == 0) {
        const NoSync only_add(comm);
        loss_of(t.net, batch_of(0, kSamples, dtype::float32)).backward();
        t.reducer->gradients_are_final();
      }
      t.rule->update();
      return values_of(t.net);
    });
  };
  const Values alone = trained(1)[0];
  for (const Values& one : trained(2)) EXPECT_EQ(one, alone);
}

TEST(DeclaredGradients, RefuseWhatComesTooLateOrTooEarly) {
  comm::run_threads(1, [&](Communicator& comm) {
    Trained t(comm);
    const auto declare = [&] { t.reducer->gradients_are_final(); };
    t.accumulate(comm, 0);
    t.reducer->gradients_are_final(t.net.l1.parameters());
    {
      const NoSync only_add(comm);
      expect_contains(error_of<GradientError>([&] {
                        loss_of(t.net, batch_of(0, kSamples, dtype::float32)).backward();
                      }),
                      {"backward: parameter 'l1/", "after gradients_are_final() named it"});
    }
    t.accumulate(comm, 0);
    expect_contains(error_of<ValueError>([&] {
                      t.reducer->gradients_are_final({Parameter(zeros({2}, dtype::float32))});
                    }),
                    {"gradients_are_final: the optimizer does not have parameter"});
    t.rule->update();
    t.accumulate(comm, 1);
    t.rule->update();
    expect_contains(error_of<GradientError>(declare), {"call zero_grads() first"});
    t.rule->zero_grads();
    loss_of(t.net, batch_of(0, kSamples, dtype::float32)).backward();  // synchronised
    expect_contains(error_of<GradientError>(declare), {"already averaged", "no_sync()"});
    GradientReducer apart(comm, {});
    expect_contains(error_of<ValueError>([&] { apart.gradients_are_final(); }), {"setup"});
  });
}

}  // namespace
}  // namespace catena::parallel
