#include "catena/autograd/gradient_check.h"

#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/autograd/function_call.h"
#include "catena/core/entry_scope.h"

namespace catena {
namespace {

Variable scale(const Variable& s, const Variable& a);
Variable dot(const Variables& as, const Variables& bs);

// The functions layer is above this one, so that the checks bring the two operations they need,
// each the gradient of the other.

// sum over i of sum(a_i * b_i), 0-d; inputs a_0 .. a_n-1, b_0 .. b_n-1.
struct DotNode final : FunctionNode {
  std::string label() const override { return "dot"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const int total = static_cast<int>(inputs().size()), n = total / 2;
    for (int i = 0; i < total; ++i) {
      if (context.needs(i)) context.set_grad(i, scale(gy, context.input(i < n ? i + n : i - n)));
    }
  }
};

// s * a with s 0-d.
struct ScaleNode final : FunctionNode {
  std::string label() const override { return "scale"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (context.needs(0)) context.set_grad(0, dot({gy}, {context.input(1)}));
    if (context.needs(1)) context.set_grad(1, scale(context.input(0), gy));
  }
};

Variable finish(FunctionNode* raw, const Variables& inputs, const Array& y) {
  const IntrusivePtr<FunctionNode> node(raw);
  FunctionCall call("GradientCheck", Autocast::kNone, inputs);
  return call.record(y, [&] {
    for (size_t i = 0; i < inputs.size(); ++i) node->save_input(static_cast<int>(i), inputs[i]);
    return node;
  });
}

Variable scale(const Variable& s, const Variable& a) {
  return finish(new ScaleNode, {s, a}, multiply(s.data(), a.data(), Out(a.dtype())));
}

Variable dot(const Variables& as, const Variables& bs) {
  Array total = zeros({}, {as[0].dtype(), as[0].device()});
  Variables inputs = as;
  for (size_t i = 0; i < as.size(); ++i) {
    total = add(total, sum(multiply(as[i].data(), bs[i].data())).to(total.device()));
    inputs.push_back(bs[i]);
  }
  return finish(new DotNode, inputs, total);
}

// sum(y * gy) in double on the host.
double weighted_sum(const Arrays& ys, const Arrays& gys) {
  CATENA_CHECK(ValueError, ys.size() == gys.size(), "numerical_grad: f returned ", ys.size(),
               " outputs for ", gys.size(), " output gradients");
  double total = 0;
  for (size_t i = 0; i < ys.size(); ++i) {
    if (!gys[i].defined()) continue;
    CATENA_CHECK(ShapeError, ys[i].shape() == gys[i].shape(), "numerical_grad: output ", i,
                 " has shape ", ys[i].shape(), ", its gradient ", gys[i].shape());
    const std::vector<double> y = ys[i].to_vector<double>(), gy = gys[i].to_vector<double>();
    for (size_t k = 0; k < y.size(); ++k) total += y[k] * gy[k];
  }
  return total;
}

// Calls visit(position, 0-d view) for each element, in C order.
template <class Visit>
void each_element(const Array& a, Visit visit) {
  std::vector<Index> index(static_cast<size_t>(a.ndim()), Index(0));
  for (int64_t k = 0; k < a.size(); ++k) {
    int64_t rest = k;
    for (int d = a.ndim() - 1; d >= 0; --d) {
      index[size_t(d)] = Index(rest % a.shape()[size_t(d)]);
      rest /= a.shape()[size_t(d)];
    }
    visit(k, a.at(std::span<const Index>(index)));
  }
}

Shape position_of(const Shape& shape, int64_t k) {
  Shape position(shape.size(), 0);
  for (int d = shape.ndim() - 1; d >= 0; --d) {
    position[size_t(d)] = k % shape[size_t(d)];
    k /= shape[size_t(d)];
  }
  return position;
}

Arrays random_like(const std::vector<Array>& likes, uint64_t seed) {
  RandomState state(seed);
  Arrays result;
  for (const Array& like : likes) {
    result.push_back(is_float(like.dtype())
                         ? state.uniform(like.shape(), -1, 1, {Dtype::kFloat64, cpu(0)})
                               .astype(like.dtype())
                               .to(like.device())
                         : Array());
  }
  return result;
}

Arrays data_of(const Variables& variables) {
  Arrays arrays;
  for (const Variable& v : variables) arrays.push_back(v.data());
  return arrays;
}

Variables as_variables(const Arrays& arrays) {
  Variables variables;
  for (const Array& a : arrays)
    variables.push_back(is_float(a.dtype()) ? Variable(a) : Variable::constant(a));
  return variables;
}

Arrays evaluate(const VariableFunction& f, const Arrays& inputs) {
  const NoBackprop off;
  Variables constants;
  for (const Array& a : inputs) constants.push_back(Variable::constant(a));
  return data_of(f(constants));
}

// sum of the outputs times gys, leaving out outputs without a gradient.
Variable weighted(const Variables& ys, const Variables& gys) {
  Variables used_y, used_g;
  for (size_t i = 0; i < ys.size(); ++i) {
    if (!gys[i].defined()) continue;
    used_y.push_back(ys[i]);
    used_g.push_back(gys[i]);
  }
  CATENA_CHECK(ValueError, !used_y.empty(), "check_backward: the function has no floating output");
  return dot(used_y, used_g);
}

// Where the function records nothing all gradients are zero.
void go_back(const Variable& total, const BackwardOptions& options = {}) {
  if (total.requires_grad()) total.backward(options);
}

// Difference quotients of narrow floats are mostly rounding.
std::string precision_advice(const Variables& xs) {
  for (const Variable& x : xs) {
    if (!x.requires_grad() || x.dtype() == Dtype::kFloat64) continue;
    return message("\nAn input is ", x.dtype(),
                   ": numerical gradients need float64, convert the inputs "
                   "with .astype(dtype::float64)");
  }
  return {};
}

void compare(const Variables& xs, const Arrays& expected, const CheckOptions& options,
             const char* what) {
  for (size_t i = 0; i < xs.size(); ++i) {
    if (!xs[i].requires_grad()) continue;
    const Array got = xs[i].grad().defined() ? xs[i].grad() : zeros_like(xs[i].data());
    try {
      const CallbackScope own_name;
      assert_allclose(got, expected[i], options.atol, options.rtol);
    } catch (const ValueError& e) {
      fail<ValueError>("the gradient of ", what, " ", i, " and the numerical one differ.\n",
                       e.what(), precision_advice(xs));
    }
  }
}

// First-order gradients of sum(f(xs) * gys), on arrays; zeros where none flows.
Arrays first_gradients(const VariableFunction& f, const Arrays& inputs, const Arrays& gys) {
  const Variables xs = as_variables(inputs);
  Variables constants;
  for (const Array& g : gys) constants.push_back(g.defined() ? Variable::constant(g) : Variable());
  go_back(weighted(f(xs), constants));
  Arrays grads;
  for (const Variable& x : xs) {
    if (!x.requires_grad()) continue;
    grads.push_back(x.grad().defined() ? x.grad() : zeros_like(x.data()));
  }
  return grads;
}

// numerical_grad for arrays on any devices.
Arrays central_differences(const std::function<Arrays()>& f, const Arrays& inputs,
                           const Arrays& grad_outputs, double eps) {
  CATENA_CHECK(ValueError, eps > 0, "numerical_grad: expected eps above 0, got ", eps);
  Arrays grads;
  for (const Array& x : inputs) {
    if (!is_float(x.dtype())) {
      grads.push_back(zeros(x.shape(), {Dtype::kFloat64, x.device()}));
      continue;
    }
    std::vector<double> values(static_cast<size_t>(x.size()));
    each_element(x, [&](int64_t k, const Array& element) {
      const double original = element.item<double>();
      element.fill(original + eps);
      const double above = weighted_sum(f(), grad_outputs);
      element.fill(original - eps);
      const double below = weighted_sum(f(), grad_outputs);
      element.fill(original);
      values[size_t(k)] = (above - below) / (2 * eps);
    });
    grads.push_back(array(values, x.shape(), x.device()).astype(x.dtype(), false));
  }
  return grads;
}

}  // namespace

Arrays numerical_grad(const std::function<Arrays()>& f, const Arrays& inputs,
                      const Arrays& grad_outputs, double eps) {
  const Array* first = nullptr;
  for (const Arrays* arrays : {&inputs, &grad_outputs}) {
    for (const Array& a : *arrays) {
      if (!a.defined()) continue;
      if (!first) first = &a;
      CATENA_CHECK(DeviceError, a.device().type() == first->device().type(),
                   "Do not mix GPU and CPU arrays in `numerical_grad`: got arrays on ",
                   first->device(), " and ", a.device(), "; copy them to one with to(device)");
    }
  }
  return central_differences(f, inputs, grad_outputs, eps);
}

void assert_allclose(const Array& x, const Array& y, double atol, double rtol) {
  CATENA_CHECK(ValueError, x.defined() && y.defined(), "assert_allclose: an array is undefined");
  CATENA_CHECK(ValueError, x.shape() == y.shape(), "assert_allclose: shapes ", x.shape(), " and ",
               y.shape(), " differ");
  const std::vector<double> a = x.to_vector<double>(), b = y.to_vector<double>();
  double worst = -1;
  size_t at = 0, count = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]))) continue;
    const double error = std::abs(a[k] - b[k]);
    if (error <= atol + rtol * std::abs(b[k])) continue;  // false for NaN
    ++count;
    const double weight = std::isnan(error) ? HUGE_VAL : error;
    if (weight > worst) {
      worst = weight;
      at = k;
    }
  }
  CATENA_CHECK(ValueError, count == 0, "assert_allclose: ", count, " of ", a.size(),
               " elements differ by more than ", atol, " + ", rtol, " |y|; most at ",
               position_of(x.shape(), static_cast<int64_t>(at)), ": ", a[at], " against ", b[at],
               ", difference ", a[at] - b[at]);
}

void check_backward(const VariableFunction& f, const Arrays& inputs, const CheckOptions& options) {
  const Variables xs = as_variables(inputs);
  const Variables ys = f(xs);
  const Arrays gys = random_like(data_of(ys), 1);
  Variables weights;
  for (const Array& g : gys) weights.push_back(g.defined() ? Variable::constant(g) : Variable());
  go_back(weighted(ys, weights));
  const Arrays expected =
      central_differences([&] { return evaluate(f, inputs); }, inputs, gys, options.eps);
  const EntryScope call("check_backward");
  compare(xs, expected, options, "input");
}

void check_double_backward(const VariableFunction& f, const Arrays& inputs,
                           const CheckOptions& options) {
  const Variables xs = as_variables(inputs);
  const Variables ys = f(xs);
  const Arrays gys = random_like(data_of(ys), 1);
  const Variables gy_variables = [&] {
    Variables list;
    for (const Array& g : gys) list.push_back(g.defined() ? Variable(g) : Variable());
    return list;
  }();
  go_back(weighted(ys, gy_variables), {.create_graph = true});
  Variables gxs;
  for (const Variable& x : xs) {
    if (x.requires_grad() && x.grad_variable().defined())
      gxs.push_back(x.grad_variable());
    else if (x.requires_grad())
      gxs.push_back(Variable::constant(zeros_like(x.data())));
  }
  const Arrays weights = random_like(data_of(gxs), 2);
  Arrays all_inputs = inputs;
  Variables all = xs;
  for (size_t i = 0; i < gys.size(); ++i) {
    if (!gys[i].defined()) continue;
    all_inputs.push_back(gys[i]);
    all.push_back(gy_variables[i]);
  }
  for (const Variable& v : all) v.set_grad(Array());
  Variables constants;
  for (const Array& w : weights) constants.push_back(Variable::constant(w));
  go_back(weighted(gxs, constants));
  const Arrays expected = central_differences([&] { return first_gradients(f, inputs, gys); },
                                              all_inputs, weights, options.eps);
  const EntryScope call("check_double_backward");
  compare(all, expected, options, "input or output gradient");
}

}  // namespace catena
