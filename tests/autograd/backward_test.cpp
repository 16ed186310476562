// The engine on hand-made nodes: order, accumulation, several outputs, release, overwritten inputs.
#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/resource.h>

#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "autograd/product.h"
#include "catena/array/logic.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/function_set.h"
#include "catena/autograd/parameter.h"
#include "catena/core/memory.h"
#include "error_text.h"

namespace catena {
namespace {

using testing::mul;
using testing::number;
using testing::value;

TEST(Backward, FollowsTheChainRule) {
  const Variable x(number(3)), y(number(4));
  const Variable z = mul(mul(x, y), x);  // x^2 y
  z.backward();
  EXPECT_EQ(value(x.grad()), 24);
  EXPECT_EQ(value(y.grad()), 9);
}

TEST(Backward, AssignsRootsAndDropsIntermediates) {
  const Variable x(number(3));
  const Variable h = mul(x, x), z = mul(h, h);
  z.backward();
  EXPECT_EQ(value(x.grad()), 108);
  EXPECT_FALSE(h.grad().defined());
  z.backward(true);
  EXPECT_EQ(value(x.grad()), 108);  // assigned, not accumulated
  EXPECT_EQ(value(h.grad()), 18);   // retain_grad
  z.backward({.create_graph = true});
  EXPECT_FALSE(h.grad().defined());
  z.backward({.retain_grad = true});
  EXPECT_EQ(value(h.grad()), 18);
  EXPECT_EQ(value(z.grad()), 1);  // of the start it stays
}

TEST(Backward, ParametersAccumulateUntilZeroGrads) {
  const Parameter w(number(2));
  const Variable x(number(5));
  mul(w, x).backward();
  mul(w, x).backward();
  EXPECT_EQ(value(w.grad()), 10);
  w.zero_grad();
  EXPECT_EQ(value(w.grad()), 0);
  w.zero_grad();
  mul(mul(w, x), w).backward();  // used twice
  EXPECT_EQ(value(w.grad()), 20);
}

TEST(Backward, SecondOrder) {
  const Variable x(number(3));
  const Variable z = mul(mul(x, x), x);  // x^3
  z.backward({});
  z.backward({.create_graph = true});
  const Variable g = x.grad_variable();
  EXPECT_EQ(value(g.data()), 27);
  g.backward();
  EXPECT_EQ(value(x.grad()), 18);  // 6 x
}

TEST(Backward, NeedsAGradientForLargeStarts) {
  const Variable x(ones({2}));
  const Variable y = mul(x, x);
  EXPECT_THROW(y.backward(), GradientError);
  y.set_grad(full({2}, 2.0));
  y.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{4, 4}));
}

// Several outputs -------------------------------------------------------------------------------

// Two results that share a parameter and a part of the graph.
struct Shared {
  const Parameter w{full({2}, 3.0)};
  const Variable x{full({2}, 5.0)};
  const Variable h = mul(w, x), y = mul(h, h), z = mul(h, w);
};
std::vector<double> values(const Array& a) { return a.to_vector<double>(); }

TEST(SeveralOutputs, GiveTheSumOfSeparatePasses) {
  const Array gy = full({2}, 0.5), gz = full({2}, 7.0);
  const Shared apart, together;
  apart.y.set_grad(gy);
  apart.y.backward();
  const Array from_y = apart.x.grad();
  apart.z.set_grad(gz);
  apart.z.backward();
  const Array expected = apart.x.grad() + from_y;  // of variables they are assigned

  backward({together.y, together.z}, {gy, gz});
  EXPECT_EQ(values(together.x.grad()), values(expected));
  EXPECT_EQ(values(together.w.grad()), values(apart.w.grad()));
  EXPECT_EQ(values(gy), values(full({2}, 0.5)));  // what was given is left alone
  for (const Variable& v : {together.y, together.z, together.h}) EXPECT_FALSE(v.grad().defined());
  backward({together.y, together.z}, {gy, gz}, {.retain_grad = true});
  EXPECT_EQ(values(together.h.grad()), std::vector<double>(2, 0.5 * 2 * 15 + 7 * 3));
  EXPECT_EQ(values(together.y.grad()), values(gy));
  EXPECT_EQ(values(together.w.grad()), values(apart.w.grad() * 2.0));  // of parameters they add up
}

// Each shared node runs once: its backward is called once, with the sum.
TEST(SeveralOutputs, VisitWhatTheyShareOnce) {
  struct Count : FunctionNode {
    explicit Count(int& calls) : calls(calls) {}
    int& calls;
    std::string label() const override { return "Count"; }
    void backward(BackwardContext& c) override {
      ++calls;
      c.set_grad(0, c.grad_output());
    }
  };
  int calls = 0;
  const Variable x(number(2));
  const Variable* const in[] = {&x};
  const Variable h = (new Count(calls))->connect(in, number(2));
  backward({mul(h, h), mul(h, h), h});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(value(x.grad()), 4 + 4 + 1);
}

TEST(SeveralOutputs, MayBeBehindEachOtherListedTwiceAndRoots) {
  const Variable x(number(3));
  const Variable h = mul(x, x), z = mul(h, h);
  backward({z, h, h}, {Array(), number(10), Array()});
  EXPECT_EQ(value(x.grad()), 108 + 60 + 6);
  backward({h, z});  // what was left from before does not count
  EXPECT_EQ(value(x.grad()), 6 + 108);
  backward({x, h}, {number(0.5), Array()});
  EXPECT_EQ(value(x.grad()), 6.5);
  const Parameter w(number(2));
  backward({w, mul(w, x), w});
  EXPECT_EQ(value(w.grad()), 1 + 3 + 1);
}

TEST(SeveralOutputs, AreDifferentiable) {
  const Variable x(number(3));
  const Variable h = mul(x, x), z = mul(h, x);
  backward({z, h, h}, {number(2), Array(), Array()}, {.create_graph = true});  // 2 x^3 + 2 x^2
  const Variable slope = x.grad_variable();
  EXPECT_EQ(value(slope.data()), 6 * 9 + 4 * 3);
  slope.backward();
  EXPECT_EQ(value(x.grad()), 12 * 3 + 4);
}

template <class E>
void expect_refused(const Variables& outputs, const Arrays& gradients, const char* why) {
  expect_contains(error_of<E>([&] { backward(outputs, gradients); }), {"backward: ", why});
}

TEST(SeveralOutputs, AreCheckedBeforeAnythingIsWritten) {
  const Shared s;
  const Array g = ones({2});
  const Variable off(number(1), Volatile::on), constant = Variable::constant(number(1));
  expect_refused<ValueError>({}, {}, "no outputs");
  expect_refused<ValueError>({s.y, s.z}, {g}, "2 outputs came with 1 gradients");
  expect_refused<ValueError>({s.y, Variable()}, {g, g}, "output 1 is undefined");
  expect_refused<GradientError>({s.y, s.z}, {g, Array()},
                                "output 1, of shape (2,), needs a gradient to start from; give");
  expect_refused<ShapeError>({s.y, s.z}, {g, ones({3})}, "gradient 1 has shape (3,)");
  expect_refused<DtypeError>({s.y, s.z}, {g, ones({2}, dtype::float32)}, "gradient 1 is float32");
  expect_refused<DeviceError>({s.y, s.z}, {g, ones({2}, cpu(1))}, "gradient 1 is on cpu:1");
  expect_refused<GradientError>({s.y, off}, {g, Array()}, "output 1 is volatile");
  expect_refused<GradientError>({s.y, constant}, {g, Array()}, "nothing was recorded for output 1");
  EXPECT_FALSE(s.x.grad().defined());
  EXPECT_FALSE(s.w.state()->has_gradient());
}

TEST(Volatile, RecordsNothingAndDoesNotMix) {
  const Variable v(number(2), Volatile::on), x(number(3));
  EXPECT_EQ(mul(v, v).creator(), nullptr);
  EXPECT_TRUE(mul(v, v).is_volatile());
  EXPECT_THROW(mul(v, x), GradientError);
  const Parameter w(number(4));
  EXPECT_EQ(mul(v, w).creator(), nullptr);  // parameters may be used with volatile inputs
  const std::string text = error_of<GradientError>([&] { mul(v, v).backward(); });
  EXPECT_NE(text.find("backward: this variable is volatile"), std::string::npos) << text;
  EXPECT_THROW(v.backward(), GradientError);
  NoBackprop off;
  EXPECT_EQ(mul(x, x).creator(), nullptr);
}

TEST(Volatile, BackwardOfWhatWasNotRecordedIsAnError) {
  const Variable x(number(3)), c = Variable::constant(number(2));
  Variable y;
  {
    NoBackprop off;
    y = mul(x, x);
  }
  const std::string text = error_of<GradientError>([&] { y.backward(); });
  EXPECT_NE(text.find("nothing was recorded"), std::string::npos) << text;
  EXPECT_NE(text.find("NoBackprop"), std::string::npos) << text;
  EXPECT_THROW(mul(c, c).backward(), GradientError);
  EXPECT_THROW(c.backward(), GradientError);
  EXPECT_NO_THROW(x.backward());  // a root
  EXPECT_NO_THROW(mul(x, c).backward());
}

TEST(Constants, GetNoGradient) {
  const Variable c = Variable::constant(number(2)), x(number(3));
  EXPECT_EQ(mul(c, c).creator(), nullptr);
  mul(c, x).backward();
  EXPECT_FALSE(c.grad().defined());
  EXPECT_EQ(value(x.grad()), 2);
}

TEST(SavedArrays, OverwritingIsAnErrorThatNamesTheFunction) {
  const Variable x(ones({2, 3}));
  const Variable y = mul(x, x);
  y.set_grad(ones({2, 3}));
  x.data() += 1.0;
  try {
    y.backward();
    FAIL();
  } catch (const GradientError& e) {
    EXPECT_NE(std::string(e.what()).find("Product"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("(2, 3)"), std::string::npos) << e.what();
  }
}

TEST(SavedArrays, EveryWriteInPlaceIsNoticed) {
  const std::vector<std::function<void(Array&)>> writes = {[](Array& a) { a += 1.0; },
                                                           [](Array& a) { a -= 1.0; },
                                                           [](Array& a) { a *= 2.0; },
                                                           [](Array& a) { a /= 2.0; },
                                                           [](Array& a) { a %= 2.0; },
                                                           [](Array& a) { a.fill(3); },
                                                           [](Array& a) {
                                                             a.assign(zeros({2, 3}));
                                                           },
                                                           [](Array& a) { a(0).fill(3); },
                                                           [](Array& a) { a(a > 0) += 1.0; },
                                                           [](Array& a) { add(a, 1.0, a); }};
  for (size_t k = 0; k < writes.size(); ++k) {
    const Variable x(ones({2, 3}));
    const Variable y = mul(x, x);
    y.set_grad(ones({2, 3}));
    Array saved = x.data();
    writes[k](saved);
    EXPECT_THROW(y.backward(), GradientError) << "write " << k;
  }
}

TEST(SetGrad, ChecksDtypeShapeDevice) {
  const Variable x(ones({2}));
  EXPECT_THROW(x.set_grad(ones({3})), ShapeError);
  EXPECT_THROW(x.set_grad(ones({2}, dtype::float32)), DtypeError);
  EXPECT_THROW(x.set_grad(ones({2}, cpu(1))), DeviceError);
  EXPECT_NO_THROW(x.set_grad(Array()));
}

TEST(Unchain, MakesARootAndFreesTheHistory) {
  const Variable x(number(2));
  Variable h = mul(x, x);
  const Variable z = mul(h, h);
  h.unchain_backward();
  EXPECT_EQ(h.creator(), nullptr);
  z.backward();
  EXPECT_FALSE(x.grad().defined());
  EXPECT_EQ(value(h.grad()), 8);
}

// 10^6 chained operations on a 512 KiB stack: built, run backward, freed.
void* long_chain(void*) {
  const Variable x(number(1));
  Variable y = x;
  for (int i = 0; i < 1000000; ++i) y = mul(y, x);
  y.backward();
  static double result;
  result = x.grad().item<double>();
  y = Variable();
  return &result;
}

TEST(LongChain, NeedsNoStack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  pthread_attr_setstacksize(&attributes, 2 << 20);  // instrumented frames are larger
#else
  pthread_attr_setstacksize(&attributes, 512 << 10);
#endif
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, long_chain, nullptr), 0);
  void* result = nullptr;
  pthread_join(thread, &result);
  EXPECT_EQ(*static_cast<double*>(result), 1000001.0);
}

TEST(LongChain, UnchainsIteratively) {
  const Variable x(number(1));
  Variable y = x;
  for (int i = 0; i < 200000; ++i) y = mul(y, x);
  y.unchain_backward();
  EXPECT_EQ(y.creator(), nullptr);
}

struct Layer : Parameterized {
  OwnedParameter W, b;
  explicit Layer(double v) : W(full({2}, v)), b(full({1}, -v)) {}
  CATENA_PARAMETERS(W, b)
};
struct Net : FunctionSet {
  Layer l2{2}, l10{10}, l1{1};
  CATENA_FUNCTIONS(l2, l10, l1)
};

TEST(FunctionSet, NamesSortsCopiesMoves) {
  Net net;
  std::vector<std::string> paths;
  for (const auto& [path, p] : net.named_parameters()) paths.push_back(path);
  EXPECT_EQ(paths, (std::vector<std::string>{"l2/W", "l2/b", "l10/W", "l10/b", "l1/W", "l1/b"}));
  EXPECT_EQ(net.parameters()[0].data().to_vector<double>()[0], 1);   // l1 first
  EXPECT_EQ(net.parameters()[2].data().to_vector<double>()[0], 10);  // l10 before l2

  Net copy = net;
  EXPECT_FALSE(copy.l1.W == net.l1.W);
  copy.l1.W.data().fill(9);
  EXPECT_EQ(net.l1.W.data().to_vector<double>()[0], 1);
  net.copy_parameters_from(copy);
  EXPECT_EQ(net.l1.W.data().to_vector<double>()[0], 9);
  const Parameter kept = copy.l1.W;
  Net moved = std::move(copy);
  EXPECT_TRUE(moved.l1.W == kept);
  Net target;
  const Parameter seat = target.l1.W;
  target = moved;  // writes into the existing parameters
  EXPECT_TRUE(target.l1.W == seat);
  EXPECT_EQ(seat.data().to_vector<double>()[0], 9);
  EXPECT_EQ(net.parameter_count(), 9);
}

// Messages say where a model has the parameter, before an optimizer names it as well.
TEST(FunctionSet, ErrorsNameTheParameter) {
  Net net;
  const std::string alone = error_of<ShapeError>([&] { net.l1.W.copy_from(ones({7})); });
  EXPECT_NE(alone.find("copy_from: the parameter (no model has listed it yet)"), std::string::npos)
      << alone;
  net.l1.named_parameters();
  EXPECT_EQ(path_of(*net.l1.W.state()), "W");
  net.zero_grads();
  EXPECT_EQ(path_of(*net.l1.W.state()), "l1/W");
  net.l1.named_parameters();  // a part of the path does not replace it
  const std::string text = error_of<ShapeError>([&] { net.l1.W.copy_from(ones({7})); });
  EXPECT_NE(text.find("copy_from: parameter 'l1/W'"), std::string::npos) << text;
  Parameters other = net.parameters();
  other[0] = Parameter(ones({7}));
  const std::string list = error_of<ShapeError>([&] { net.copy_parameters_from(other); });
  EXPECT_NE(list.find("parameter 0 ('l1/W')"), std::string::npos) << list;
}

TEST(FunctionSet, ToCpuLeavesCpuDevicesAlone) {
  Net net;
  net.to("cpu:3");
  net.to_cpu();  // as Array::to_cpu
  EXPECT_EQ(net.device(), cpu(3));
  net.to_cpu(1);
  EXPECT_EQ(net.device(), cpu(1));
  EXPECT_EQ(ones({1}, "cpu:1").to_cpu().device(), cpu(1));
}

TEST(FunctionSet, MovesBetweenDevices) {
  Net net;
  net.to("cpu:3");
  EXPECT_EQ(net.device(), cpu(3));
  net.l1.W.to(cpu(0));
  EXPECT_THROW(net.device(), DeviceError);
}

TEST(FunctionBag, FindsByName) {
  FunctionBag bag;
  bag.add("l1", Layer(1));
  bag.add("inner", FunctionBag()).add("x", Layer(3));
  EXPECT_EQ(bag.named_parameters().size(), 4u);
  EXPECT_EQ(bag.named_parameters()[2].first, "inner/x/W");
  EXPECT_THROW(bag["l7"], IndexError);
  EXPECT_THROW(bag.add("l1", Layer(2)), ValueError);
  EXPECT_THROW(bag.get<Net>("l1"), ValueError);
  FunctionBag copy = bag;
  copy.get<Layer>("l1").W.data().fill(5);
  EXPECT_EQ(bag.get<Layer>("l1").W.data().to_vector<double>()[0], 1);
}

TEST(Backward, WithoutCreatorNothingHappens) {
  const Variable x(ones({2, 3}));
  EXPECT_NO_THROW(x.backward());  // no gradient is asked for either
  EXPECT_FALSE(x.grad().defined());
  x.set_grad(full({2, 3}, 2.0));
  x.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), std::vector<double>(6, 2.0));
}

TEST(Variable, PrintsAndGivesItsElement) {
  std::ostringstream text;
  text << Variable(array({1.5f, 2.f})) << ' ' << Variable(array(2.5)) << ' '
       << Parameter(ones({2}));
  EXPECT_EQ(text.str(), "Variable([1.5, 2. ], dtype=float32) Variable(2.5) Variable([1., 1.])");
  EXPECT_EQ(Variable(array(2.5)).item<double>(), 2.5);
  EXPECT_EQ(Variable(array({2.5f})).item().to_double(), 2.5);
  EXPECT_THROW(Variable(ones({2})).item(), ShapeError);
}

// Gradients of the user ---------------------------------------------------------------------------

// Hands on what it gets: as it is, as a view of another shape, and repeated.
struct Hand : FunctionNode {
  std::string label() const override { return "Hand"; }
  void backward(BackwardContext& c) override {
    for (size_t i = 0; i < inputs().size(); ++i) {
      const Array g = c.grad_output().data();
      const Shape& shape = inputs()[i]->shape;
      c.set_grad(int(i),
                 g.size() == element_count(shape) ? g.reshape(shape) : g.broadcast_to(shape));
    }
  }
  static Variable on(const Variables& in, const Shape& shape) {
    FunctionCall call("Hand", Autocast::kNone, in);
    return call.record(zeros(shape), [] { return make_node<Hand>(); });
  }
};

TEST(GradientsOfTheUser, CanBeWrittenTo) {
  const Variable x(ones({2, 3}));
  Hand::on({x}, {}).backward();
  x.grad() *= 2.0;
  EXPECT_EQ(values(x.grad()), std::vector<double>(6, 2));
  Hand::on({x}, {}).backward({.create_graph = true});
  x.grad() *= 2.0;
  EXPECT_EQ(values(x.grad()), std::vector<double>(6, 2));
}

TEST(GradientsOfTheUser, ShareNoMemory) {
  for (const bool retain_grad : {false, true}) {
    const Variable x(ones({2, 3})), y(ones({2, 3}));
    const Variable h = Hand::on({x, y}, {6}), z = Hand::on({h}, {3, 2});
    const Array given = ones({3, 2});
    z.set_grad(given);
    z.backward({.retain_grad = retain_grad});
    Arrays all{x.grad(), y.grad(), z.grad(), given};
    if (retain_grad) all.push_back(h.grad());
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] *= 2.0;
      for (size_t k = 0; k < all.size(); ++k)
        EXPECT_EQ(values(all[k]), std::vector<double>(6, k <= i ? 2 : 1)) << i << " and " << k;
    }
  }
  const Variable x(ones({2}));
  const Array given = ones({2});
  backward({x}, {given});
  x.grad() *= 2.0;
  EXPECT_EQ(values(given), std::vector<double>(2, 1));
}

// The memory of one gradient is not copied.
TEST(GradientsOfTheUser, AreNotCopiedWithoutNeed) {
  const Variable x(ones({64}));
  const Variable z = mul(mul(x, x), x);
  z.set_grad(ones({64}));
  const auto allocations = [&] {
    const uint64_t before = memory_statistics(cpu(0)).allocations;
    z.backward();
    return memory_statistics(cpu(0)).allocations - before;
  };
  const uint64_t first = allocations();
  EXPECT_EQ(first, allocations());
  EXPECT_EQ(first, 4u) << "a product for each use";
  const uint64_t before = memory_statistics(cpu(0)).allocations;
  static_cast<void>(x.grad());
  EXPECT_EQ(memory_statistics(cpu(0)).allocations, before);
  // Nobody has asked for these.
  const Variable h = Hand::on({x, x}, {64});
  h.set_grad(ones({64}));
  const uint64_t passed = memory_statistics(cpu(0)).allocations;
  h.backward();
  EXPECT_EQ(memory_statistics(cpu(0)).allocations, passed + 1) << "the sum of two";
}

TEST(GradientsOfTheUser, OfHigherOrderGoWithTheVariables) {
  const auto in_use = [] { return memory_statistics(cpu(0)).in_use; };
  const size_t before = in_use();
  for (const bool retain_grad : {false, true}) {
    const Variable x(ones({1000})), y(ones({1000}));
    const Parameter w(ones({1000}));
    const Variable h = mul(mul(x, y), w), z = mul(h, mul(h, Variable(ones({1000}))));
    z.set_grad(ones({1000}));
    z.backward({.retain_grad = retain_grad, .create_graph = true});
    EXPECT_TRUE(x.grad_variable().defined());
    EXPECT_TRUE(w.variable().grad_variable().defined());
    EXPECT_EQ(h.grad_variable().defined(), retain_grad);
  }
  EXPECT_EQ(in_use(), before);
  {
    const Variable x(number(3));
    Variable slope;
    {
      const Variable z = mul(mul(x, x), mul(x, x));
      z.backward({.create_graph = true});
      slope = x.grad_variable();
    }
    slope.backward({.create_graph = true});
    EXPECT_EQ(value(x.grad()), 4 * 3 * 9);
    const Variable curvature = x.grad_variable();
    curvature.backward();
    EXPECT_EQ(value(x.grad()), 4 * 3 * 2 * 3);
    EXPECT_FALSE(x.grad_variable().defined());
  }
  EXPECT_EQ(in_use(), before);
}

TEST(GradientsOfTheUser, OfHigherOrderGoWhenThePassFails) {
  struct Failing : FunctionNode {
    std::string label() const override { return "Failing"; }
    void backward(BackwardContext&) override { throw ValueError("on purpose"); }
  };
  const auto in_use = [] { return memory_statistics(cpu(0)).in_use; };
  const size_t before = in_use();
  {
    const Variable x(ones({1000})), a(ones({1000}));
    const Variable* const in[] = {&a};
    const Variable z = mul(mul((new Failing)->connect(in, ones({1000})), x), x);
    z.set_grad(ones({1000}));
    EXPECT_THROW(z.backward({.create_graph = true}), ValueError);
  }
  EXPECT_EQ(in_use(), before);
}

}  // namespace
}  // namespace catena
