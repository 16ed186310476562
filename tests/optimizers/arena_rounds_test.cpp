// How arenas are cut, and what they do in each step of training in which this process updates a
// part of each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "catena/optimizers/arena.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

using catena::testing::all_values;
using catena::testing::Pair;
using catena::testing::set_gradients;

// The names of the parameters of each arena.
std::vector<std::string> cut(Parameterized& model, const ArenaCuts& cuts) {
  ArenaSet::Named named = model.named_parameters();
  for (auto& entry : named) entry.first.insert(0, 1, '/');
  const ArenaSet set(named, {nullptr, 1, cuts});
  std::vector<std::string> result;
  for (const ParameterArena& arena : set.arenas()) {
    std::string names;
    for (const auto& slot : arena.slots()) names += set.name(size_t(slot.index)) + " ";
    result.push_back(names);
  }
  return result;
}

struct Four : FunctionSet {
  Pair a{4, 4}, b{4, 4}, c{4, 4}, d{4, 4};  // 64 and 16 bytes each
  CATENA_FUNCTIONS(a, b, c, d)
};
using Names = std::vector<std::string>;

TEST(ArenaCuts, CloseArenasAtTheirSizes) {
  Four model;
  EXPECT_EQ(cut(model, {}).size(), 1u);
  EXPECT_EQ(cut(model, {{}, 80, 160, 0}),
            (Names{"/d/b /d/W ", "/c/b /c/W /b/b /b/W ", "/a/b /a/W "}));
  EXPECT_EQ(cut(model, {{}, 80, 1000, 64}),
            (Names{"/d/b /d/W ", "/c/b /c/W /b/b /b/W /a/b ", "/a/W "}))
      << "the last is small";
  EXPECT_EQ(cut(model, {{}, 1000, 1000, 1000}).size(), 1u);
  EXPECT_EQ(cut(model, {{}, 1, 1, 0}).size(), 8u);
}

TEST(ArenaCuts, LeavePacksTogether) {
  Four model;
  model.b.W.pack();
  model.b.b.pack();
  EXPECT_EQ(cut(model, {{}, 1, 1, 16}),
            (Names{"/d/b ", "/d/W ", "/c/b ", "/c/W ", "/b/W /b/b ", "/a/b ", "/a/W "}));
  EXPECT_EQ(cut(model, {{}, 1000, 1000, 80 + 16 + 8}),
            (Names{"/d/b /d/W /c/b /c/W /b/W /b/b ", "/a/b /a/W "}))
      << "the tail begins behind the pack";
}

TEST(ArenaCuts, SeparateUnits) {
  Four model;
  const auto unit = [](const std::string& name) {
    return std::string(name[1] == 'a' || name[1] == 'c' ? "odd" : "even");
  };
  EXPECT_EQ(cut(model, {unit}), (Names{"/d/b /d/W /b/b /b/W ", "/c/b /c/W /a/b /a/W "}));
}

// Rounds ------------------------------------------------------------------------------------------

// An arena of which this process updates the second half.
struct Rounds : ::testing::Test {
  struct Counted : ArenaMemory {
    int calls = 0;
    Array allocate(ArenaBlock, int64_t elements, Dtype dtype, Device device) override {
      ++calls;
      return zeros({elements}, {dtype, device});
    }
  };
  catena::testing::Model model;
  std::shared_ptr<Counted> memory;
  std::unique_ptr<ArenaSet> set;

  void make(bool registered) {
    if (registered) memory = std::make_shared<Counted>();
    ArenaSet::Named named = model.named_parameters();
    for (auto& entry : named) entry.first.insert(0, 1, '/');
    set = std::make_unique<ArenaSet>(named, LayoutOptions{memory, 2});
    set->make_states({}, 1, 2);
  }
  ParameterArena& arena() { return set->arena(0); }
};

TEST_F(Rounds, GradientsAreCollectedKeptAndOpenedAgain) {
  for (const bool frees : {false, true}) {
    make(false);
    const Parameters all = model.parameters();
    for (int64_t t = 0; t < 3; ++t) {
      for (const Parameter& p : all) p.zero_grad();
      set_gradients(all, t);
      const auto before = model.l1.W.grad().to_vector<double>();
      const auto other = model.l2.W.grad().to_vector<double>();
      arena().collect_gradient();
      EXPECT_TRUE(arena().has_whole_gradient());
      EXPECT_EQ(model.l2.W.grad().to_vector<double>(), other) << "as it was made";
      const Array own = arena().own_gradient(frees);
      own.assign(arena().gradient().part(arena().covers()));
      arena().keep_own_gradient(own);
      EXPECT_TRUE(arena().keeps_own_gradient());
      EXPECT_EQ(arena().gradient().covers, arena().covers());
      EXPECT_EQ(model.l1.W.grad().to_vector<double>(), before);
      expect_contains(error_of<GradientError>([&] { model.l2.W.grad(); }),
                      {"/l2/W'", "not in this process"});
      EXPECT_EQ(arena().bytes(), arena().size() * (frees ? 6 : 8));
      EXPECT_TRUE(set->in_place());
      arena().reopen_gradient();
      EXPECT_FALSE(arena().keeps_own_gradient());
      EXPECT_EQ(arena().has_whole_gradient(), !frees);
      for (const Parameter& p : all)
        EXPECT_TRUE(p.state()->has_gradient()) << "what is known of them stays";
      EXPECT_TRUE(set->in_place());
    }
  }
}

// Collected gradients -----------------------------------------------------------------------------

// Memory full of what is not a number.
AllocatorScope spoilt_memory() {
  return AllocatorScope([](Device device, size_t bytes) {
    StoragePtr storage = allocate(device, bytes);
    std::memset(storage->data, 0xff, storage->bytes);
    return storage;
  });
}

// Parameters of odd sizes around one that is too large to be cleared with the gaps beside it. This
// process updates nothing, so that all gradients are made anew.
struct Collected : ::testing::Test {
  const Parameter first{zeros({3}, dtype::float32)}, large{zeros({3 << 20}, dtype::float32)},
      third{zeros({5}, dtype::float32)}, last{zeros({7}, dtype::float32)};
  ArenaSet set{{{"/first", first}, {"/large", large}, {"/third", third}, {"/last", last}}};

  void SetUp() override {
    set.arena(0).make_states({}, {0, 0});
    for (const auto& slot : arena().slots()) slot.parameter.zero_grad();
    release();
  }
  ParameterArena& arena() { return set.arena(0); }
  // As after a reduction.
  void release() {
    if (!arena().has_whole_gradient()) arena().collect_gradient();
    arena().keep_own_gradient(arena().own_gradient(true));
    arena().reopen_gradient();
  }
  void collect() {
    const AllocatorScope spoilt = spoilt_memory();
    arena().collect_gradient();
  }
  std::vector<float> gradients() { return arena().gradient().memory.to_vector<float>(); }
  // The gradients, where slots are, and zeros in the gaps.
  std::vector<float> expected(const std::vector<std::pair<Parameter, float>>& values) {
    std::vector<float> all(size_t(arena().size()), 0.f);
    for (const auto& [parameter, value] : values)
      for (const auto& slot : arena().slots())
        if (slot.parameter.state() == parameter.state())
          std::fill_n(all.begin() + slot.offset, slot.size, value);
    return all;
  }
  static void add_to(const Parameter& p, double value) {
    p.state()->add_gradient(full(p.shape(), value, {p.dtype(), p.device()}));
  }
};

// Passes overwrite it.
TEST_F(Collected, WhatPassesWriteIsNotCleared) {
  collect();
  const auto& slots = arena().slots();
  const auto& slot = *std::find_if(slots.begin(), slots.end(), [&](const auto& s) {
    return s.parameter.state() == large.state();
  });
  EXPECT_TRUE(std::isnan(gradients()[size_t(slot.offset)]));
  add_to(large, 2);
  arena().settle_gradients();
  EXPECT_EQ(gradients(), expected({{large, 2.f}}));
}

TEST_F(Collected, GapsAndGradientsThatNoPassReachesAreZero) {
  collect();
  add_to(first, 1);
  arena().settle_gradients();
  EXPECT_EQ(gradients(), expected({{first, 1.f}}));
  EXPECT_FALSE(large.state()->has_gradient());
}

TEST_F(Collected, SeveralPassesAdd) {
  add_to(large, 1);  // before, in memory of its own
  add_to(third, 4);
  collect();
  add_to(large, 2);
  add_to(first, 3);
  add_to(first, 0.5);
  arena().settle_gradients();
  EXPECT_EQ(gradients(), expected({{first, 3.5f}, {large, 3.f}, {third, 4.f}}));
}

// Of which only a part was kept.
TEST_F(Collected, GradientsWhoseValuesAreGoneCountAsZero) {
  add_to(large, 1);
  collect();
  arena().keep_own_gradient(arena().own_gradient(true));
  arena().reopen_gradient();
  ASSERT_TRUE(large.state()->has_gradient());
  collect();
  arena().settle_gradients();
  EXPECT_EQ(gradients(), expected({}));
}

TEST_F(Collected, ParametersThatHaveLeftTheArenaCountAsZero) {
  add_to(large, 1);
  large.rebind_data(large.data().copy());
  collect();
  arena().settle_gradients();
  EXPECT_EQ(gradients(), expected({}));
}

struct RoundsOfValues : Rounds, ::testing::WithParamInterface<bool> {};

TEST_P(RoundsOfValues, GoAndComeBackWithWhatWasWritten) {
  const bool frees = GetParam();
  make(false);
  const auto before = all_values(model.parameters());
  arena().keep_own_data(frees);
  for (const Parameter& p : model.parameters())
    EXPECT_THROW(p.data(), ValueError) << "all of them, so that processes act alike";
  EXPECT_TRUE(set->in_place());
  EXPECT_EQ(arena().bytes(), arena().size() * (frees ? 6 : 8));
  const Array whole = arena().memory_for_data();
  if (frees) {  // what an exchange would bring
    whole.fill(0);
    whole(Slice(arena().covers().begin, arena().covers().end)).assign(arena().own_data());
  }
  arena().take_whole_data(whole);
  EXPECT_EQ(model.l1.W.data().to_vector<double>(), before[0]);
  EXPECT_EQ(model.l2.W.data().to_vector<double>(),
            frees ? std::vector<double>(before[2].size(), 0.0) : before[2]);
  model.l1.W.data().fill(7);
  arena().keep_own_data(frees);
  const std::vector<double> kept = arena().own_data().to_vector<double>();
  EXPECT_NE(std::find(kept.begin(), kept.end(), 7.0), kept.end());
  EXPECT_TRUE(set->in_place());
}
INSTANTIATE_TEST_SUITE_P(Memory, RoundsOfValues, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "IsFreed" : "Stays"; });

// Making it anew would register it anew, on all ranks.
TEST_F(Rounds, RegisteredMemoryStays) {
  make(true);
  const int made = memory->calls;
  set_gradients(model.parameters(), 1);
  for (int round = 0; round < 2; ++round) {
    arena().collect_gradient();
    arena().keep_own_gradient(arena().own_gradient(true));
    arena().reopen_gradient();
    EXPECT_TRUE(arena().has_whole_gradient());
    arena().keep_own_data(true);
    arena().take_whole_data(arena().memory_for_data());
  }
  EXPECT_EQ(memory->calls, made);
}

}  // namespace
}  // namespace catena::optimizers
