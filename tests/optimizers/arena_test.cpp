// Layout of arenas, and that they follow parameters that move.
#include "catena/optimizers/arena.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "catena/core/memory.h"
#include "catena/core/memory_profile.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/momentum_sgd.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

using catena::testing::Model;
using catena::testing::Pair;

ArenaSet::Named named(Parameterized& model) {
  ArenaSet::Named result = model.named_parameters();
  for (auto& entry : result) entry.first.insert(0, 1, '/');
  return result;
}

TEST(Arena, LiesInReverseOrderOfDeclaration) {
  Model model;
  const auto before = catena::testing::all_values(model.parameters());
  const ArenaSet set(named(model));
  ASSERT_EQ(set.arenas().size(), 1u);
  const ParameterArena& arena = set.arenas()[0];
  std::vector<std::string> names;
  for (const auto& slot : arena.slots()) {
    names.push_back(slot.parameter.name());
    EXPECT_EQ(slot.offset * 4 % ParameterArena::kAlignment, 0);
    EXPECT_EQ(slot.parameter.data().raw_data(), arena.data().memory.data<float>() + slot.offset);
    EXPECT_EQ(slot.parameter.grad().raw_data(),
              arena.gradient().memory.data<float>() + slot.offset);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"/l2/b", "/l2/W", "/l1/b", "/l1/W"}));
  EXPECT_EQ(arena.size(), 4 * 64);
  EXPECT_EQ(catena::testing::all_values(model.parameters()), before);
  EXPECT_TRUE(set.in_place());
}

TEST(Arena, NamesItsBlocksInMemoryProfiles) {
  Model model;
  const MemoryProfile profile;
  Adam optimizer;
  optimizer.setup(model);
  std::map<std::string, size_t> held;
  for (const auto& e : profile.entries())
    if (e.held > 0) held[e.call] = e.held;
  EXPECT_EQ(held, (std::map<std::string, size_t>{
                      {"parameters", 1024}, {"gradients", 1024}, {"optimizer states", 2048}}));
}

TEST(Arena, KeepsGradientsThatAreThere) {
  Model model;
  catena::testing::set_gradients(model.parameters(), 3);
  const auto before = model.l1.W.grad().to_vector<float>();
  const ArenaSet set(named(model));
  EXPECT_EQ(model.l1.W.grad().to_vector<float>(), before);
}

TEST(Arena, SeparatesDevicesAndDtypes) {
  struct Mixed : FunctionSet {
    Pair a{2, 2}, b{2, 2, dtype::float64}, c{2, 2};
    CATENA_FUNCTIONS(a, b, c)
  } model;
  model.c.to(cpu(1));
  const ArenaSet set(named(model));
  ASSERT_EQ(set.arenas().size(), 3u);
  EXPECT_EQ(set.arenas()[0].device(), cpu(1));
  EXPECT_EQ(set.arenas()[1].dtype(), dtype::float64);
  EXPECT_EQ(set.arenas()[2].slots().size(), 2u);
}

TEST(Arena, SettleFillsOnlyPendingGradients) {
  Model model;
  const ArenaSet set(named(model));
  catena::testing::set_gradients(model.parameters(), 1);
  const auto kept = model.l1.b.grad().to_vector<float>();
  model.l2.W.zero_grad();
  model.l2.b.zero_grad();
  set.settle_gradients();
  for (const float g : model.l2.W.grad().to_vector<float>()) EXPECT_EQ(g, 0);
  for (const float g : model.l2.b.grad().to_vector<float>()) EXPECT_EQ(g, 0);
  EXPECT_EQ(model.l1.b.grad().to_vector<float>(), kept);
}

TEST(Arena, StructureNamesShapesAndDtypes) {
  Model a, b, c(dtype::float64);
  const ArenaSet x(named(a)), y(named(b)), z(named(c));
  EXPECT_EQ(x.structure_hash(), y.structure_hash());
  EXPECT_NE(x.structure_hash(), z.structure_hash());
  EXPECT_EQ(x.structure().substr(0, x.structure().find('\n')), "/l1/W (5, 3) float32");
}

TEST(Arena, FindsACommonBlock) {
  Model a, b;
  const ArenaSet x(named(a)), y(named(b));
  Arrays gradients;
  for (const Parameter& p : y.parameters()) gradients.push_back(p.grad());
  EXPECT_EQ(common_block(x.arenas()[0], gradients).raw_data(),
            y.arenas()[0].gradient().memory.raw_data());
  gradients[1] = gradients[1].copy();
  EXPECT_FALSE(common_block(x.arenas()[0], gradients).defined());
}

TEST(Arena, KeepsStatesAndMasterCopies) {
  for (const Dtype dtype : {dtype::float32, dtype::float64, dtype::bfloat16}) {
    Model model(dtype);
    ArenaSet set(named(model));
    set.make_states({0, 2.5});
    const ParameterArena& arena = set.arenas()[0];
    const Dtype wide = dtype == dtype::bfloat16 ? dtype::float32 : dtype;
    ASSERT_EQ(arena.states().size(), 2u);
    for (const Block& state : arena.states()) {
      EXPECT_EQ(state.memory.dtype(), wide);
      EXPECT_EQ(state.memory.shape(), arena.data().memory.shape());
    }
    EXPECT_EQ(arena.states()[0].memory.to_vector<double>()[3], 0);
    EXPECT_EQ(arena.states()[1].memory.to_vector<double>()[3], 2.5);
    ASSERT_EQ(arena.master().defined(), dtype == dtype::bfloat16);
    if (arena.master().defined()) {
      EXPECT_EQ(arena.master().memory.to_vector<double>(), arena.data().memory.to_vector<double>());
    }
  }
}

TEST(Arena, HasRanges) {
  Model model(dtype::float16);
  ArenaSet set(named(model));
  set.make_states({0});
  const ParameterArena& arena = set.arenas()[0];
  const ArenaRange part = arena.range({128, 200});
  EXPECT_EQ(part.data.raw_data(), arena.data().memory(Slice(128, 200)).raw_data());
  EXPECT_EQ(part.gradient.raw_data(), arena.gradient().memory(Slice(128, 200)).raw_data());
  EXPECT_EQ(part.master.raw_data(), arena.master().memory(Slice(128, 200)).raw_data());
  EXPECT_EQ(part.states[0].raw_data(), arena.states()[0].memory(Slice(128, 200)).raw_data());
  EXPECT_EQ(part.states[0].size(), 72);
  EXPECT_EQ(arena.range({5, 5}).data.size(), 0);
  EXPECT_THROW(arena.range({5, 4}), IndexError);
  EXPECT_THROW(arena.range({0, arena.size() + 1}), IndexError);
  EXPECT_EQ(arena.slot_range(0, arena.slots().size()), (ElementRange{0, arena.size()}));
  EXPECT_EQ(arena.slot_range(1, 2), (ElementRange{arena.slots()[1].offset, arena.end_of(1)}));
}

TEST(Arena, ShardsCoverIt) {
  Model model(dtype::float64);
  const ArenaSet set(named(model));
  const ParameterArena& arena = set.arenas()[0];
  for (const int64_t count : {1, 2, 3, 4, 7, 100}) {
    int64_t at = 0;
    for (int64_t i = 0; i < count; ++i) {
      const ElementRange shard = arena.shard(i, count);
      EXPECT_EQ(shard.begin, at);
      EXPECT_TRUE(shard.begin == arena.size() || shard.begin * 8 % ParameterArena::kAlignment == 0);
      at = shard.end;
    }
    EXPECT_EQ(at, arena.size()) << count;
  }
  EXPECT_THROW(arena.shard(2, 2), ValueError);
}

TEST(Arena, FollowsAModelThatMoves) {
  Model model, still;
  MomentumSGD moving(0.1), reference(0.1);
  moving.setup(model);
  reference.setup(still);
  for (int64_t t = 1; t <= 6; ++t) {
    if (t == 3) model.l1.to(cpu(1));  // one layer, as in model parallelism
    if (t == 5) model.to(cpu(2));
    step(moving, model, t);
    step(reference, still, t);
    EXPECT_EQ(catena::testing::all_values(model.parameters()),
              catena::testing::all_values(still.parameters()))
        << t;
    EXPECT_EQ(moving.layout().arenas().size(), t == 3 || t == 4 ? 2u : 1u);
    EXPECT_TRUE(moving.layout().in_place());
  }
  EXPECT_EQ(model.device(), cpu(2));
  EXPECT_EQ(moving.state_of(model.l1.W)[0].device(), cpu(2));
  EXPECT_EQ(moving.t(), 6);
}

TEST(Arena, CopiesOfAModelAreIndependentAndMovesKeepTheParameters) {
  Model model;
  MomentumSGD optimizer(0.1);
  optimizer.setup(model);
  Model copy = model;
  const auto before = catena::testing::all_values(copy.parameters());
  step(optimizer, model, 1);
  EXPECT_EQ(catena::testing::all_values(copy.parameters()), before);
  EXPECT_NE(catena::testing::all_values(model.parameters()), before);

  model = copy;  // writes into the arena
  EXPECT_TRUE(optimizer.layout().in_place());
  EXPECT_EQ(catena::testing::all_values(model.parameters()), before);

  Model moved = std::move(model);
  step(optimizer, moved, 2);
  EXPECT_NE(catena::testing::all_values(moved.parameters()), before);
  EXPECT_TRUE(optimizer.layout().in_place());
}

TEST(Arena, SetsThatShareParametersKeepTheirOwnNames) {
  Model model;
  const ArenaSet whole(named(model));
  const ArenaSet first(named(model.l1)), second(named(model.l2));
  EXPECT_EQ(whole.name(0), "/l1/W");
  EXPECT_EQ(whole.name(2), "/l2/W");
  EXPECT_EQ(first.name(0), "/W");
  EXPECT_EQ(second.name(0), "/W");
  EXPECT_EQ(model.l1.W.name(), "/l1/W") << "messages give the longest path";
  EXPECT_NE(whole.structure().find("/l2/b (2,) float32"), std::string::npos);

  Model other;
  const ArenaSet part(named(other.l1));
  EXPECT_EQ(other.l1.W.name(), "/W");
  const ArenaSet all(named(other));
  EXPECT_EQ(other.l1.W.name(), "/l1/W");
}

TEST(Arena, StatesMayCoverAPart) {
  for (const Dtype dtype : {dtype::float32, dtype::bfloat16}) {
    Model model(dtype);
    ArenaSet set(named(model), {nullptr, 3});
    EXPECT_EQ(set.arenas()[0].size() % 3, 0);
    set.make_states({0, 2.5}, 1, 3);
    const ParameterArena& arena = set.arenas()[0];
    const ElementRange own = arena.shard(1, 3);
    EXPECT_EQ(own.size(), arena.size() / 3);
    EXPECT_EQ(arena.covers(), own);
    EXPECT_EQ(arena.states()[1].memory.to_vector<double>(),
              std::vector<double>(size_t(own.size()), 2.5));
    EXPECT_EQ(arena.covered().data.raw_data(),
              arena.data().memory(Slice(own.begin, own.end)).raw_data());
    EXPECT_EQ(arena.range(own).states[0].size(), own.size());
    EXPECT_THROW(arena.range({0, own.end}), IndexError);
    EXPECT_THROW(arena.states()[0].part({0, 1}), IndexError);
    const bool wide = dtype == dtype::bfloat16;
    EXPECT_EQ(arena.state_bytes(), own.size() * 4 * (wide ? 3 : 2));
    if (wide) {
      EXPECT_EQ(arena.master().memory.to_vector<double>(),
                arena.covered().data.to_vector<double>());
    }
  }
  EXPECT_EQ(intersection({0, 4}, {2, 9}), (ElementRange{2, 4}));
  EXPECT_EQ(intersection({0, 4}, {6, 9}).size(), 0);
}

// Weights that lie channels last stay so, with gradients and states.
TEST(Arena, KeepsTheOrderInWhichValuesLie) {
  const Array values = catena::testing::Pair::values({2, 3, 4, 5}, dtype::float32, 0.5);
  const Array last = values.transpose({0, 2, 3, 1}).copy().transpose({0, 3, 1, 2});
  ASSERT_FALSE(last.is_contiguous());
  const Parameter p(last), plain(values.copy());
  const Strides strides = p.data().strides();
  MomentumSGD rule(0.1), reference(0.1);
  rule.setup({p});
  reference.setup({plain});
  EXPECT_EQ(p.data().strides(), strides);
  EXPECT_EQ(p.grad().strides(), strides);
  EXPECT_EQ(rule.state_of(p)[0].strides(), strides);
  for (int64_t t = 1; t <= 3; ++t) {
    catena::testing::set_gradients({p}, t);
    catena::testing::set_gradients({plain}, t);
    rule.update();
    reference.update();
  }
  EXPECT_EQ(p.data().to_vector<double>(), plain.data().to_vector<double>());
  EXPECT_EQ(rule.state_of(p)[0].to_vector<double>(),
            reference.state_of(plain)[0].to_vector<double>());
}

// Side by side in the order of declaration, without gaps; others as ever.
TEST(Arena, LaysPackedParametersInTheOrderOfDeclaration) {
  struct Packed : FunctionSet {
    Pair first{5, 3}, packed{5, 3}, last{2, 2};
    Packed() {
      packed.W.pack();
      packed.b.pack();
    }
    CATENA_FUNCTIONS(first, packed, last)
  } model;
  const auto before = catena::testing::all_values(model.parameters());
  for (const bool copied : {false, true}) {
    Packed other = model;
    Packed& used = copied ? other : model;
    const ArenaSet set(named(used));
    std::vector<std::string> names;
    for (const auto& slot : set.arenas()[0].slots()) names.push_back(slot.parameter.name());
    EXPECT_EQ(names, (std::vector<std::string>{"/last/b", "/last/W", "/packed/W", "/packed/b",
                                               "/first/b", "/first/W"}));
    EXPECT_EQ(used.packed.b.data().raw_data(), used.packed.W.data().data<float>() + 15);
    EXPECT_EQ(catena::testing::all_values(used.parameters()), before);
  }
}

// Counts what it gives, as a registered window would be counted.
class Windows : public ArenaMemory {
 public:
  std::map<ArenaBlock, int64_t> bytes;
  Array allocate(ArenaBlock block, int64_t elements, Dtype dtype, Device device) override {
    bytes[block] += elements * int64_t(itemsize(dtype));
    Array memory = Array::uninitialized({elements}, dtype, device);
    memory.fill(7);
    return memory;
  }
};

TEST(Arena, TakesItsMemoryFromWhoeverGivesIt) {
  Model model(dtype::float16), twin(dtype::float16);
  Adam rule(0.1), reference(0.1);
  const auto windows = std::make_shared<Windows>();
  rule.set_memory(windows);
  rule.setup(model);
  reference.setup(twin);
  const int64_t size = rule.layout().arenas()[0].size();
  EXPECT_EQ(windows->bytes[ArenaBlock::kData], 2 * size);
  EXPECT_EQ(windows->bytes[ArenaBlock::kGradient], 2 * size);
  EXPECT_EQ(windows->bytes[ArenaBlock::kMaster], 4 * size);
  EXPECT_EQ(windows->bytes[ArenaBlock::kState], 8 * size);
  for (int64_t t = 1; t <= 3; ++t) {
    step(rule, model, t);
    step(reference, twin, t);
  }
  EXPECT_EQ(catena::testing::all_values(model.parameters()),
            catena::testing::all_values(twin.parameters()));
  EXPECT_NEAR(rule.compute_grads_norm(), reference.compute_grads_norm(), 1e-9) << "gaps are zero";
  EXPECT_THROW(rule.set_memory(windows), ValueError);
}

// Reading states, and adding gradients of a replica, leaves parameters where they are.
TEST(Arena, MovesInTheCallsThatAreNamedOnly) {
  Model model, replica;
  MomentumSGD rule(0.1);
  rule.setup(model);
  step(rule, model, 1);
  const auto velocity = rule.state_of(model.l1.W)[0].to_vector<double>();
  model.to(cpu(3));
  const void* where = model.l1.W.data().raw_data();
  EXPECT_EQ(rule.state_of(model.l1.W)[0].to_vector<double>(), velocity);
  rule.state();
  rule.accumulate_grads(replica);
  EXPECT_EQ(model.l1.W.data().raw_data(), where);
  EXPECT_FALSE(rule.layout().in_place());
  rule.zero_grads();
  EXPECT_TRUE(rule.layout().in_place());
  EXPECT_EQ(rule.state_of(model.l1.W)[0].device(), cpu(3));
}

// Memory runs out at each of the allocations of a move, which is then tried again.
TEST(Arena, FollowsAModelThatMovesAfterMemoryRanOut) {
  for (const bool counts_on_device : {false, true}) {
    Model still;
    Adam reference(0.1);
    reference.setup(still);
    for (int64_t t = 1; t <= 4; ++t) step(reference, still, t);
    bool failed = true;
    for (int allocation = 1; failed; ++allocation) {
      Model model;
      Adam moving(0.1);
      moving.setup(model);
      if (counts_on_device) moving.prepare_for_capture();
      for (int64_t t = 1; t <= 3; ++t) step(moving, model, t);
      model.l1.to(cpu(1));  // one arena becomes two
      failed = false;
      {
        int left = allocation;
        const AllocatorScope scope([&](Device device, size_t bytes) {
          if (--left > 0) return allocate_unpooled(device, bytes);
          throw OutOfMemoryError("pretended");
        });
        try {
          moving.settle_layout();
        } catch (const OutOfMemoryError&) {
          failed = true;
        }
      }
      step(moving, model, 4);
      EXPECT_EQ(moving.t(), 4) << allocation;
      EXPECT_EQ(catena::testing::all_values(model.parameters()),
                catena::testing::all_values(still.parameters()))
          << allocation;
      EXPECT_TRUE(failed || allocation > 4);
    }
  }
}

// Memory that something else owns stays as long as the gradients.
TEST(Arena, KeepsTheMemoryOfAUsersAllocator) {
  int freed = 0;
  const auto count = [&](void* memory) {
    ++freed;
    std::free(memory);
  };
  Model model;
  {
    const AllocatorScope scope([&](Device device, size_t bytes) {
      const size_t rounded = (bytes / 64 + 1) * 64;
      const std::shared_ptr<void> memory(std::aligned_alloc(64, rounded), count);
      return borrow(device, memory.get(), bytes, memory);
    });
    const ArenaSet set(named(model));
    EXPECT_EQ(freed, 0);
    model.l1.W.set_grad(ones({5, 3}, dtype::float32));
  }
  EXPECT_LE(freed, 1) << "the ones alone";
  EXPECT_EQ(model.l1.W.grad().to_vector<double>(), std::vector<double>(15, 1));
}

}  // namespace
}  // namespace catena::optimizers
