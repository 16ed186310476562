// Every function of catena::functions, by its records: gradients of both orders, layouts, dtypes,
// providers and errors. Its values are those of the function oracle (tests/oracle/functions). A
// function without a record is named by the last test. The rows of the element-wise table have a
// suite of their own, math_test.cpp.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "catena/array/manipulation.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/function_node.h"
#include "catena/kernels/slot.h"
#include "functions/function_record.h"

namespace catena {
namespace {

bool takes_gradient(const Array& a) { return is_float(a.dtype()); }

// The call with the inputs that have gradients as its arguments.
struct Bound {
  VariableFunction function;
  Arrays arguments;
};
Bound bind(const FunctionRecord& record, const Arrays& inputs) {
  Bound bound;
  for (const Array& a : inputs) {
    if (takes_gradient(a)) bound.arguments.push_back(a);
  }
  bound.function = [&record, inputs](const Variables& arguments) {
    Variables all;
    size_t next = 0;
    for (const Array& a : inputs)
      all.push_back(takes_gradient(a) ? arguments[next++] : Variable::constant(a));
    return record.call(all);
  };
  return bound;
}

// Gradients of a sum of the results, each weighted by numbers of [0.5, 1).
void run_backward(const Variables& results) {
  Variable total;
  for (const Variable& y : results) {
    const Array weight = random_array(y.shape(), 0.5, 1, y.dtype(), y.device(), 9);
    const Variable part = F::sum(y * Variable::constant(weight));
    total = total.defined() ? total + part : part;
  }
  total.backward();
}

struct Outcome {
  Arrays values, gradients;  // gradients: of the float inputs
};
Outcome outcome(const FunctionRecord& record, const Arrays& inputs) {
  Variables xs, wanted;
  for (const Array& a : inputs) {
    xs.push_back(takes_gradient(a) ? Variable(a) : Variable::constant(a));
    if (takes_gradient(a)) wanted.push_back(xs.back());
  }
  Outcome result;
  const Variables ys = record.call(xs);
  for (const Variable& y : ys) result.values.push_back(y.data());
  if (!record.differentiable) return result;
  run_backward(ys);
  for (const Variable& x : wanted) result.gradients.push_back(x.grad());
  return result;
}

Arrays copies(const Arrays& inputs, Dtype dtype) {
  Arrays result;
  for (const Array& a : inputs)
    result.push_back((takes_gradient(a) ? a.astype(dtype) : a.copy()).contiguous());
  return result;
}

// Gradients, with respect to the inputs and to the gradients of the results, of a sum of the first
// gradients. These and the inputs come as views of any layout; `weigh` makes the gradients of the
// first gradients.
Arrays second_gradients(const FunctionRecord& record, const Arrays& inputs, const Arrays& gys,
                        const std::function<Array(const Array&)>& weigh) {
  Variables xs, wanted, given;
  for (const Array& a : inputs) {
    xs.push_back(takes_gradient(a) ? Variable(a) : Variable::constant(a));
    if (takes_gradient(a)) wanted.push_back(xs.back());
  }
  const Variables ys = record.call(xs);
  for (const Array& gy : gys) given.emplace_back(gy);
  Variable total;
  for (size_t i = 0; i < ys.size(); ++i) {
    const Variable part = F::sum(ys[i] * given[i]);
    total = total.defined() ? total + part : part;
  }
  total.backward({.create_graph = true});
  Variables firsts;
  Arrays weights;
  for (const Variable& x : wanted) {
    if (!x.grad_variable().defined() || !x.grad_variable().requires_grad()) continue;
    firsts.push_back(x.grad_variable());
    weights.push_back(weigh(firsts.back().data()));
  }
  wanted.insert(wanted.end(), given.begin(), given.end());
  for (const Variable& v : wanted) v.set_grad(Array());
  if (!firsts.empty()) backward(firsts, weights);
  Arrays result;
  for (const Variable& v : wanted)
    result.push_back(v.grad().defined() ? v.grad() : zeros_like(v.data()));
  return result;
}

// Gradients of the results, drawn for float64 inputs.
Arrays draw_gradients(const FunctionRecord& record, const Arrays& inputs) {
  Variables xs;
  for (const Array& a : inputs) xs.push_back(Variable::constant(a));
  Arrays gys;
  for (const Variable& y : record.call(xs))
    gys.push_back(random_array(y.shape(), 0.5, 1, y.dtype(), y.device(), 9));
  return gys;
}

void expect_close(const Arrays& got, const Arrays& expected, double error) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].shape(), expected[i].shape()) << "array " << i;
    EXPECT_NO_THROW(assert_allclose(got[i], expected[i], error, error)) << "array " << i;
  }
}

// (n, channels, ...) with the channels side by side in memory.
Array channels_last_layout(const Array& a) {
  if (a.ndim() < 3) return a;
  Axes order{0}, inverse{0, a.ndim() - 1};
  for (int i = 2; i < a.ndim(); ++i) {
    order.push_back(i);
    inverse.push_back(i - 1);
  }
  order.push_back(1);
  return a.transpose(order).copy().transpose(inverse);
}
// One row for all, as a view in which the rows share their memory.
Array repeated_rows(const Array& a) {
  if (a.ndim() == 0 || a.size() == 0) return a;
  return broadcast_to(a(Slice(0, 1)), a.shape());
}
struct Layout {
  const char* name;
  Array (*of)(const Array&);
};
const Layout kLayouts[] = {
    {"every second element", padded},      {"axes in reverse order", transposed_layout},
    {"negative strides", reversed_layout}, {"channels last", channels_last_layout},
    {"repeated rows", repeated_rows},
};
Arrays in_layout(const Layout& layout, const Arrays& inputs) {
  Arrays result;
  for (const Array& a : inputs) result.push_back(layout.of(a));
  return result;
}

// The rules under which each provider that is there gets its turn: all of them, and those of each
// companion plug-in switched off.
std::vector<std::string> provider_rules(DeviceType type) {
  std::set<std::string> rules{""};
  for (const SlotBase* slot : all_slots()) {
    for (const ProviderInfo& provider : slot->providers(type)) {
      if (provider.name == "onednn" || provider.name == "cudnn")
        rules.insert(provider.name + ":off");
    }
  }
  return {rules.begin(), rules.end()};
}

struct Case {
  Device device;
  const FunctionRecord* record;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Device device : testing::devices()) {
    for (const FunctionRecord& record : all_function_records()) all.push_back({device, &record});
  }
  return all;
}
std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.device.name() + "_" + info.param.record->name();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}
void PrintTo(const Case& c, std::ostream* os) { *os << c.record->name(); }

class Functions : public ::testing::TestWithParam<Case> {
 protected:
  const FunctionRecord& record() const { return *GetParam().record; }
  Draw draw() const { return Draw(GetParam().device); }
  // Runs a test with each of the record's lists of shapes.
  template <class Test>
  void for_each_input(Test test, Dtype dtype = Dtype::kFloat64) const {
    for (const Shapes& shapes : record().shapes) {
      const Arrays inputs = record().inputs(shapes, draw(), dtype);
      SCOPED_TRACE(shapes.empty() ? "no input" : message("first input of shape ", shapes[0]));
      test(inputs);
    }
  }
};

// Whether the function computes the same of these inputs as of their copies in C order.
bool equals_copies(const FunctionRecord& record, const Arrays& inputs) {
  return !record.follows_memory_order ||
         std::all_of(inputs.begin(), inputs.end(),
                     [](const Array& a) { return a.order().is_c() || !a.is_dense(); });
}

TEST_P(Functions, HaveTheGradientsOfBothOrders) {
  if (!record().differentiable) return;
  for_each_input([&](const Arrays& inputs) {
    const Bound bound = bind(record(), inputs);
    if (record().twice_differentiable)
      expect_gradients(bound.function, bound.arguments);
    else
      EXPECT_NO_THROW(check_backward(bound.function, bound.arguments, tolerance(1e-5, 1e-6, 1e-5)));
  });
}

TEST_P(Functions, HaveTheSameValuesAndGradientsInEveryLayout) {
  for_each_input([&](const Arrays& inputs) {
    for (const Layout& layout : kLayouts) {
      SCOPED_TRACE(layout.name);
      const Arrays views = in_layout(layout, inputs);
      if (!equals_copies(record(), views)) continue;
      const Outcome got = outcome(record(), views),
                    expected = outcome(record(), copies(views, Dtype::kFloat64));
      expect_close(got.values, expected.values, 1e-10);
      expect_close(got.gradients, expected.gradients, 1e-10);
    }
  });
}

// HaveTheGradientsOfBothOrders compares those of contiguous arrays with numbers.
TEST_P(Functions, HaveTheSameSecondGradientsInEveryLayout) {
  if (!record().differentiable || !record().twice_differentiable) return;
  for_each_input([&](const Arrays& inputs) {
    for (const Layout& layout : kLayouts) {
      SCOPED_TRACE(layout.name);
      const Arrays views = in_layout(layout, inputs),
                   gys = in_layout(layout, draw_gradients(record(), inputs));
      if (!equals_copies(record(), views)) continue;
      const auto weights = [&](const Array& like) {
        return layout.of(random_array(like.shape(), -1, 1, like.dtype(), like.device(), 11));
      };
      expect_close(
          second_gradients(record(), views, gys, weights),
          second_gradients(record(), copies(views, Dtype::kFloat64), copies(gys, Dtype::kFloat64),
                           [&](const Array& like) { return weights(like).contiguous(); }),
          1e-10);
    }
  });
}

TEST_P(Functions, AgreeWithDoubleInEveryDtypeAndProvider) {
  const std::pair<Dtype, double> dtypes[] = {
      {Dtype::kFloat32, 1}, {Dtype::kFloat16, 500}, {Dtype::kBFloat16, 4000}};
  for (const std::string& rules : provider_rules(GetParam().device.type())) {
    SCOPED_TRACE(rules);
    const ProviderScope scope(rules);
    for (const auto& [dtype, factor] : dtypes) {
      SCOPED_TRACE(dtype);
      const double error = record().error * factor;
      for_each_input(
          [&](const Arrays& inputs) {
            const Outcome narrow = outcome(record(), inputs),
                          wide = outcome(record(), copies(inputs, Dtype::kFloat64));
            for (const Array& y : narrow.values)
              EXPECT_EQ(y.dtype(), record().result_dtype.value_or(dtype));
            const Arrays wanted = bind(record(), inputs).arguments;
            for (size_t i = 0; i < narrow.gradients.size(); ++i)
              EXPECT_EQ(narrow.gradients[i].dtype(), wanted[i].dtype());
            expect_close(narrow.values, wide.values, error);
            expect_close(narrow.gradients, wide.gradients, error);
          },
          dtype);
    }
  }
}

// Kernels write straight into the gradients of parameters: over what is there after zero_grad, else
// on top of it.
TEST_P(Functions, AddToTheGradientsOfParameters) {
  if (!record().differentiable) return;
  for_each_input([&](const Arrays& inputs) {
    const Arrays expected = outcome(record(), inputs).gradients;
    const Bound bound = bind(record(), inputs);
    std::vector<Parameter> parameters;
    Variables arguments;
    for (const Array& a : bound.arguments) {
      parameters.emplace_back(a.copy());
      arguments.push_back(parameters.back().variable());
    }
    for (int times = 1; times <= 2; ++times) {
      run_backward(bound.function(arguments));
      for (size_t i = 0; i < parameters.size(); ++i) {
        const Array& g = parameters[i].grad();
        EXPECT_NO_THROW(assert_allclose(g, expected[i] * double(times), 1e-10, 1e-10));
      }
    }
    for (const Parameter& p : parameters) {
      p.grad().fill(99.0);
      p.zero_grad();
    }
    run_backward(bound.function(arguments));
    for (size_t i = 0; i < parameters.size(); ++i)
      EXPECT_NO_THROW(assert_allclose(parameters[i].grad(), expected[i], 1e-10, 1e-10));
  });
}

// The gradients of the inputs that are wanted, from the results that have one.
Arrays gradients_of(const FunctionRecord& record, const Arrays& inputs, const Arrays& gys,
                    const std::function<bool(size_t)>& wanted, bool create_graph = false) {
  Variables xs, roots;
  Arrays starts, result;
  for (size_t i = 0; i < inputs.size(); ++i)
    xs.push_back(takes_gradient(inputs[i]) && wanted(i) ? Variable(inputs[i])
                                                        : Variable::constant(inputs[i]));
  const Variables ys = record.call(xs);
  for (size_t i = 0; i < ys.size(); ++i) {
    if (!gys[i].defined() || !ys[i].requires_grad()) continue;
    roots.push_back(ys[i]);
    starts.push_back(gys[i]);
  }
  if (!roots.empty()) backward(roots, starts, {.create_graph = create_graph});
  for (const Variable& x : xs)
    if (x.requires_grad()) result.push_back(x.grad().defined() ? x.grad() : zeros_like(x.data()));
  return result;
}

TEST_P(Functions, GiveEachOperandItsGradientAlone) {
  if (!record().differentiable) return;
  const Arrays inputs = record().inputs(record().shapes[0], draw()),
               gys = draw_gradients(record(), inputs);
  for (int create_graph = 0; create_graph <= record().twice_differentiable; ++create_graph) {
    const auto of = [&](const std::function<bool(size_t)>& wanted) {
      return gradients_of(record(), inputs, gys, wanted, create_graph);
    };
    const Arrays all = of([](size_t) { return true; });
    size_t next = 0;
    for (size_t wanted = 0; wanted < inputs.size(); ++wanted) {
      if (!takes_gradient(inputs[wanted])) continue;
      SCOPED_TRACE(message("input ", wanted, create_graph ? ", recorded" : ""));
      expect_close(of([&](size_t input) { return input == wanted; }), {all[next++]}, 1e-12);
    }
  }
}

// A gradient that nobody gives counts as 0.
TEST_P(Functions, GoBackFromEachResultAlone) {
  if (!record().differentiable) return;
  const Arrays inputs = record().inputs(record().shapes[0], draw()),
               gys = draw_gradients(record(), inputs);
  const auto all = [](size_t) { return true; };
  for (size_t i = 0; i < gys.size() && gys.size() > 1; ++i) {
    SCOPED_TRACE(message("result ", i));
    Arrays alone(gys.size()), beside_zeros;
    alone[i] = gys[i];
    for (const Array& gy : gys) beside_zeros.push_back(zeros_like(gy));
    beside_zeros[i] = gys[i];
    for (int create_graph = 0; create_graph <= record().twice_differentiable; ++create_graph)
      expect_close(gradients_of(record(), inputs, alone, all, create_graph),
                   gradients_of(record(), inputs, beside_zeros, all, create_graph), 1e-12);
  }
}

// One parameter may be two operands; its gradient is the sum of theirs.
TEST_P(Functions, TakeOneParameterAsTwoOperands) {
  if (!record().differentiable) return;
  const auto range = [&](size_t i) {
    return i < record().ranges.size() ? record().ranges[i] : InputRange();
  };
  for_each_input([&](const Arrays& inputs) {
    const Arrays gys = draw_gradients(record(), inputs);
    for (size_t second = 1; second < inputs.size(); ++second)
      for (size_t first = 0; first < second; ++first) {
        const Array &a = inputs[first], &b = inputs[second];
        if (!takes_gradient(a) || !takes_gradient(b) || a.shape() != b.shape()) continue;
        const double low = std::max(range(first).low, range(second).low),
                     high = std::min(range(first).high, range(second).high);
        if (low >= high) continue;
        SCOPED_TRACE(message("inputs ", first, " and ", second));
        const Array value = draw()(a.shape(), low, high, 5);
        const Parameter both(value.copy()), one(value.copy()), other(value.copy());
        const auto run = [&](const Parameter& x, const Parameter& y) {
          Variables xs;
          for (const Array& input : inputs) xs.push_back(Variable::constant(input));
          xs[first] = x.variable(), xs[second] = y.variable();
          x.zero_grad();
          y.zero_grad();
          backward(record().call(xs), gys);
        };
        run(both, both);
        run(one, other);
        EXPECT_NO_THROW(assert_allclose(both.grad(), one.grad() + other.grad(), 1e-12, 1e-12));
      }
  });
}

// What is written before the backward pass is noticed, unless it changes no gradient.
TEST_P(Functions, NoticeWhatIsWrittenBeforeBackward) {
  if (!record().differentiable) return;
  const Arrays inputs = record().inputs(record().shapes[0], draw()),
               gys = draw_gradients(record(), inputs);
  const Arrays expected = gradients_of(record(), inputs, gys, [](size_t) { return true; });
  const auto expect_noticed =
      [&](const std::function<void(const Arrays&, const Variables&)>& write) {
        const Arrays own = copies(inputs, Dtype::kFloat64);
        Variables xs;
        for (const Array& a : own)
          xs.push_back(takes_gradient(a) ? Variable(a) : Variable::constant(a));
        const Variables ys = record().call(xs);
        write(own, ys);
        try {
          backward(ys, gys);
        } catch (const GradientError&) {
          return;
        }
        Arrays got;
        for (const Variable& x : xs)
          if (x.requires_grad())
            got.push_back(x.grad().defined() ? x.grad() : zeros_like(x.data()));
        expect_close(got, expected, 1e-12);
      };
  for (size_t i = 0; i < inputs.size(); ++i) {
    SCOPED_TRACE(message("input ", i));
    expect_noticed([&](const Arrays& own, const Variables&) { own[i].fill(1); });
  }
  for (size_t i = 0; i < gys.size(); ++i) {
    SCOPED_TRACE(message("result ", i));
    expect_noticed([&](const Arrays&, const Variables& ys) {
      if (ys[i].data().is_writable()) ys[i].data().fill(1);
    });
  }
}

TEST_P(Functions, LeaveNoGraphWhereNoGradientIsWanted) {
  const Arrays inputs = record().inputs(record().shapes[0], draw());
  Variables constants, frozen;
  for (const Array& a : inputs) {
    constants.push_back(Variable::constant(a));
    frozen.emplace_back(a, Volatile::on);
  }
  for (const Variable& y : record().call(constants)) EXPECT_FALSE(y.requires_grad());
  for (const Variable& y : record().call(frozen)) {
    EXPECT_FALSE(y.creator());
    EXPECT_TRUE(y.is_volatile());
  }
}

TEST_P(Functions, SayWhatIsWrong) {
  for (const ErrorRecord& e : record().errors)
    EXPECT_EQ(e.message_of_call(record(), draw()), e.text) << record().name();
}

INSTANTIATE_TEST_SUITE_P(All, Functions, ::testing::ValuesIn(cases()), case_name);

// A gradient that is right at positive numbers only must be seen.
TEST(FunctionRecords, InputsHaveBothSigns) {
  for (const FunctionRecord& record : all_function_records()) {
    for (const Shapes& shapes : record.shapes) {
      const Arrays inputs = record.inputs(shapes, Draw(cpu()));
      for (size_t i = 0; i < inputs.size(); ++i) {
        const InputRange range = i < record.ranges.size() ? record.ranges[i] : InputRange();
        if (inputs[i].size() < 4 || !is_float(inputs[i].dtype())) continue;
        if (range.low >= 0 || range.high <= 0) continue;
        const std::vector<double> x = inputs[i].to_vector<double>();
        EXPECT_TRUE(std::ranges::min(x) < 0 && std::ranges::max(x) > 0)
            << record.name() << ", input " << i;
      }
    }
  }
}

// What the groups of an expression match in the sources of a folder.
std::set<std::string> names_in(const char* folder, const char* extension, const char* expression) {
  const std::regex name(expression);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != extension) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      for (std::sregex_iterator match(line.begin(), line.end(), name), end; match != end; ++match)
        names.insert(match->str(1) + match->str(2));
    }
  }
  return names;
}
// The names of the functions that the public headers declare: those that return variables, or a
// struct of them whose name ends with Result.
std::set<std::string> declared_functions() {
  return names_in(
      CATENA_FUNCTION_HEADERS, ".h",
      R"(^(?:inline )?(?:Variables?|\w+Result) (\w+)\(|^CATENA_(?:UN|BIN)ARY\((\w+)\))");
}

// Those of math_test.cpp.
std::set<std::string> element_wise_rows() {
  return {
#define CATENA_EW1(functor, name, ...) #name,
#define CATENA_EW2 CATENA_EW1
#define CATENA_EW3 CATENA_EW1
#include "catena/kernels/detail/elementwise_activation.def"
#include "catena/kernels/detail/elementwise_arithmetic.def"
#include "catena/kernels/detail/elementwise_math.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
  };
}

TEST(FunctionRecords, EveryFunctionHasOne) {
  std::set<std::string> recorded;
  for (const FunctionRecord& record : all_function_records()) recorded.insert(record.function);
  const std::set<std::string> declared = declared_functions();
  ASSERT_GE(declared.size(), 70u) << "the headers are no longer read";
  for (const std::string& name : declared) {
    // recompute calls a function that it is given: recompute_test.cpp.
    if (recorded.contains(name) || name == "recompute") continue;
    EXPECT_TRUE(element_wise_rows().contains(name))
        << "catena::functions::" << name << " has no record in tests/functions/*/*_records.cpp";
  }
  for (const std::string& name : recorded)
    EXPECT_TRUE(declared.contains(name)) << "no header declares " << name;
}

// Their values are compared there, but those that draw numbers, change no number or are another
// name.
TEST(FunctionRecords, EveryFunctionIsInTheOracle) {
  const std::set<std::string> called = names_in(CATENA_FUNCTION_ORACLE, ".cpp", R"((\w+)())"),
                              not_there{"abs",      "channels_last", "dropout",
                                        "gaussian", "pow",           "recompute"};
  for (const std::string& name : declared_functions()) {
    EXPECT_TRUE(called.contains(name) || not_there.contains(name) ||
                element_wise_rows().contains(name))
        << "tests/oracle/functions has no case of catena::functions::" << name;
  }
}

}  // namespace
}  // namespace catena
