// Slots and their providers: order, declined calls, rules.
#include "catena/kernels/slot.h"

#include <gtest/gtest.h>

#include <thread>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/core/error.h"

namespace catena {
namespace {

struct Call {
  int size;
  std::vector<std::string>& asked;
};

bool fast(const Call& call) {
  call.asked.push_back("fast");
  return call.size % 2 == 0;
}
void all(const Call& call) { call.asked.push_back("all"); }

// One slot for all tests of the process, as slots live as long as it.
Slot<Call>& slot() {
  static Slot<Call>* const instance = [] {
    auto* made = new Slot<Call>("slot_test");
    made->provide<&all>(DeviceType::kCpu, "all");
    made->provide(DeviceType::kCpu, "fast", &fast, 10);
    return made;
  }();
  return *instance;
}

std::vector<std::string> asked_for(int size) {
  std::vector<std::string> asked;
  slot()(cpu(0), {size, asked});
  return asked;
}

std::string text_of_refusal(int size) {
  try {
    asked_for(size);
  } catch (const DeviceError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Slot, AsksByPriorityUntilOneTakesTheCall) {
  EXPECT_EQ(asked_for(2), (std::vector<std::string>{"fast"}));
  EXPECT_EQ(asked_for(3), (std::vector<std::string>{"fast", "all"}));
}

TEST(Slot, ListsItsProviders) {
  const auto providers = slot().providers(DeviceType::kCpu);
  ASSERT_EQ(providers.size(), 2u);
  EXPECT_EQ(providers[0].name, "fast");
  EXPECT_EQ(providers[0].priority, 10);
  EXPECT_EQ(providers[1].name, "all");
  EXPECT_EQ(providers[1].use, ProviderUse::kOn);
}

TEST(Slot, RulesTurnProvidersOffAndForceThem) {
  {
    const ProviderScope off("fast:off");
    EXPECT_EQ(asked_for(2), (std::vector<std::string>{"all"}));
    EXPECT_EQ(slot().providers(DeviceType::kCpu)[0].use, ProviderUse::kOff);
    const ProviderScope on("slot_test/fast:on");  // later rules win
    EXPECT_EQ(asked_for(2), (std::vector<std::string>{"fast"}));
  }
  {
    const ProviderScope only("all:only");
    EXPECT_EQ(asked_for(2), (std::vector<std::string>{"all"}));
  }
  {
    const ProviderScope other("other_slot/fast:off");
    EXPECT_EQ(asked_for(2), (std::vector<std::string>{"fast"}));
  }
  EXPECT_EQ(asked_for(2), (std::vector<std::string>{"fast"}));
  EXPECT_EQ(config().providers.text(), "");
}

// config().use_cudnn is a rule as others are: no kernel reads it.
TEST(Slot, TheSettingForCudnnIsARule) {
  static auto& kernel = *new Slot<Call>("cudnn_test");  // as long as the process
  const auto take = +[](const Call& call) {
    call.asked.push_back("cudnn");
    return true;
  };
  kernel.provide(DeviceType::kCpu, "cudnn", take, 10);
  kernel.provide(
      DeviceType::kCpu, "all", +[](const Call& call) {
        call.asked.push_back("all");
        return true;
      });
  const auto asked = [] {
    std::vector<std::string> names;
    kernel(cpu(0), {1, names});
    return names.at(0);
  };
  const Config before = config();
  config().providers = "onednn:on";
  EXPECT_EQ(asked(), "cudnn");
  config().use_cudnn = UseCudnn::kNever;
  EXPECT_EQ(config().providers.text(), "onednn:on,cudnn:off");
  EXPECT_EQ(asked(), "all");
  config().use_cudnn = UseCudnn::kAlways;
  EXPECT_EQ(config().providers.text(), "onednn:on,cudnn:always");
  EXPECT_EQ(kernel.providers(DeviceType::kCpu)[0].use, ProviderUse::kAlways);
  EXPECT_EQ(asked(), "cudnn");
  config().use_cudnn = false;
  EXPECT_EQ(asked(), "all");
  config().use_cudnn = true;
  EXPECT_EQ(config().providers.text(), "onednn:on");
  EXPECT_EQ(asked(), "cudnn");
  config() = before;
  EXPECT_EQ(config().providers.text(), before.providers.text());
}

TEST(Slot, TheSettingForCudnnReadsTheRules) {
  EXPECT_EQ(config().use_cudnn, UseCudnn::kAuto);
  {
    const ProviderScope off("cudnn:off");
    EXPECT_EQ(config().use_cudnn, UseCudnn::kNever);
    const Config copy = config();
    const ProviderScope only("cudnn:only");
    EXPECT_EQ(config().use_cudnn, UseCudnn::kAlways);
    EXPECT_EQ(copy.use_cudnn, UseCudnn::kNever);
  }
  {
    const ProviderScope one("convolution/cudnn:off");  // of a single kernel
    EXPECT_EQ(config().use_cudnn, UseCudnn::kAuto);
  }
}

TEST(Slot, CallThatNobodyTakesNamesProvidersAndRules) {
  {
    const ProviderScope only("fast:only");
    EXPECT_EQ(text_of_refusal(2), "no error");
    EXPECT_EQ(text_of_refusal(3),
              "slot_test: no provider takes this call on cpu:0; asked: fast; left out by "
              "the rules 'fast:only' (config().providers, CATENA_PROVIDERS): all");
  }
  const ProviderScope none("fast:off,all:off");
  EXPECT_EQ(text_of_refusal(2),
            "slot_test: no provider takes this call on cpu:0; asked: none; left out by the "
            "rules 'fast:off,all:off' (config().providers, CATENA_PROVIDERS): fast, all");
}

// A forward slot of which "keeps" leaves a state, and its backward slot.
struct BackwardCall {
  std::string& by;
  bool decline = false;
  const Kept<BackwardCall>* kept = nullptr;
};
struct ForwardCall {
  Kept<BackwardCall>* kept;
};
struct Number final : KeptState {
  explicit Number(int n) : number(n) {}
  int number;
};

bool backward_of_keeps(const BackwardCall& call) {
  if (call.decline) return false;
  const Number* own = call.kept ? call.kept->state<&backward_of_keeps, Number>() : nullptr;
  call.by = "keeps " + std::to_string(own ? own->number : -1);
  return true;
}
void forward_of_keeps(const ForwardCall& call) {
  if (call.kept) call.kept->keep<&backward_of_keeps>(IntrusivePtr<const KeptState>(new Number(7)));
}
void forward_of_plain(const ForwardCall&) {}
void backward_of_plain(const BackwardCall& call) { call.by = "plain"; }

struct Pair {
  Slot<ForwardCall> forward{"pair_forward"};
  Slot<BackwardCall> backward{"pair_backward"};
};
Pair& pair() {
  static Pair* const instance = [] {
    auto* made = new Pair;
    made->forward.provide<&forward_of_keeps>(DeviceType::kCpu, "keeps");
    made->forward.provide<&forward_of_plain>(DeviceType::kCpu, "plain", 10);
    made->backward.provide(DeviceType::kCpu, "keeps", &backward_of_keeps);
    made->backward.provide<&backward_of_plain>(DeviceType::kCpu, "plain", 10);
    return made;
  }();
  return *instance;
}

// Who serves the backward call after a forward call under these rules.
std::string backward_after(const char* forward_rules, const char* backward_rules) {
  Kept<BackwardCall> kept;
  {
    const ProviderScope rules(forward_rules);
    pair().forward(cpu(0), {&kept});
  }
  const ProviderScope rules(backward_rules);
  std::string by;
  pair().backward(cpu(0), {by, false, &kept});
  return by;
}

TEST(Slot, BackwardIsAskedOfTheProviderThatKeptSomething) {
  EXPECT_EQ(backward_after("keeps:only", "plain:on"), "keeps 7");
  EXPECT_EQ(backward_after("keeps:only", "keeps:off"), "keeps 7");
  EXPECT_EQ(backward_after("plain:on", "plain:on"), "plain");
  EXPECT_EQ(backward_after("plain:on", "plain:off"), "keeps -1");
}

TEST(Slot, WhatTheMakerDeclinesIsAnError) {
  Kept<BackwardCall> kept;
  forward_of_keeps({&kept});
  std::string by;
  try {
    pair().backward(cpu(0), {by, true, &kept});
    FAIL() << "served by " << by;
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("pair_backward: the provider that took the forward call"),
              std::string::npos)
        << e.what();
  }
  EXPECT_EQ(by, "");
}

TEST(Slot, WithoutProvidersSaysSo) {
  static auto& empty = *new Slot<Call>("empty_slot");  // as long as the process
  std::vector<std::string> asked;
  try {
    empty(cpu(0), {1, asked});
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_STREQ(e.what(), "empty_slot: cpu has no such kernel");
  }
}

TEST(Slot, FindsProvidersByName) {
  std::vector<std::string> asked;
  EXPECT_FALSE(slot().provider(DeviceType::kCpu, "fast")({3, asked}));
  EXPECT_TRUE(slot().provider(DeviceType::kCpu, "all")({3, asked}));
  EXPECT_THROW(slot().provider(DeviceType::kCpu, "cudnn"), DeviceError);
}

TEST(Slot, RulesThatAreAssignedWithAllSettingsTakeEffect) {
  const Config before = config();
  config().providers = "fast:off";
  EXPECT_EQ(asked_for(2), (std::vector<std::string>{"all"}));
  config() = before;
  EXPECT_EQ(asked_for(2), (std::vector<std::string>{"fast"}));
}

// Tables are replaced while other threads call.
TEST(Slot, RulesMayChangeBesideCalls) {
  const std::vector<std::string> by_default{"fast", "all"}, by_rule{"all"};
  std::atomic<bool> stop{false};
  std::thread caller([&] {
    while (!stop) {
      const std::vector<std::string> asked = asked_for(3);
      EXPECT_TRUE(asked == by_default || asked == by_rule);
    }
  });
  for (int i = 0; i < 200; ++i) const ProviderScope scope(i % 2 ? "fast:off" : "all:only");
  stop = true;
  caller.join();
}

TEST(Slot, ArraysObeyTheRules) {
  const Array a = ones({3});
  const ProviderScope off("elementwise/cpu:off");
  try {
    add(a, a);
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("elementwise: no provider takes this call on cpu:0"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace catena
