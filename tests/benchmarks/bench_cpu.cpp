// The CPU: a small operation against the bare loop, the MNIST training step against its eight
// matrix products called directly in oneDNN or OpenBLAS plus one loop over the parameters, and
// operations on large arrays against plain loops over memory, all with the same threads.
#include <cstdio>

#include "catena/catena.h"
#include "raw_cpu.h"
#include "timing.h"
#include "vendor_blas.h"
#include "workloads.h"

namespace {

using namespace bench;
using catena::Array;

// Two calls timed in turn, so that both see the same disturbances of a shared machine.
struct Pair {
  Times ours, limit;
};
template <class Ours, class Limit>
Pair in_turn(const Sampling& s, Ours&& ours, Limit&& limit) {
  const Sampling one{0, 1, s.calls};
  for (int i = 0; i < s.warm_up; ++i) {
    ours();
    limit();
  }
  std::vector<double> a, b;
  for (int run = 0; run < s.runs; ++run) {
    a.push_back(host_time(one, catena::cpu(), ours).median);
    b.push_back(host_time(one, catena::cpu(), limit).median);
  }
  return {summarize(a), summarize(b)};
}

struct Bench {
  bool quick;
  Table table;

  Array uniform(const catena::Shape& shape) const {
    return catena::random::default_state(catena::cpu())
        .uniform(shape, 0, 1, {catena::dtype::float32, catena::cpu()});
  }
  // The minima: what the program takes when nothing else disturbs it.
  void times(const std::string& name, const Pair& t, const std::string& limit_name, double unit,
             const char* unit_name, std::optional<double> goal, std::optional<double> goal_ratio) {
    table.row({.name = name,
               .precision = "float32",
               .value = t.ours.minimum * unit,
               .unit = unit_name,
               .limit = t.limit.minimum * unit,
               .limit_name = limit_name,
               .goal = goal,
               .goal_ratio = goal_ratio});
    std::fprintf(stderr, "  %s: medians %s and %s %s, their ratio %s\n", name.c_str(),
                 format(t.ours.median * unit).c_str(), format(t.limit.median * unit).c_str(),
                 unit_name, format(t.ours.median / t.limit.median).c_str());
  }
  void tiny();
  void mnist(const std::string& rule);
  void large();
};

void Bench::tiny() {
  const Array a = uniform({32, 32}), b = uniform({32, 32});
  volatile float sink = 0;
  const Pair t = in_turn(
      {1000, quick ? 100 : 500, 2000}, [&] { catena::add(a, b); },
      [&] { sink = raw::allocate_and_add(a.data<float>(), b.data<float>(), 1024); });
  times("add 32x32, allocation included", t, "new, loop, delete", 1e9, "ns", 250, {});
}

void Bench::mnist(const std::string& rule) {
  constexpr int64_t kBatch = 100;
  MnistStep mnist(catena::cpu(), kBatch, 6000);
  const auto optimizer = make_rule(rule);
  optimizer->setup(mnist.model());
  raw::BareStep bare(mnist.widths(), kBatch, rule);
  const Array x = uniform({kBatch, 784});
  const Array t = catena::random::default_state(catena::cpu())
                      .integers({kBatch}, 0, 10, {catena::dtype::int32, catena::cpu()});
  const Sampling sampling{5, quick ? 10 : 100, 1};
  const auto limit = [&] {
    bare.products();
    bare.update();
  };
  const std::string limit_name = "8 products + one pass";
  times("MNIST step, batch 100, " + rule,
        in_turn(
            sampling, [&] { mnist.train_on(x, t, *optimizer); }, limit),
        limit_name, 1e3, "ms", {}, 1.10);
  times("MNIST step, batch 100, " + rule + ", with fetching",
        in_turn(
            sampling, [&] { mnist.step(*optimizer); }, limit),
        limit_name, 1e3, "ms", {}, {});
}

void Bench::large() {
  const int64_t side = quick ? 2048 : 8192, n = side * side;
  const std::string size = std::to_string(side) + "^2";
  const Array a = uniform({side, side}), b = uniform({side, side}), c = catena::empty_like(a);
  const Array transposed = a.T();
  const Sampling sampling{2, quick ? 3 : 10, 1};
  float* to = c.data<float>();
  const auto rate = [&](const std::string& name, int64_t values, const Pair& t,
                        const std::string& limit_name) {
    const double bytes = 4.0 * double(values);
    table.row({.name = name,
               .precision = "float32",
               .value = bytes / t.ours.minimum * 1e-9,
               .unit = "GB/s",
               .limit = bytes / t.limit.minimum * 1e-9,
               .limit_name = limit_name});
  };
  volatile double sink = 0;
  const auto bare_copy = [&] { raw::copy(to, a.data<float>(), n); };
  rate("copy " + size, 2 * n,
       in_turn(
           sampling, [&] { c.assign(a); }, bare_copy),
       "memcpy");
  rate("add " + size, 3 * n,
       in_turn(
           sampling, [&] { catena::add(a, b, c); },
           [&] { raw::add(to, a.data<float>(), b.data<float>(), n); }),
       "STREAM add");
  // Ten operations; results are allocated on both sides of the second row.
  const auto chain = [](auto x, auto y) {
    return maximum((x - y) * (x - y) * 0.5f + x * y - 1.f, 0.f) / 3.f + 2.f;
  };
  const auto fused = catena::fuse(chain);
  rate("fused chain of 10 operations " + size, 3 * n,
       in_turn(
           sampling, [&] { fused(a, b); },
           [&] { raw::add(to, a.data<float>(), b.data<float>(), n); }),
       "STREAM add");
  rate("the same chain, one call each " + size, 3 * n,
       in_turn(
           sampling, [&] { chain(a, b); }, [&] { fused(a, b); }),
       "fused");
  rate("sum " + size, n,
       in_turn(
           sampling, [&] { catena::sum(a); }, [&] { sink = raw::sum(a.data<float>(), n); }),
       "plain sum");
  rate("sum axis 0 " + size, n,
       in_turn(
           sampling, [&] { catena::sum(a, 0); }, [&] { sink = raw::sum(a.data<float>(), n); }),
       "plain sum");
  rate("transpose to contiguous " + size, 2 * n,
       in_turn(
           sampling, [&] { c.assign(transposed); }, bare_copy),
       "memcpy");
}

int body(int argc, char** argv) {
  const Arguments arguments(
      argc, argv, "The CPU against plain loops and oneDNN or OpenBLAS, with the same threads.",
      {{"--only-tiny", "the small operation alone, for instruction counts"}});
  if (arguments.has("--only-tiny")) {
    const Array a = catena::ones({32, 32}, catena::dtype::float32),
                b = catena::ones({32, 32}, catena::dtype::float32);
    for (int i = 0; i < 100000; ++i) catena::add(a, b);
    return 0;
  }
  Bench bench{.quick = arguments.quick(),
              .table = Table("CPU", std::to_string(catena::cpu_threads()) + " threads; " +
                                        raw::vendor_description())};
  bench.tiny();
  bench.mnist("SGD");
  bench.mnist("Adam");
  bench.large();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  bench::raw::limit_spinning(argv);
  return bench::run(body, argc, argv);
}
