// The layer Bilinear; bilinear is in the function oracle and has a record.
#include "catena/functions/connection/bilinear.h"
#include "catena/autograd/autocast.h"

#include "catena/functions/connection/linear.h"
#include "catena/testing_gtest.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class BilinearLayer : public OnDevice {};
CATENA_ON_DEVICES(BilinearLayer);

TEST_P(BilinearLayer, IsTheFunctionOfItsParameters) {
  const DeviceScope scope(device());
  const F::Bilinear layer(3, 4, 5, {.dtype = Dtype::kFloat64}), plain(3, 4, 5, {.nobias = true});
  layer.b.data().assign(draw({5}));
  const Array e1 = draw({2, 3}), e2 = draw({2, 4}, -1, 1, 1);
  EXPECT_EQ(testing::difference(layer(e1, e2).data(),
                                F::bilinear(e1, e2, layer.W, layer.V1, layer.V2, layer.b).data()),
            "");
  const Array f1 = e1.astype(Dtype::kFloat32), f2 = e2.astype(Dtype::kFloat32);
  EXPECT_EQ(testing::difference(plain(f1, f2).data(), F::bilinear(f1, f2, plain.W).data()), "");
  const auto names = [](F::Bilinear copy) {
    std::vector<std::string> all;
    for (const auto& [name, parameter] : copy.named_parameters()) all.push_back(name);
    return all;
  };
  EXPECT_EQ(names(layer), (std::vector<std::string>{"W", "V1", "V2", "b"}));
  EXPECT_EQ(names(plain), (std::vector<std::string>{"W"}));
  EXPECT_EQ(layer.left_size() + 10 * layer.right_size() + 100 * layer.out_size(), 543);
}

TEST_P(BilinearLayer, TakesStartValuesAndRefusesOthers) {
  const DeviceScope scope(device());
  const Array W = draw({2, 3, 4}), V1 = draw({2, 4}), V2 = draw({3, 4}), b = draw({4});
  F::Bilinear layer(2, 3, 4, {.initialW = W, .initial_bias = {V1, V2, b}});
  EXPECT_TRUE(layer.W.data().same_body(W));
  EXPECT_EQ(testing::difference(layer.V2.data(), V2), "");
  EXPECT_EQ(layer.b.dtype(), Dtype::kFloat64);
  EXPECT_EQ(error_of<ShapeError>([&] {
              F::Bilinear(2, 3, 4, {.initial_bias = {V1, V1, b}});
            }),
            "Bilinear: initial_bias.V2 has shape (2, 4), expected (right, out) = (3, 4)");
  EXPECT_THROW(F::Bilinear(2, 3, 4, {.initialW = V1}), ShapeError);
  EXPECT_THROW(F::Bilinear(2, 3, 4, {.nobias = true, .initial_bias = {V1, V2, b}}), ValueError);
  EXPECT_EQ(error_of<ValueError>([] { F::Bilinear(2, 0, 4); }),
            "Bilinear: expected sizes of at least 1, got 2, 0 and 4");
  EXPECT_THROW(F::Bilinear(2, 3, 4, {.dtype = Dtype::kInt32}), DtypeError);
  const F::Bilinear moved = std::move(layer);
  EXPECT_EQ(error_of<ValueError>([&] {
              layer(draw({1, 2}), draw({1, 3}));
            }),
            "Bilinear: this layer has no weights; it was moved from");
}

TEST(BilinearAutocast, BehindALinearLayer) {
  const F::Linear first(3, 4);
  const F::Bilinear second(4, 3, 2);
  const Variable x = Variable::constant(ones({2, 3}, dtype::float32));
  const AutocastScope low(dtype::bfloat16);
  EXPECT_EQ(second(first(x), x).dtype(), dtype::bfloat16);
}

}  // namespace
}  // namespace catena
