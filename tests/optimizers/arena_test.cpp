// Layout of arenas, and that they follow parameters that move.
#include "catena/optimizers/arena.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "catena/core/memory.h"
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
    EXPECT_EQ(slot.parameter.data().raw_data(), arena.data().data<float>() + slot.offset);
    EXPECT_EQ(slot.parameter.grad().raw_data(), arena.gradient().data<float>() + slot.offset);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"/l2/b", "/l2/W", "/l1/b", "/l1/W"}));
  EXPECT_EQ(arena.size(), 4 * 64);
  EXPECT_EQ(catena::testing::all_values(model.parameters()), before);
  EXPECT_TRUE(set.in_place());
}

TEST(Arena, GapsAreZero) {
  Model model;
  const ArenaSet set(named(model));
  const ParameterArena& arena = set.arenas()[0];
  const std::vector<float> data = arena.data().to_vector<float>();
  for (size_t k = 0; k < arena.slots().size(); ++k) {
    const auto& slot = arena.slots()[k];
    for (int64_t i = slot.offset + slot.size; i < arena.end_of(k); ++i)
      EXPECT_EQ(data[size_t(i)], 0) << i;
  }
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
  EXPECT_EQ(common_block(x.arenas()[0], gradients).raw_data(), y.arenas()[0].gradient().raw_data());
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
    for (const Array& state : arena.states()) {
      EXPECT_EQ(state.dtype(), wide);
      EXPECT_EQ(state.shape(), arena.data().shape());
    }
    EXPECT_EQ(arena.states()[0].to_vector<double>()[3], 0);
    EXPECT_EQ(arena.states()[1].to_vector<double>()[3], 2.5);
    ASSERT_EQ(arena.master().defined(), dtype == dtype::bfloat16);
    if (arena.master().defined()) {
      EXPECT_EQ(arena.master().to_vector<double>(), arena.data().to_vector<double>());
    }
  }
}

TEST(Arena, HasRanges) {
  Model model(dtype::float16);
  ArenaSet set(named(model));
  set.make_states({0});
  const ParameterArena& arena = set.arenas()[0];
  const ArenaRange part = arena.range({128, 200});
  EXPECT_EQ(part.data.raw_data(), arena.data()(Slice(128, 200)).raw_data());
  EXPECT_EQ(part.gradient.raw_data(), arena.gradient()(Slice(128, 200)).raw_data());
  EXPECT_EQ(part.master.raw_data(), arena.master()(Slice(128, 200)).raw_data());
  EXPECT_EQ(part.states[0].raw_data(), arena.states()[0](Slice(128, 200)).raw_data());
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
    catena::testing::set_gradients(model.parameters(), t);
    catena::testing::set_gradients(still.parameters(), t);
    moving.update();
    reference.update();
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
  catena::testing::set_gradients(model.parameters(), 1);
  optimizer.update();
  EXPECT_EQ(catena::testing::all_values(copy.parameters()), before);
  EXPECT_NE(catena::testing::all_values(model.parameters()), before);

  model = copy;  // writes into the arena
  EXPECT_TRUE(optimizer.layout().in_place());
  EXPECT_EQ(catena::testing::all_values(model.parameters()), before);

  Model moved = std::move(model);
  catena::testing::set_gradients(moved.parameters(), 2);
  optimizer.update();
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

// Memory runs out at each of the allocations of a move, which is then tried again.
TEST(Arena, FollowsAModelThatMovesAfterMemoryRanOut) {
  for (const bool counts_on_device : {false, true}) {
    Model still;
    Adam reference(0.1);
    reference.setup(still);
    for (int64_t t = 1; t <= 4; ++t) {
      catena::testing::set_gradients(still.parameters(), t);
      reference.update();
    }
    bool failed = true;
    for (int allocation = 1; failed; ++allocation) {
      Model model;
      Adam moving(0.1);
      moving.setup(model);
      if (counts_on_device) moving.prepare_for_capture();
      for (int64_t t = 1; t <= 3; ++t) {
        catena::testing::set_gradients(model.parameters(), t);
        moving.update();
      }
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
      catena::testing::set_gradients(model.parameters(), 4);
      moving.update();
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
