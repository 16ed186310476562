#include "core/read_budget.h"

#include <gtest/gtest.h>

#include "catena/core/error.h"
#include "error_text.h"

namespace catena {
namespace {

TEST(ReadBudget, EndsWhereALimitIsPassed) {
  const auto charged = [](auto charge) {
    ReadBudget budget("reading 'net.pt'");
    return error_of<IoError>([&] { charge(budget); });
  };
  const auto expect_limit = [&](auto first, auto more, const char* text) {
    EXPECT_EQ(charged(first), "no error");
    expect_contains(charged([&](ReadBudget& budget) { first(budget), more(budget); }),
                    {"reading 'net.pt': ", text});
  };
  expect_limit([](ReadBudget& b) { b.charge_bytes(ReadBudget::kMostBytes); },
               [](ReadBudget& b) { b.charge_bytes(1); }, "more than 512 MiB of memory");
  expect_limit([](ReadBudget& b) { b.charge_bytes(1); },
               [](ReadBudget& b) { b.charge_bytes(~uint64_t{0}); }, "of memory");
  expect_limit([](ReadBudget& b) { b.charge_steps(ReadBudget::kMostSteps); },
               [](ReadBudget& b) { b.charge_steps(1); }, "more than 268435456 steps");
  const auto entries = [](ReadBudget& b) {
    for (size_t i = 0; i < ReadBudget::kMostEntries; ++i) b.charge_entry("w");
  };
  expect_limit(
      entries, [](ReadBudget& b) { b.charge_entry("w"); }, "more than 1000000 entries");
  expect_limit([](ReadBudget& b) { b.check_depth(64); }, [](ReadBudget& b) { b.check_depth(65); },
               "64 containers deep");
  const std::string longest(ReadBudget::kLongestName, 'a');
  expect_limit([&](ReadBudget& b) { b.check_name(longest); },
               [&](ReadBudget& b) { b.charge_entry(longest + "a"); },
               "a name of 65537 bytes, 'aaaa");
  expect_contains(charged([&](ReadBudget& b) {
                    for (int i = 0; i < 5000; ++i) b.charge_entry(longest);
                  }),
                  {"of memory"});
}

}  // namespace
}  // namespace catena
