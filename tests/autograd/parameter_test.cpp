// Parameters that layers share: ties, their names, and copies of models that have them.
#include "catena/autograd/parameter.h"

#include <gtest/gtest.h>

#include "catena/autograd/function_set.h"
#include "catena/testing.h"
#include "error_text.h"

namespace catena {
namespace {

using Names = std::vector<std::string>;

struct Layer : Parameterized {
  OwnedParameter W, b{ones({2})};
  explicit Layer(const Shape& shape = {2, 3}) : W(ones(shape)) {}
  CATENA_PARAMETERS(W, b)
};

struct Tied : FunctionSet {
  Layer z_first, head;
  CATENA_FUNCTIONS(z_first, head)
  Tied() { head.W.tie_to(z_first.W); }
};

// Ties within a nested set, a vector and a bag, and across them.
struct Outer : FunctionSet {
  Tied inner;
  std::vector<Layer> layers{Layer(), Layer()};
  FunctionBag bag;
  CATENA_FUNCTIONS(inner, layers, bag)
  Outer() {
    bag.add("l", Layer());
    layers[1].W.tie_to(layers[0].W);
    bag.get<Layer>("l").W.tie_to(inner.head.W);
  }
  bool is_tied() {
    return inner.head.W == inner.z_first.W && bag.get<Layer>("l").W == inner.head.W &&
           layers[1].W == layers[0].W && !(layers[0].W == inner.head.W) &&
           !(layers[0].b == layers[1].b);
  }
};

// Vectors of parameters are assigned with the model.
struct List : FunctionSet {
  std::vector<OwnedParameter> list{OwnedParameter(ones({2}))};
  CATENA_FUNCTIONS(list)
};

TEST(OwnedParameter, IsAssignedInAVector) {
  List model, target;
  model.list[0].data().fill(3);
  target = model;
  EXPECT_FALSE(target.list[0] == model.list[0]);
  EXPECT_EQ(target.list[0].data().to_vector<double>(), (std::vector<double>{3, 3}));
}

TEST(TiedParameter, CountsOnceUnderItsFirstName) {
  Tied model;
  EXPECT_TRUE(model.head.W == model.z_first.W);
  EXPECT_EQ(model.named_parameters().size(), 4u);
  EXPECT_EQ(model.parameter_names(), (Names{"head/b", "z_first/W", "z_first/b"}));
  EXPECT_EQ(model.parameters().size(), 3u);
  EXPECT_EQ(model.gradients().size(), 3u);
  EXPECT_EQ(model.parameter_count(), 10);
  model.set_parameters({full({2}, 1.0), full({2, 3}, 2.0), full({2}, 3.0)});
  EXPECT_EQ(model.head.W.data().to_vector<double>(), std::vector<double>(6, 2));
  model.to(cpu(1));
  EXPECT_EQ(model.head.W.device(), cpu(1));
  EXPECT_TRUE(model.head.W == model.z_first.W);
}

TEST(TiedParameter, RefusesWhatDoesNotFit) {
  Layer layer, wide({3, 3});
  expect_contains(error_of<ShapeError>([&] { layer.W.tie_to(wide.W); }),
                  {"tie_to", "(2, 3)", "(3, 3)"});
  const Parameter narrow(ones({2, 3}, dtype::float32));
  expect_contains(error_of<DtypeError>([&] { layer.W.tie_to(narrow); }), {"tie_to", "float32"});
  OwnedParameter none;
  expect_contains(error_of<ValueError>([&] { layer.W.tie_to(none); }), {"tie_to", "nobias"});
  expect_contains(error_of<ValueError>([&] { none.tie_to(layer.W); }), {"tie_to", "nobias"});
}

TEST(TiedParameter, CopiesAreTiedAmongThemselves) {
  Outer model;
  ASSERT_TRUE(model.is_tied());
  Outer copy = model, again = copy;
  EXPECT_TRUE(copy.is_tied());
  EXPECT_TRUE(again.is_tied());
  EXPECT_FALSE(copy.inner.head.W == model.inner.head.W);
  EXPECT_FALSE(again.layers[0].W == copy.layers[0].W);
  const Layer one = model.inner.head, other = model.inner.z_first;
  EXPECT_FALSE(one.W == other.W) << "copies of two layers, not of a model";
  Outer target;
  model.inner.head.W.data().fill(5);
  target = model;
  EXPECT_TRUE(target.is_tied());
  EXPECT_EQ(target.inner.z_first.W.data().to_vector<double>(), std::vector<double>(6, 5));
}

TEST(TiedParameter, ACopyThatFailedLeavesNothingBehind) {
  struct Fails {
    bool now = false;
    Fails() = default;
    Fails(const Fails& other) : now(other.now) {
      if (now) throw ValueError("no copy");
    }
  };
  struct Failing : FunctionSet {
    Layer a;
    Fails fails;
    Layer b;
    CATENA_FUNCTIONS(a, b)
  } model;
  model.b.W.tie_to(model.a.W);
  model.fails.now = true;
  EXPECT_THROW(Failing{model}, ValueError);
  const Layer a = model.a, b = model.b;
  EXPECT_FALSE(a.W == b.W);
}

}  // namespace
}  // namespace catena
