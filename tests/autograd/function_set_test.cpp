// Models as sets of named functions: look-up, order, copies of values in and out, moves.
#include "catena/autograd/function_set.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/testing.h"

namespace catena {
namespace {

using Names = std::vector<std::string>;

// Declared in an order that is not that of the alphabet.
struct Norm : Parameterized {
  OwnedParameter gamma{full({3}, 1.0)}, beta{full({3}, 0.0)};
  CATENA_PARAMETERS(gamma, beta)
};
struct Layer : Parameterized {
  OwnedParameter W, b;
  explicit Layer(double value = 0) : W(full({2, 3}, value)), b(full({2}, value)) {}
  CATENA_PARAMETERS(W, b)
};
struct Block : FunctionSet {
  Layer second{2}, first{1};
  CATENA_FUNCTIONS(second, first)
};
struct Net : FunctionSet {
  Norm norm;
  Block block;
  std::vector<Layer> convs{Layer(7), Layer(8)};
  OwnedParameter scale{full({1}, 3.0)};
  FunctionBag bag_;
  CATENA_FUNCTIONS(norm, block, convs, scale, bag_)
};

TEST(FunctionSet, FindsFunctionsByName) {
  Net net;
  EXPECT_EQ(&net["norm"], &net.norm);
  EXPECT_EQ(&net["block"], &net.block);
  EXPECT_EQ(&net["block/first"], &net.block.first);
  EXPECT_EQ(&net.block["second"], &net.block.second);
  EXPECT_EQ(&net["convs/1"], &net.convs[1]);
  net.bag_.add("x", Layer(5));
  EXPECT_EQ(&net["bag/x"], &net.bag_["x"]);
  EXPECT_EQ(&net.get<Norm>("norm"), &net.norm);
  EXPECT_EQ(net.get<Layer>("block/first").W.data().to_vector<double>()[0], 1);
  const Net& read = net;
  EXPECT_EQ(&read["norm"], &net.norm);
  EXPECT_THROW(net.get<Layer>("norm"), ValueError);
  for (const char* name : {"nor", "norms", "norm/gamma", "scale", "block/", "", "convs/2"})
    EXPECT_THROW(net[name], IndexError) << name;
  try {
    net["l7"];
    FAIL();
  } catch (const IndexError& e) {
    EXPECT_STREQ(e.what(),
                 "FunctionSet: no function named 'l7'; there are: norm, block, convs/0, convs/1, "
                 "bag");
  }
}

TEST(FunctionSet, KeepsTheOrderOfDeclarationInsideAFunction) {
  EXPECT_EQ(Norm().parameter_names(), (Names{"gamma", "beta"}));
  Net net;
  EXPECT_EQ(net.parameter_names(),
            (Names{"scale", "block/first/W", "block/first/b", "block/second/W", "block/second/b",
                   "convs/0/W", "convs/0/b", "convs/1/W", "convs/1/b", "norm/gamma", "norm/beta"}));
  const Parameters parameters = net.parameters();
  ASSERT_EQ(parameters.size(), net.parameter_names().size());
  EXPECT_TRUE(parameters[0] == net.scale);
  EXPECT_TRUE(parameters[9] == net.norm.gamma);
  EXPECT_TRUE(parameters[10] == net.norm.beta);
}

TEST(FunctionSet, TakesValuesAndGradientsInOrder) {
  Norm norm;
  const Parameter seat = norm.gamma;
  norm.set_parameters({full({3}, 5.0), array({1.0, 2.0, 3.0}, cpu(1))});
  EXPECT_EQ(seat.data().to_vector<double>(), (std::vector<double>{5, 5, 5})) << "in place";
  EXPECT_EQ(norm.beta.data().to_vector<double>(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(norm.beta.device(), cpu(0));
  norm.set_gradients({ones({3}), full({3}, 4.0)});
  EXPECT_EQ(norm.gradients()[0].to_vector<double>(), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(norm.beta.grad().to_vector<double>(), (std::vector<double>{4, 4, 4}));

  EXPECT_THROW(norm.set_parameters({ones({3})}), ValueError);
  EXPECT_THROW(norm.set_parameters({zeros({3}), ones({2})}), ShapeError);
  EXPECT_THROW(norm.set_parameters({zeros({3}), Array()}), ValueError);
  EXPECT_THROW(norm.set_gradients({zeros({3}), ones({3}, Dtype::kFloat32)}), DtypeError);
  EXPECT_EQ(seat.data().to_vector<double>()[0], 5) << "nothing was written";
  EXPECT_EQ(norm.gamma.grad().to_vector<double>()[0], 1);
}

TEST(FunctionSet, CollectsParametersWithTheirGradients) {
  Net net;
  const auto [parameters, gradients] = net.collect_parameters();
  ASSERT_EQ(parameters.size(), 11u);
  ASSERT_EQ(gradients.size(), 11u);
  EXPECT_TRUE(parameters[0] == net.scale);
  EXPECT_TRUE(parameters[10] == net.norm.beta);
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(parameters[i] == net.parameters()[i]) << i;
    EXPECT_TRUE(gradients[i].same_body(parameters[i].grad())) << i;
  }
  net.block.first.b.set_grad(full({2}, 6.0));
  EXPECT_EQ(gradients[2].to_vector<double>(), (std::vector<double>{6, 6})) << "not a copy";
}

TEST(FunctionSet, MovesAndReturnsItself) {
  for (const Device device : testing::devices()) {
    Net net;
    EXPECT_EQ(&net.to(device), &net);
    EXPECT_EQ(net.device(), device);
    EXPECT_EQ(net.norm.beta.grad().device(), device);
    EXPECT_EQ(&net.to_cpu(), &net);
    EXPECT_EQ(net.device(), device.is_cpu() ? device : cpu(0));
    EXPECT_EQ(net.to_cpu(2).device(), cpu(2));
  }
  Net net;
  if (device_count(DeviceType::kCuda) == 0) {
    EXPECT_THROW(net.to_gpu(), DeviceError);
    EXPECT_THROW(net.to_gpu(0), DeviceError);
    EXPECT_EQ(net.device(), cpu(0)) << "where it was";
    return;
  }
  const Device last = cuda_device(device_count(DeviceType::kCuda) - 1);
  EXPECT_EQ(net.to_gpu().device(), cuda_device(0)) << "while a CPU is current";
  const DeviceScope scope(last);
  EXPECT_EQ(net.to_gpu().device(), last);
  EXPECT_EQ(net.to_gpu(0).device(), cuda_device(0));
}

// The first parameter has the dtype, a later one not.
TEST(FunctionSet, CopiesOfOtherDtypesWriteNothing) {
  Layer layer(1), source(2);
  source.b = OwnedParameter(full({2}, 2.0, dtype::float32));
  EXPECT_THROW(layer.copy_parameters_from(source.parameters()), DtypeError);
  EXPECT_THROW(layer.copy_parameters_from(source), DtypeError);
  const Arrays values{full({2, 3}, 2.0, dtype::float64), full({2}, 2.0, dtype::float32)};
  EXPECT_THROW(layer.set_parameters(values), DtypeError);
  EXPECT_THROW(layer.set_gradients(values), DtypeError);
  EXPECT_EQ(layer.W.data().to_vector<double>(), std::vector<double>(6, 1));
  EXPECT_FALSE(layer.W.state()->has_gradient());
}

}  // namespace
}  // namespace catena
