// Programs of Chainer's tutorial that are written with functions, parameters and volatile flags.
#include "catena/functions/connection/parameter.h"
#include "catena/autograd/function.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class TutorialModels : public OnDevice {};
CATENA_ON_DEVICES(TutorialModels);

Variable one_layer(const Variable& x, const Parameter& W) { return F::tanh(F::matmul(x, W)); }

TEST_P(TutorialModels, TUT_12_FrozenExtractor) {
  const Parameter fixed(draw({3, 4})), trained(draw({4, 2}, -1, 1, 1));
  const Variable x(draw({5, 3}, -1, 1, 2), Volatile::on);
  const Variable features = one_layer(x, fixed);
  EXPECT_TRUE(features.is_volatile());
  EXPECT_FALSE(features.requires_grad());
  features.set_volatile(Volatile::off);
  EXPECT_FALSE(features.is_volatile());
  EXPECT_TRUE(features.requires_grad());
  EXPECT_EQ(features.creator(), nullptr) << "a root: the extractor was not recorded";

  const Variable loss = F::sum(F::matmul(features, trained) * 2.0);
  loss.backward();
  ASSERT_TRUE(features.grad().defined());
  EXPECT_EQ(features.grad().shape(), (Shape{5, 4}));
  const Array expected = matmul(full({5, 2}, 2.0, device()), trained.data().T());
  EXPECT_EQ(testing::difference(features.grad(), expected, 1e-12), "");
  EXPECT_TRUE(trained.variable().grad().defined());
  EXPECT_FALSE(fixed.variable().grad().defined()) << "backward stops at the features";
  EXPECT_FALSE(x.grad().defined());
}

// Also where no parameter takes part: the result of the extractor alone wants a gradient.
TEST_P(TutorialModels, VolatileSwitchedOffIsRecorded) {
  const Variable x(draw({3}), Volatile::on);
  const Variable y = x * x;
  y.set_volatile(Volatile::off);
  const Variable loss = F::sum(y * y);
  EXPECT_NE(loss.creator(), nullptr);
  loss.backward();
  EXPECT_EQ(testing::difference(y.grad(), y.data() * 2.0, 1e-12), "");
  const Variable again(draw({3}));
  again.set_volatile(Volatile::on);
  EXPECT_EQ((again * 2.0).creator(), nullptr);
  again.set_volatile(Volatile::off);
  F::sum(again * again).backward();
  EXPECT_EQ(testing::difference(again.grad(), again.data() * 2.0, 1e-12), "");
  const Variable labels(zeros({3}, {Dtype::kInt32, device()}), Volatile::on);
  labels.set_volatile(Volatile::off);
  EXPECT_FALSE(labels.requires_grad()) << "integers have no gradient";
  const Variable constant = Variable::constant(draw({3}));
  constant.set_volatile(Volatile::off);
  EXPECT_FALSE(constant.requires_grad()) << "it was never volatile";
}

TEST_P(TutorialModels, TUT_22_ParameterTimesInput) {
  F::Parameter p(draw({4, 3}));
  const Variable x(draw({4, 3}, -1, 1, 1));
  const Variable y = p() * x;
  EXPECT_TRUE(p().data().same_body(p.W.data())) << "the same memory";
  F::sum(y).backward();
  EXPECT_EQ(testing::difference(p.W.grad(), x.data()), "");
  EXPECT_EQ(testing::difference(p.gradients()[0], x.data()), "");
  F::sum(p() * x).backward();
  EXPECT_EQ(testing::difference(p.W.grad(), x.data() * 2.0), "") << "gradients add up";

  const Variable quiet = p(Volatile::on);
  EXPECT_TRUE(quiet.is_volatile());
  EXPECT_TRUE(quiet.data().same_body(p.W.data()));
  EXPECT_EQ((quiet * 2.0).creator(), nullptr);
  const F::Parameter copied = p;
  EXPECT_FALSE(copied.W == p.W);
  EXPECT_THROW(F::Parameter(zeros({2}, Dtype::kInt32)), DtypeError);
  EXPECT_THROW(F::Parameter{Array()}, ValueError);
}

// y = x * w, written on arrays; the parameter is an input of the function.
struct Product : Function {
  Arrays forward(const Arrays& in) override { return {in[0] * in[1]}; }
  Arrays backward(const Arrays& in, const Arrays& gy) override {
    return {gy[0] * in[1], gy[0] * in[0]};
  }
};
struct EltwiseParamProduct : Parameterized {
  OwnedParameter w;
  explicit EltwiseParamProduct(const Array& start) : w(start) {}
  Variable operator()(const Variable& x) const { return call(Product{}, x, w.variable()); }
  CATENA_PARAMETERS(w)
};
struct Model : FunctionSet {
  EltwiseParamProduct product;
  F::Parameter shift;
  explicit Model(const Array& w) : product(w), shift(zeros_like(w)) {}
  Variable operator()(const Variable& x) const { return product(x) + shift(); }
  CATENA_FUNCTIONS(product, shift)
};

TEST_P(TutorialModels, TUT_23_FunctionWithAParameterOfItsOwn) {
  const Array w = draw({2, 3}), x = draw({2, 3}, -1, 1, 1);
  Model model(w.copy());
  EXPECT_EQ(model.parameter_names(), (std::vector<std::string>{"product/w", "shift/W"}));
  const Variable input(x);
  for (int k = 1; k <= 2; ++k) {
    F::sum(model(input)).backward();
    EXPECT_EQ(testing::difference(model.product.w.grad(), x * double(k), 1e-12), "");
  }
  EXPECT_EQ(testing::difference(input.grad(), w), "");
  EXPECT_EQ(&model["product"], &model.product);
  EXPECT_NO_THROW(
      check_backward([](const Variables& v) { return Variables{call(Product{}, v[0], v[1])}; },
                     {x, w}, tolerance(1e-5, 1e-6, 1e-5)));
}

TEST_P(TutorialModels, IdentityOfSeveral) {
  const Variable a(draw({2})), b(draw({3}, -1, 1, 1));
  const Variables same = F::identity(Variables{a, b});
  ASSERT_EQ(same.size(), 2u);
  EXPECT_TRUE(same[0].data().same_body(a.data()));
  F::sum(same[1] * 3.0).backward();
  EXPECT_EQ(testing::difference(b.grad(), full({3}, 3.0, device())), "");
  EXPECT_FALSE(a.grad().defined());
  EXPECT_TRUE(F::identity(Variables{}).empty());
  EXPECT_THROW(F::identity(Variables{a, Variable()}), ValueError);
}

}  // namespace
}  // namespace catena
