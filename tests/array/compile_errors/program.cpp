// What programs write, compiled with the warnings that strict projects turn into errors; nothing
// runs.
#include <iostream>
#include <vector>

#include "catena/catena.h"
#include "catena/testing.h"

using namespace catena;
namespace F = catena::functions;

struct Mlp : FunctionSet {
  F::Linear l1{4, 3}, l2{3, 2, {.nobias = true}};
  std::vector<F::Linear> more;
  OwnedPersistent table{ones({2})};
  F::Dropout drop;
  CATENA_FUNCTIONS(l1, l2, more, table, drop)
  Variable operator()(const Variable& x) const { return drop(l2(F::relu(l1(x))), training()); }
};

struct Square : Function {
  void check_type_forward(const TypeInfoTuple& in) const override {
    type_check::expect(in.size() == 1, in[0].dtype().kind() == 'f', in[0].ndim() == 2,
                       in[0].shape(0) == in[0].shape(1));
  }
  Arrays forward(const Arrays& x) override { return {x[0] * x[0]}; }
  Arrays backward(const Arrays& x, const Arrays& gy) override { return {2 * x[0] * gy[0]}; }
};

// Comparisons, of which clang 14 warned that they were ambiguous with themselves turned round.
void compare(const Array& a, const Array& b, const Variable& v) {
  std::cout << (a == b) << (a != b) << (a == 1) << (2 < a) << (a >= 0.5f);
  std::cout << (a(a > 0) == b(b > 0)) << (a(a > 0) == b) << (a == b(b > 0));
  std::cout << v << v * 2 + a << (a.shape() == b.shape()) << (cpu(0) == a.device());
  std::cout << (Stream() == Stream()) << (Parameter() == Parameter());
  const double x = a.item<double>();
  if (isnan(x) || isinf(x) || !isfinite(x) || signbit(x)) std::cout << x;
}

// Some fields of options, the others left out.
void options() {
  training::Report({.log = "x"});
  training::ProgressOptions({.terminal = true});
  datasets::MnistOptions({.ndim = 3});
  datasets::PrefetchOptions({.depth = 3});
  comm::CommunicatorOptions({.timeout = 3.0});
  comm::ThreadsOptions({.timeout = 3.0});
  ElementwiseKernel("T x", "T y", "y = x", "copy", {.preamble = ""});
  FromFileOptions({.count = 3});
  LoadTextOptions({.delimiter = ","});
  SaveTextOptions({.delimiter = ","});
  UniqueOptions({.return_counts = true});
  F::LinearOptions({.wscale = 2});
  CheckOptions({.eps = 1});
  StreamOptions({.priority = 1});
  EventOptions({.timing = true});
}

void run(const Array& a) {
  sum(a, {.keepdims = true});
  a.max({.axes = {0, 1}, .out = a});
  amax(a, 1, true);
  elementwise(a, [](double z) { return z + 1; });
  fuse([](Fused p, Fused q) { return (p == q) + p; })(a, a);
  call(Square{}, Variable(a));
  Mlp model;
  model(Variable(a));
}

int main() {
  const Array a = ones({3, 4});
  compare(a, a, Variable(a));
  options();
  run(a);
}
