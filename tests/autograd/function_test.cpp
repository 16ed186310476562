// Users' Functions through the adapter.
#include "catena/autograd/function.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/config.h"
#include "catena/functions/math.h"
#include "catena/testing.h"

namespace catena {
namespace {

struct Square : Function {
  Arrays forward(const Arrays& x) override { return {x[0] * x[0]}; }
  Arrays backward(const Arrays& x, const Arrays& gy) override { return {2 * x[0] * gy[0]}; }
};

// Two outputs, the second may have no gradient; the second input gets none.
struct SumAndDifference : Function {
  Arrays forward_cpu(const Arrays& x) override { return {x[0] + x[1], x[0] - x[1]}; }
  Arrays forward_gpu(const Arrays& x) override { return forward_cpu(x); }
  Arrays backward_cpu(const Arrays&, const Arrays& gy) override {
    seen_null = !gy[1].defined();
    return {gy[1].defined() ? gy[0] + gy[1] : gy[0], Array()};
  }
  Arrays backward_gpu(const Arrays& x, const Arrays& gy) override { return backward_cpu(x, gy); }
  static inline bool seen_null = false;
};

// Backward returns whatever the test put here.
struct Returns : Function {
  explicit Returns(Arrays values) : gradients(std::move(values)) {}
  Arrays forward(const Arrays& x) override { return {x[0] * 1.0}; }
  Arrays backward(const Arrays&, const Arrays&) override { return gradients; }
  Arrays gradients;
};

struct InPlace : Function {
  Arrays forward(const Arrays& x) override {
    x[0] += 1.0;
    return {x[0]};
  }
};
struct InPlaceBackward : Square {
  Arrays backward(const Arrays&, const Arrays& gy) override {
    gy[0] *= 2.0;
    return {gy[0]};
  }
};
struct Nothing : Function {};

struct Checked : Square {
  void check_type_forward(const TypeInfoTuple& in) const override {
    type_check::expect(in.size() == 1, in[0].ndim() == 2, in[0].dtype().kind() == 'f');
  }
};

template <class T>
struct Templated : Square {};

template <class Exception, class Call>
std::string message_of(Call f) {
  try {
    f();
  } catch (const Exception& e) {
    return e.what();
  }
  ADD_FAILURE() << "no exception of the expected type";
  return {};
}

Array sample() { return array({{1.0, 2.0}, {3.0, 4.0}}); }
void run_backward(const Variable& y) {
  y.set_grad(ones_like(y.data()));
  y.backward();
}

TEST(Function, ForwardAndBackwardOnEveryDevice) {
  for (Device device : testing::devices()) {
    const Variable x(sample().to(device));
    const Variable y = call(Square{}, x);
    EXPECT_EQ(testing::difference(y.data(), x.data() * x.data()), "");
    run_backward(y);
    EXPECT_EQ(testing::difference(x.grad(), x.data() * 2.0), "");
    EXPECT_NO_THROW(check_backward(
        [](const Variables& v) { return Variables{call(Square{}, v[0])}; }, {x.data()}));
  }
}

TEST(Function, RunsOnTheDeviceOfItsInputs) {
  struct Where : Square {
    Arrays forward(const Arrays& x) override {
      return {zeros(x[0].shape())};
    }  // on the current device
  };
  EXPECT_EQ(call(Where{}, Variable(sample().to(cpu(1)))).device(), cpu(1));
}

TEST(Function, SeveralOutputsAndMissingGradients) {
  const Variable x(sample()), z(sample());
  const Variables y = call_multi(SumAndDifference{}, {x, z});
  run_backward(y[0]);
  EXPECT_TRUE(SumAndDifference::seen_null);
  EXPECT_EQ(testing::difference(x.grad(), ones_like(x.data())), "");
  EXPECT_FALSE(z.grad().defined());
  EXPECT_THROW(call(SumAndDifference{}, x, z), GradientError);
}

TEST(Function, LabelsAreClassNames) {
  EXPECT_EQ(Square{}.label(), "Square");
  EXPECT_EQ(Templated<std::vector<int>>{}.label().substr(0, 9), "Templated");
  EXPECT_EQ(call(Square{}, Variable(sample())).creator()->label(), "Square");
}

TEST(Function, VolatileAndNoBackpropRecordNothing) {
  const Variable frozen(sample(), Volatile::on);
  const Variable y = call(Square{}, frozen);
  EXPECT_FALSE(y.creator());
  EXPECT_TRUE(y.is_volatile());
  const NoBackprop off;
  EXPECT_FALSE(call(Square{}, Variable(sample())).creator());
}

TEST(Function, GradientsMustFitTheInputs) {
  const Variable x(sample());
  const auto text = [&](Arrays values) {
    return message_of<Error>([&] { run_backward(call(Returns{std::move(values)}, x)); });
  };
  EXPECT_EQ(text({}),
            "Returns: backward returned 0 gradients for 1 inputs; return one for each, a null "
            "array for none");
  EXPECT_EQ(text({zeros({3})}),
            "Returns: backward returned a gradient of shape (3,) for input 0 of shape (2, 2)");
  EXPECT_EQ(text({zeros({2, 2}, Dtype::kFloat32)}),
            "Returns: backward returned a gradient of dtype float32 for input 0 of dtype float64");
  EXPECT_EQ(text({zeros({2, 2}, {Dtype::kFloat64, cpu(1)})}),
            "Returns: backward returned a gradient on cpu:1 for input 0 on cpu:0");
}

TEST(Function, WritingIntoInputsIsNoticed) {
  EXPECT_NE(message_of<GradientError>([] {
              call(InPlace{}, Variable(sample()));
            }).find("InPlace: forward wrote into input 0"),
            std::string::npos);
  EXPECT_NE(message_of<GradientError>([] {
              run_backward(call(InPlaceBackward{}, Variable(sample())));
            }).find("backward wrote into output gradient 0"),
            std::string::npos);
}

TEST(Function, MissingMethodsAreNamed) {
  EXPECT_EQ(message_of<ValueError>([] { call(Nothing{}, Variable(sample())); }),
            "Nothing: neither forward nor forward_cpu is overridden");
  EXPECT_THROW(call(Square{}, Variable()), ValueError);
}

// A forgotten backward would look like a gradient of zero.
TEST(Function, WithoutBackwardRefusesAGradient) {
  struct OneWay : Function {
    Arrays forward(const Arrays& x) override { return {x[0] * 2}; }
  };
  struct Cut : OneWay {
    Arrays backward(const Arrays& x, const Arrays&) override { return Arrays(x.size()); }
  };
  const Variable x(ones({1}));
  const Variable y = call(OneWay{}, x);
  const std::string text = message_of<GradientError>([&] { y.backward(); });
  EXPECT_EQ(text.find("OneWay: a gradient came to this function, but neither backward nor "
                      "backward_cpu is overridden"),
            0u)
      << text;
  call(Cut{}, x).backward();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Function, CreateGraphNamesTheClass) {
  const Variable x(sample());
  const Variable y = call(Square{}, x);
  y.set_grad(ones_like(y.data()));
  const auto higher = [&] { y.backward({.create_graph = true}); };
  EXPECT_EQ(message_of<GradientError>(higher).find("Square"), 0u);
}

TEST(Function, TypeChecks) {
  const Variable x(array({1.0, 2.0}));
  EXPECT_EQ(message_of<InvalidType>([&] { call(Checked{}, x); }),
            "Invalid operation is performed in: Checked (Forward)\n\nExpect: in_types[0].ndim == "
            "2\nActual: 1 != 2");
  EXPECT_NO_THROW(call(Checked{}, Variable(sample())));
  config().type_check = false;
  EXPECT_NO_THROW(call(Checked{}, x));
  config().type_check = true;
}

// What a function keeps, and backward on variables ------------------------------------------------

// Keeps its second input alone.
struct Times : Function {
  Arrays forward(const Arrays& x) override {
    save({1});
    return {x[0] * x[1]};
  }
  Arrays backward(const Arrays& x, const Arrays& gy) override {
    first_was_kept = x[0].defined();
    return {gy[0] * x[1], Array()};
  }
  static inline bool first_was_kept = true;
};

TEST(Function, KeepsWhatItSaves) {
  const size_t before = memory_statistics(cpu(0)).in_use;
  Variable y;
  {
    const Variable x(full({1000}, 3.0)), w(full({1000}, 2.0));
    y = call(Times{}, x * 1.0, w);
  }
  const size_t bytes = 1000 * sizeof(double);
  EXPECT_LT(memory_statistics(cpu(0)).in_use - before, 3 * bytes);  // w and y
  y.set_grad(ones({1000}));
  y.backward();
  EXPECT_FALSE(Times::first_was_kept);
  const Variable x(full({2}, 3.0)), w(full({2}, 2.0));
  const Variable z = call(Times{}, x, w);
  x.data().fill(7);  // is not needed
  z.set_grad(ones({2}));
  z.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{2, 2}));
}

struct SavesTooMuch : Square {
  Arrays forward(const Arrays& x) override {
    save({0}, {1});
    return {x[0] * x[0]};
  }
};

TEST(Function, SavesWhatThereIs) {
  const Variable x(ones({2}));
  try {
    call(SavesTooMuch{}, x);
    FAIL();
  } catch (const IndexError& e) {
    EXPECT_NE(std::string(e.what()).find("save: output 1 does not exist; there are 1"),
              std::string::npos)
        << e.what();
  }
}

struct Exponential : DifferentiableFunction {
  Arrays forward(const Arrays& x) override {
    save({}, {0});
    return {exp(x[0])};
  }
  Variables gradients(const Saved& saved, const Variables& gy) override {
    EXPECT_FALSE(saved.inputs[0].defined());
    return {functions::identity(gy[0] * saved.outputs[0])};
  }
};

TEST(DifferentiableFunction, IsDifferentiatedTwice) {
  const Array x0 = testing::random_array({3, 2}, -1, 1);
  const auto f = [](const Variables& v) { return Variables{call(Exponential{}, v[0])}; };
  check_backward(f, {x0});
  const Variable x(x0);
  functions::sum(call(Exponential{}, x)).backward({.create_graph = true});
  const Variable g = x.grad_variable();
  functions::sum(g * g).backward();
  // d/dx of exp(x)^2
  assert_allclose(x.grad(), exp(x0 * 2.0) * 2.0, 1e-12, 1e-12);
}

}  // namespace
}  // namespace catena
