// What arenas offer for sharded training, held together by a stage of a test: each rank keeps a
// part of values, gradients and states. Values are gathered before use and freed after the update,
// gradients are reduce-scattered into the part that the rank updates. Equal bits to one process.
#include <gtest/gtest.h>

#include <mutex>

#include "parallel/network.h"

namespace catena::parallel {
namespace {

using catena::testing::batch_of;
using catena::testing::loss_of;
using catena::testing::Net;
using catena::testing::Values;
using catena::testing::values_of;
using optimizers::Adam;
using optimizers::ParameterArena;

class Shards : public optimizers::UpdateStage,
               public optimizers::Processes,
               public BackwardObserver {
 public:
  explicit Shards(Communicator& comm) : comm_(comm) { watch_uses(true); }
  int gathers = 0;

  optimizers::UpdatePhase phase() const override { return optimizers::UpdatePhase::kReduce; }
  const char* name() const override { return "shards"; }
  optimizers::Processes* processes() override { return this; }
  Share share() const override { return {comm_.rank(), comm_.size()}; }
  Array gather(const Array& part) override { return comm_.all_gather(part); }

  void after_setup(Optimizer& optimizer) override {
    optimizer_ = &optimizer;
    for (const Parameter& p : optimizer.layout().parameters()) observe(p);
    keep_data();
  }
  void discard(Optimizer&) override {
    each([](ParameterArena& arena) { arena.reopen_gradient(); });
  }
  void before_use(ParameterState& p) override {
    if (p.data->is_absent) gather();
  }
  void gradient_is_final(ParameterState&) override {}
  void run(optimizers::UpdateContext&) override {
    each([this](ParameterArena& arena) {
      if (arena.keeps_own_gradient()) return;
      arena.collect_gradient();
      arena.settle_gradients();
      const Array own = arena.own_gradient(true);
      comm_.reduce_scatter(arena.gradient().memory, comm::Reduction::kMean, own);
      arena.keep_own_gradient(own);
    });
  }
  void sum(const Arrays& arrays, Sum) override {
    for (const Array& one : arrays) comm_.all_reduce(one, {}, one);
  }
  void after_update(Optimizer&) override { keep_data(); }

  void gather() {
    ++gathers;
    each([this](ParameterArena& arena) {
      const Array whole = arena.memory_for_data();
      comm_.all_gather(arena.own_data(), whole);
      arena.take_whole_data(whole);
    });
  }

 private:
  void keep_data() {
    each([](ParameterArena& arena) { arena.keep_own_data(true); });
  }
  void each(const std::function<void(ParameterArena&)>& f) {
    for (size_t i = 0; i < optimizer_->layout().arenas().size(); ++i) f(optimizer_->arena(i));
  }

  Communicator& comm_;
  Optimizer* optimizer_ = nullptr;
};

constexpr int kSteps = 4;

struct Trained {
  Values values;
  int64_t least_bytes = 0, most_bytes = 0;
};

// All ranks see the same batch, so that the mean of two or four equal gradients is the gradient.
Trained train(Dtype dtype, bool clips, Communicator* comm) {
  Trained result;
  const Device device = comm ? comm->device() : cpu(0);
  Net net(dtype);
  net.to(device);
  Adam optimizer(0.01);
  optimizer.add_group("biases", {"*/b"}, {.rate = 0.5, .decay = 0});
  optimizer.add_hook("decay", optimizers::weight_decay(0.01));
  if (clips) optimizer.add_hook("clip", optimizers::gradient_clipping(1e6));  // a factor of one
  std::shared_ptr<Shards> shards;
  if (comm) optimizer.add_stage(shards = std::make_shared<Shards>(*comm));
  optimizer.setup(net);
  const ParameterArena& arena = optimizer.layout().arenas()[0];
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grads();
    loss_of(net, catena::testing::part(batch_of(step, 6, dtype), 0, 6, device)).backward();
    result.most_bytes = arena.bytes();
    optimizer.update();
    result.least_bytes = arena.bytes();
  }
  if (comm) {
    EXPECT_EQ(shards->gathers, kSteps);
    shards->gather();
  }
  result.values = values_of(net);
  return result;
}

TEST(ArenaShards, TrainToTheBitsOfOneProcess) {
  for (const Dtype dtype : {dtype::float32, dtype::bfloat16}) {
    for (const bool clips : {false, true}) {
      const Trained whole = train(dtype, clips, nullptr);
      for (const int ranks : {2, 4}) {
        std::mutex mutex;
        comm::run_threads(ranks, [&](Communicator& comm) {
          const Trained own = train(dtype, clips, &comm);
          const std::lock_guard lock(mutex);
          EXPECT_EQ(own.values, whole.values) << ranks << " ranks, " << dtype;
          EXPECT_LE(own.least_bytes, whole.least_bytes / ranks + 256 * 16);
          EXPECT_LT(own.most_bytes, whole.most_bytes);
        });
      }
    }
  }
}

}  // namespace
}  // namespace catena::parallel
