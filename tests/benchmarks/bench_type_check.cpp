// What the type checks of a user's Function cost on the host when they pass: the checks alone, and
// a whole recorded call with and without them.
//   bench_type_check [--quick]
#include "catena/array/creation.h"
#include "catena/autograd/function.h"
#include "catena/core/config.h"
#include "timing.h"

namespace {

using namespace bench;
using catena::Array;
using catena::Arrays;
using catena::Dtype;
using catena::TypeInfoTuple;
using catena::Variable;

// The product of a batch of rows with a matrix, of which only the checks matter here.
struct Checked : catena::Function {
  void check_type_forward(const TypeInfoTuple& in) const override {
    catena::type_check::expect(in.size() == 2);
    const auto &x = in[0], &W = in[1];
    catena::type_check::expect(x.dtype() == Dtype::kFloat32, W.dtype() == Dtype::kFloat32,
                               x.ndim() == 2, W.ndim() == 2, x.shape(1) == W.shape(1),
                               x.shape(0) > 0);
  }
  Arrays forward(const Arrays& x) override { return {x[0]}; }
  Arrays backward(const Arrays&, const Arrays& gy) override { return {gy[0], Array()}; }
};

int body(int argc, char** argv) {
  const Arguments arguments(argc, argv, "Cost of type checks that pass.");
  const Sampling sampling{100, arguments.quick() ? 5 : 25, 2000};
  const Arrays inputs{catena::zeros({100, 784}, Dtype::kFloat32),
                      catena::zeros({10, 784}, Dtype::kFloat32)};
  const Variable x(inputs[0]), W(inputs[1]);
  Table table("Type checks of a Function", "host");
  const auto time = [&](const char* name, auto call, std::optional<double> goal = {}) {
    const double us = host_time(sampling, catena::cpu(0), call).median * 1e6;
    table.row({.name = name, .precision = "", .value = us, .unit = "us", .goal = goal});
  };
  time("types of two inputs", [&] { TypeInfoTuple{inputs}; });
  time(
      "types and seven conditions", [&] { Checked().check_type_forward(TypeInfoTuple(inputs)); },
      0.3);
  time("recorded call", [&] { catena::call(Checked(), x, W); });
  catena::config().type_check = false;
  time("recorded call, checks off", [&] { catena::call(Checked(), x, W); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
