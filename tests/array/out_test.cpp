// Routines besides reductions that write their result into an array: `out`.
#include <functional>
#include <utility>
#include <vector>

#include "array/devices.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/scan.h"
#include "catena/array/sorting.h"

namespace catena {
namespace {

using namespace test;

class OutArguments : public OnDevice {};

TEST_P(OutArguments, OfScansSortsAndJoins) {
  const Array a = numbers({3, 1, 2}), out = zeros({3}, {Dtype::kFloat32, GetParam()});
  EXPECT_TRUE(cumsum(a, 0, {}, out).same_body(out));
  EXPECT_EQ(values(out), (V{3, 4, 6}));
  cumprod(a, {}, {}, out);
  EXPECT_EQ(values(out), (V{3, 3, 6}));
  sort(a, -1, out);
  EXPECT_EQ(values(out), (V{1, 2, 3}));
  sort(a, -1, a);  // in place
  EXPECT_EQ(values(a), (V{1, 2, 3}));
  const Array long_ = zeros({6}, {GetParam()}), strided = long_(Slice(none, none, 2));
  concatenate({a(Slice(0, 2)), a(Slice(2, 3))}, 0, strided);
  EXPECT_EQ(values(long_), (V{1, 0, 2, 0, 3, 0}));
  const Array table = zeros({3, 2}, {GetParam()});
  stack({a, a * 10}, 1, table);
  EXPECT_EQ(values(table), (V{1, 10, 2, 20, 3, 30}));
  expect_contains(error_of<ShapeError>([&] { cumsum(a, 0, {}, table); }),
                  {"cumsum", "(3, 2)", "(3,)"});
  expect_contains(error_of<ShapeError>([&] {
                    concatenate({a, a}, 0, out);
                  }),
                  {"concatenate", "(3,)", "(6,)"});
}

// One that computes in its own dtype takes an array alone.
TEST_P(OutArguments, AreArrays) {
  const Array a = numbers({3, 1, 2}), mask = a > 1;
  const std::vector<std::pair<const char*, std::function<void(const Out&)>>> calls = {
      {"cumsum", [&](const Out& out) { cumsum(a, 0, {}, out); }},
      {"cumprod", [&](const Out& out) { cumprod(a, 0, {}, out); }},
      {"sort", [&](const Out& out) { sort(a, -1, out); }},
      {"take",
       [&](const Out& out) {
         take(a, {0, 1, 2}, 0, OutOfRange::kRaise, out);
       }},
      {"take", [&](const Out& out) { take(a, 1, 0, OutOfRange::kRaise, out); }},
      {"concatenate", [&](const Out& out) { concatenate({a}, 0, out); }},
      {"stack", [&](const Out& out) { stack({a}, 0, out); }},
  };
  for (const auto& [name, call] : calls) {
    expect_contains(error_of<ValueError>([&] { call(Dtype::kFloat32); }), {name, "astype"});
    expect_contains(error_of<ValueError>([&] { call(Out(a.copy(), mask)); }), {name, "where"});
  }
}

CATENA_ON_DEVICES(OutArguments);

}  // namespace
}  // namespace catena
