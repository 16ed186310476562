// Results of expensive functions that are noted and handed out.
#include "catena/autograd/kept_results.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/autograd/function_call.h"

namespace catena {
namespace {

using Mode = KeptResultsScope::Mode;

// A function that takes long, and how often it computed.
struct Expensive {
  int runs = 0;
  Array operator()(const Array& array, Keep from = Keep::kProducts) {
    const Variable x = Variable::constant(array);
    const FunctionCall call("Expensive", Autocast::kNone, x);
    return make_once(call, from, [&] {
      ++runs;
      return array * 2.0;
    });
  }
};

TEST(KeptResults, AreHandedOutInTheirOrder) {
  Expensive f;
  KeptResults kept(Keep::kProducts);
  const Array a = ones({2}), b = ones({3});
  Arrays made;
  {
    const KeptResultsScope note(kept, Mode::kNote);
    made = {f(a), f(b)};
    f(a, Keep::kEverything);  // not for kProducts
  }
  EXPECT_EQ(f.runs, 3);
  EXPECT_EQ(kept.arrays(Keep::kProducts).size(), 2u);
  for (int pass = 0; pass < 2; ++pass) {
    const KeptResultsScope repeat(kept, Mode::kRepeat);
    EXPECT_EQ(f(a).raw_data(), made[0].raw_data());
    EXPECT_THROW(repeat.require_all_taken(), ValueError);
    EXPECT_EQ(f(b).raw_data(), made[1].raw_data());
    repeat.require_all_taken();
    EXPECT_THROW(f(b), ValueError);
  }
  EXPECT_EQ(f.runs, 3);
  f(a);
  EXPECT_EQ(f.runs, 4);
}

TEST(KeptResults, AreForgottenByTheirKind) {
  Expensive f;
  KeptResults kept(Keep::kProducts);
  {
    const KeptResultsScope note(kept, Mode::kNote);
    f(ones({2}), Keep::kAttention);
    f(ones({3}), Keep::kProducts);
  }
  EXPECT_EQ(kept.arrays(Keep::kNothing).size(), 0u);
  EXPECT_EQ(kept.arrays(Keep::kAttention).size(), 1u);
  kept.reduce_to(Keep::kAttention);
  const KeptResultsScope repeat(kept, Mode::kRepeat);
  f(ones({2}), Keep::kAttention);
  f(ones({3}), Keep::kProducts);
  repeat.require_all_taken();
  EXPECT_EQ(f.runs, 3);
}

TEST(KeptResults, ScopesNest) {
  Expensive f;
  KeptResults outer(Keep::kProducts), inner(Keep::kProducts), attention(Keep::kAttention);
  const Array a = ones({2});
  {
    const KeptResultsScope note(outer, Mode::kNote), too(inner, Mode::kNote);
    f(a);
  }
  EXPECT_EQ(outer.arrays(Keep::kProducts).size(), 1u);
  EXPECT_EQ(inner.arrays(Keep::kProducts).size(), 1u);

  KeptResults around(Keep::kProducts), inside(Keep::kProducts);
  {
    const KeptResultsScope note(around, Mode::kNote), repeat(outer, Mode::kRepeat),
        other(attention, Mode::kRepeat), too(inside, Mode::kNote);
    f(a);
  }
  EXPECT_EQ(f.runs, 1);
  EXPECT_EQ(inside.arrays(Keep::kProducts).size(), 1u);
  EXPECT_EQ(around.arrays(Keep::kProducts).size(), 0u);
}

}  // namespace
}  // namespace catena
