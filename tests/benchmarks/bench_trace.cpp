// What traces (catena/core/trace.h) cost on the host: while nothing is recorded and while they are,
// for an addition of arrays, a recorded function and a range.
//   bench_trace [--quick]
#include <unistd.h>

#include <cstdio>
#include <string>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/autograd/variable.h"
#include "catena/core/trace.h"
#include "catena/functions/math.h"
#include "timing.h"

namespace {

using namespace bench;
using catena::Array;
using catena::Dtype;
using catena::Variable;

int body(int argc, char** argv) {
  const Arguments arguments(argc, argv, "Cost of traces.");
  const Sampling sampling{100, arguments.quick() ? 5 : 25, 2000};
  const Array a = catena::ones({16}, Dtype::kFloat32);
  const Variable x(a);
  Table table("Traces", "host");
  const auto time = [&](const std::string& name, auto call, std::optional<double> goal = {}) {
    const double us = host_time(sampling, catena::cpu(0), call).median * 1e6;
    table.row({.name = name, .precision = "", .value = us, .unit = "us", .goal = goal});
  };
  const auto time_all = [&](const std::string& state, std::optional<double> goal = {}) {
    time(
        "range, " + state, [] { const catena::tracing::Range range("range"); }, goal);
    time("a + a of 16, " + state, [&] { a + a; });
    time("F::tanh of 16, recorded, " + state, [&] { catena::functions::tanh(x); });
  };
  time_all("off", 0.005);
  const std::string file = "/tmp/bench_trace." + std::to_string(getpid()) + ".json";
  catena::tracing::start(file);
  time_all("on");
  catena::tracing::stop();
  std::remove(file.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
