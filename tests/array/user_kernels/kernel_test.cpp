// Users' kernels as far as no GPU is needed: parameter lists and errors.
#include "catena/array/kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/memoize.h"
#include "catena/array/reduction.h"

namespace catena {
namespace {

template <class E, class F>
void expect_error(const std::vector<std::string>& parts, const F& f) {
  try {
    f();
    FAIL() << "no error that names " << parts[0];
  } catch (const E& error) {
    for (const std::string& part : parts) expect_contains(error.what(), {part});
  }
}

TEST(KernelParameters, AreParsed) {
  const auto list = parse_kernel_parameters("float32 x, raw T table ,  int64 k");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].name, "x");
  EXPECT_EQ(list[0].letter, 0);
  EXPECT_EQ(list[0].dtype, Dtype::kFloat32);
  EXPECT_TRUE(list[1].raw);
  EXPECT_EQ(list[1].letter, 'T');
  EXPECT_EQ(list[1].name, "table");
  EXPECT_EQ(list[2].dtype, Dtype::kInt64);
  EXPECT_TRUE(parse_kernel_parameters("").empty());
  EXPECT_TRUE(parse_kernel_parameters("  ").empty());
}

TEST(KernelParameters, WrongOnesAreRefused) {
  for (const char* text :
       {"T i", "T n", "T _x", "T", "raw T", "T x y", "T x,,T y", "f4 x", "raw raw T x"}) {
    EXPECT_THROW(parse_kernel_parameters(text), Error) << text;
  }
  expect_error<DtypeError>({"kernel parameter 'nonsense x'", "'nonsense' is not a type", "float32"},
                           [] { parse_kernel_parameters("nonsense x"); });
  expect_error<ValueError>({"kernel parameters 'T x,'", "comma"},
                           [] { parse_kernel_parameters(" T x, "); });
}

TEST(KernelParameters, ListsAreCheckedAtConstruction) {
  expect_error<ValueError>({"pair", "two parameters are named 'x'", "inputs 'x, x'"},
                           [] { ElementwiseKernel("T x, T x", "T z", "z = x", "pair"); });
  expect_error<ValueError>({"same", "'x'", "outputs 'x'"},
                           [] { ElementwiseKernel("T x", "T x", "x = x", "same"); });
  expect_error<ValueError>({"comma", "'T z,'"},
                           [] { ElementwiseKernel("T x", "T z,", "z = x", "comma"); });
  expect_error<ValueError>({"mute", "needs an output"},
                           [] { ElementwiseKernel("T x", " ", "", "mute"); });
  expect_error<ValueError>(
      {"fold", "'x'"}, [] { ReductionKernel("T x", "T x", "x", "a + b", "x = a", "0", "fold"); });
  expect_error<ValueError>({"old", "'x'"},
                           [] { cuda::elementwise("float* x, float* x", "", "old"); });
}

TEST(UserKernels, NeedACudaDevice) {
  const ElementwiseKernel kernel("T x, T y", "T z", "z = x + y", "plus");
  const Array a = ones({3}, dtype::float32);
  try {
    kernel(a, a);
    FAIL() << "ran on a CPU";
  } catch (const DeviceError& error) {
    expect_contains(error.what(), {"plus", "cpu:0"});
  }
  EXPECT_THROW(ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0")(a), DeviceError);
  EXPECT_THROW(RawKernel("code", "k")({1}, {1}, {a}), DeviceError);
}

TEST(UserKernels, CountArgumentsFirst) {
  const ElementwiseKernel kernel("T x, T y", "T z", "z = x + y", "plus");
  const Array a = ones({3}, dtype::float32);
  EXPECT_THROW(kernel(a), ValueError);
  EXPECT_THROW(kernel(a, a, a, a), ValueError);
  EXPECT_THROW(ReductionKernel("T x", "raw T z", "x", "a + b", "z = a", "0"), ValueError);
  EXPECT_THROW(ReductionKernel("T x", "", "x", "a + b", "", "0"), ValueError);
}

Array floats(const Shape& shape, double start = 0) {
  return add(arange(0, element_count(shape), 1, Dtype::kFloat32).reshape(shape), start);
}

template <class T>
void expect_equal(const Array& a, const Array& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_EQ(a.to_vector<T>(), b.to_vector<T>());
}

const ElementwiseKernel& squared_diff() {
  static const auto kernel =
      ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_diff")
          .on_cpu<float, double, int32_t>([]<class T>(T x, T y, T& z) { z = (x - y) * (x - y); });
  return kernel;
}

TEST(HostKernels, OneKernelForBothDevices) {
  const Array x = floats({40, 30}), y = floats({30}, 2);
  expect_equal<float>(squared_diff()(x, y), square(subtract(x, y)));
  expect_equal<float>(squared_diff()(x.T(), 3), square(subtract(x.T(), 3)));
  expect_equal<float>(squared_diff()(x(Slice(none, none, -2)), y),
                      square(subtract(x(Slice(none, none, -2)), y)));
  const Array i = arange(0, 12, 1, Dtype::kInt32), out = zeros({12}, Dtype::kInt32);
  EXPECT_TRUE(Array(squared_diff()(i, 5, out)).same_body(out));
  expect_equal<int32_t>(out, square(subtract(i, 5)));
  expect_error<DeviceError>({"squared_diff", "float16", "on_cpu"}, [] {
    squared_diff()(ones({2}, Dtype::kFloat16), ones({2}, Dtype::kFloat16));
  });
  EXPECT_EQ(Array(squared_diff()(zeros({0, 3}, dtype::float32), 1)).shape(), (Shape{0, 3}));
  // Large enough for threads.
  const Array large = floats({1 << 19});
  expect_equal<float>(squared_diff()(large, 1), square(subtract(large, 1)));
}

TEST(HostKernels, TypesAreResolvedAsForTexts) {
  const Array f = ones({3}, dtype::float32), d = ones({3}, dtype::float64);
  expect_error<DtypeError>({"type is mismatched", "squared_diff"}, [&] { squared_diff()(f, d); });
  expect_error<ShapeError>({"squared_diff"}, [&] { squared_diff()(f, ones({4}, dtype::float32)); });
  expect_error<ShapeError>({"output z", "expected (3,)"},
                           [&] { squared_diff()(f, f, zeros({1}, dtype::float32)); });
  // An output alone may bind a letter, only when it is given.
  const auto cast =
      ElementwiseKernel("T x", "U y", "y = x", "cast").on_cpu([](float x, double& y) { y = x; });
  const Array out = zeros({3}, dtype::float64);
  cast(f, out);
  expect_equal<double>(out, d);
  expect_error<DtypeError>({"the type U of output y", "give an array"}, [&] { cast(f); });
  const ElementwiseKernel raw_out("T x", "raw T y", "y[i] = x", "raw_out");
  const auto host = raw_out.on_cpu([](KernelIndex at, float x, RawView<float> y) { y[at.i] = x; });
  expect_error<ValueError>({"raw output y must be given"}, [&] { host(f); });
  const Array target = zeros({3}, dtype::float32);
  host(f, target);
  expect_equal<float>(target, f);
}

TEST(HostKernels, RawArgumentsIndexAndSize) {
  const auto reverse = ElementwiseKernel("raw T x, raw T y", "T z",
                                         "z = x[i] + y[_ind.size() - i - 1]", "add_reverse")
                           .on_cpu([](KernelIndex at, RawView<float> x, RawView<float> y,
                                      float& z) { z = x[at.i] + y[at.n - at.i - 1]; });
  const Array x = floats({40}), y = floats({80})(Slice(0, none, 2)),
              out = zeros({40}, dtype::float32);
  reverse(x, y, out);
  expect_equal<float>(out, add(x, y(Slice(none, none, -1))));
  const auto all_raw =
      ElementwiseKernel("raw float32 x", "raw float32 y", "y[i] = x[n - 1 - i]", "all_raw")
          .on_cpu([](KernelIndex at, RawView<float> x, RawView<float> y) {
            y[at.i] = x[at.n - 1 - at.i];
          });
  expect_error<ValueError>({"all_raw", "loop size is undecided"}, [&] { all_raw(x, out); });
  all_raw.call({x, out}, 40);
  expect_equal<float>(out, x(Slice(none, none, -1)));
  expect_error<ValueError>({"only when every array argument is raw"}, [&] {
    reverse.call({x, y, out}, 40);
  });
  expect_error<ValueError>({"all_raw", "-1"}, [&] { all_raw.call({x, out}, -1); });
  // Lists of indices, shape and strides of a transposed view.
  const Array m = floats({4, 6}).T();
  const auto gather = ElementwiseKernel("raw T m, int64 k", "T z", "...", "gather")
                          .on_cpu([](RawView<float> a, int64_t k, float& z) {
                            const int64_t at[] = {k % a.shape()[0], k / a.shape()[0]};
                            z = a[at] + float(a.size() - 24) + float(a.strides()[0] - 4);
                          });
  expect_equal<float>(gather(m, arange(24)), floats({24}));
}

TEST(HostKernels, NumbersAloneHaveNoSize) {
  expect_contains(error_of<ValueError>([] { squared_diff()(1, 2); }), {"no argument is an array"});
  EXPECT_EQ(squared_diff().call({1.0, 3.0}, 2)[0].to_vector<double>(), (std::vector<double>{4, 4}));
}

TEST(HostKernels, LambdasMustFitTheParameters) {
  const ElementwiseKernel kernel("T x, raw T y", "float32 z", "z = x", "fit");
  using Raw = RawView<float>;
  expect_error<ValueError>({"fit", "2 inputs and outputs, the kernel 3"},
                           [&] { kernel.on_cpu([](float x, float& z) { z = x; }); });
  expect_error<ValueError>({"parameter y", "RawView"},
                           [&] { kernel.on_cpu([](float x, float, float& z) { z = x; }); });
  expect_error<ValueError>({"parameter z", "reference"},
                           [&] { kernel.on_cpu([](float, Raw, float) {}); });
  expect_error<ValueError>({"parameter x", "value"},
                           [&] { kernel.on_cpu([](float&, Raw, float& z) { z = 0; }); });
  expect_error<ValueError>({"parameter z", "float32", "float64"},
                           [&] { kernel.on_cpu([](float x, Raw, double& z) { z = x; }); });
  EXPECT_NO_THROW(kernel.on_cpu([](float x, Raw) { return x; }));
}

TEST(HostKernels, ElementwiseOfALambda) {
  const Array x = floats({20, 7}), y = floats({7}, 1);
  expect_equal<float>(elementwise(x, y, [](float a, float b) { return a > b ? a - b : 0.f; }),
                      relu(subtract(x, y)));
  const KernelOutputs two = elementwise(x, 2, [](float a, float b, float& sum, double& product) {
    sum = a + b;
    product = double(a) * b;
  });
  expect_equal<float>(two[0], add(x, 2));
  expect_equal<double>(two[1], multiply(x.astype(Dtype::kFloat64), 2));
  const Array out = zeros({20, 7}, dtype::float32);
  elementwise(x, out, [](float a, float& b) { b += 2 * a; });
  expect_equal<float>(out, multiply(x, 2));
  expect_equal<int64_t>(elementwise(x.T(), [](KernelIndex at, float) { return at.i; }),
                        arange(140).reshape({7, 20}));
  expect_error<DtypeError>({"type is mismatched", "float64"}, [&] {
    elementwise(x.astype(Dtype::kFloat64), [](float a) { return a; });
  });
  expect_error<std::runtime_error>({"from the lambda"}, [&] {
    elementwise(floats({1 << 18}), [](float a) {
      if (a == 77) throw std::runtime_error("from the lambda");
      return a;
    });
  });
}

// As the library's own operations: what is read is what was there before the call.
TEST(HostKernels, InputsThatOverlapOutputsAreReadFirst) {
  const auto shifted = [](const Array& from, const Array& to) {
    elementwise(from, to, [](float a, float& b) { b = a; });
  };
  const Array f = floats({6});
  shifted(f(Slice(0, 5)), f(Slice(1, 6)));
  EXPECT_EQ(f.to_vector<float>(), (std::vector<float>{0, 0, 1, 2, 3, 4}));
  shifted(f(Slice(none, none, -1)), f);
  EXPECT_EQ(f.to_vector<float>(), (std::vector<float>{4, 3, 2, 1, 0, 0}));
  elementwise(f, f, [](float a, float& b) { b = a + 1; });  // in place
  EXPECT_EQ(f.to_vector<float>(), (std::vector<float>{5, 4, 3, 2, 1, 1}));
  const Array square = floats({3, 3}), before = square.T().copy();
  shifted(square.T(), square);
  expect_equal<float>(square, before);
  shifted(square[0], square);  // a row into all rows
  EXPECT_EQ(square.to_vector<float>(), (std::vector<float>{0, 3, 6, 0, 3, 6, 0, 3, 6}));
}

float twice(float x) { return 2 * x; }
void twice_to(float x, float& y) noexcept { y = 2 * x; }

TEST(HostKernels, EveryKindOfFunction) {
  const Array x = floats({5}), doubled = multiply(x, 2);
  expect_equal<float>(elementwise(x, [](float v) noexcept { return 2 * v; }), doubled);
  expect_equal<float>(elementwise(x, [](float v, float& y) noexcept { y = 2 * v; }), doubled);
  expect_equal<float>(elementwise(x, twice), doubled);
  expect_equal<float>(elementwise(x, &twice_to), doubled);
  expect_equal<float>(elementwise(x, std::function<float(float)>(twice)), doubled);
  // Each element starts with the captured value.
  expect_equal<float>(elementwise(x, [count = 1.0f](float v) mutable { return v * ++count; }),
                      doubled);
  expect_equal<float>(Array(ElementwiseKernel("T x", "T y", "y = 2 * x").on_cpu(twice)(x)),
                      doubled);
  const Array squares = ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0")
                            .on_cpu(
                                0.0f, [](float v) noexcept { return v * v; },
                                [k = 0](float a, float b) mutable { return a + b + float(k); },
                                [k = 1.0f](float a) mutable noexcept { return k *= a; })(x);
  EXPECT_EQ(squares.item<float>(), 30);
  EXPECT_EQ(Array(reduce({x}, 0.0f, twice, std::plus<>(), twice)).item<float>(), 40);
}

TEST(HostKernels, Reductions) {
  const auto norm =
      ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
          .on_cpu(
              0.0f, [](float x) { return x * x; }, [](float a, float b) { return a + b; },
              [](float a) { return std::sqrt(a); })
          .on_cpu(
              0.0, [](double x) { return x * x; }, [](double a, double b) { return a + b; },
              [](double a, double& y) { y = std::sqrt(a); });
  for (const Shape& shape : {Shape{30, 500}, Shape{3, 100000}, Shape{100000, 3}, Shape{7, 1}}) {
    const Array x = remainder(floats(shape), 11), d = x.astype(Dtype::kFloat64);
    for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}}) {
      for (const bool keep : {false, true}) {
        const Array expected = sqrt(sum(square(d), {axes, keep}));
        const Array wide = norm.call({d}, axes, keep), narrow = norm.call({x}, axes, keep);
        ASSERT_EQ(wide.shape(), expected.shape());
        EXPECT_TRUE(all(less(absolute(subtract(wide, expected)), 1e-9)).item<bool>())
            << shape.ndim();
        EXPECT_TRUE(all(less(absolute(subtract(narrow, expected)), multiply(expected, 1e-4) + 1e-9))
                        .item<bool>());
      }
    }
    expect_equal<double>(norm(d.T(), 0), norm(d, 1));
  }
  EXPECT_EQ(Array(norm(zeros({0, 3}, dtype::float32), 0)).to_vector<float>(),
            std::vector<float>(3, 0));
  EXPECT_EQ(Array(norm(zeros({0, 3}, dtype::float32), 1)).shape(), Shape{0});
}

TEST(HostKernels, ReduceOfLambdas) {
  struct Extremes {
    float low, high;
  };
  const Array x = remainder(floats({40, 50}), 17), y = floats({50});
  const KernelOutputs both = reduce(
      {x}, Extremes{1e9f, -1e9f},
      [](float v) {
        return Extremes{v, v};
      },
      [](Extremes a, Extremes b) {
        return Extremes{std::min(a.low, b.low), std::max(a.high, b.high)};
      },
      [](Extremes a, float& low, float& high) {
        low = a.low;
        high = a.high;
      },
      Axes{1});
  expect_equal<float>(both[0], amin(x, 1));
  expect_equal<float>(both[1], amax(x, 1));
  const Array dots = reduce(
      {x, y}, 0.0, [](float a, float b) { return double(a) * b; },
      [](double a, double b) { return a + b; }, [](double a) { return a; }, Axes{1});
  expect_equal<double>(dots,
                       sum(multiply(x.astype(Dtype::kFloat64), y.astype(Dtype::kFloat64)), 1));
}

TEST(ReductionKernels, ArgumentsAreChecked) {
  const auto plus = [](float a, float b) { return a + b; };
  const auto same = [](float a) { return a; };
  const auto kernel = ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
                          .on_cpu(0.f, same, plus, same);
  const Array x = floats({4, 5});
  const Array out = zeros({5}, dtype::float32);
  EXPECT_TRUE(Array(kernel.call({x}, Axes{0}, false, out)).same_body(out));
  expect_equal<float>(out, sum(x, 0));
  expect_error<ShapeError>({"out has shape (5,)", "(4,)"},
                           [&] { kernel.call({x}, Axes{1}, false, out); });
  expect_error<ValueError>({"expected 1, got 2"}, [&] { kernel.call({x, x}); });
  const ReductionKernel two("T x", "T y, T z", "x", "a + b", "y = a; z = a", "0", "two");
  expect_error<ValueError>({"out is for kernels with one output"},
                           [&] { two.call({x}, Axes{}, false, out); });
  const auto raw =
      ReductionKernel("T x, raw T y", "T z", "x * y[_j]", "a + b", "z = a", "0", "raw");
  expect_error<DeviceError>({"raw", "cpu:0"}, [&] { raw.call({x, x}); });
  const auto largest = ReductionKernel("T x", "T y", "x", "a > b ? a : b", "y = a", "", "largest")
                           .on_cpu(-1.f, same, plus, same);
  expect_error<ValueError>({"largest", "without an identity"}, [&] {
    largest(zeros({0, 2}, dtype::float32));
  });
}

TEST(UserKernels, TextsAreRemembered) {
  const auto total = cuda::reduce("T x", "T y", "x", "a + b", "y = a", "0", "remembered");
  clear_memo();  // kernels in use stay valid
  expect_error<DeviceError>({"remembered", "cpu:0"}, [&] { total(floats({3})); });
  expect_error<ValueError>({"remembered", "expected 1, got 2"}, [&] {
    total.call({floats({3}), floats({3})});
  });
}

TEST(UserKernels, OldFormArguments) {
  const ElementwiseKernel kernel = cuda::elementwise(
      "float* y, const float* x, float c, unsigned int k", "y[i] = c * x[i]", "scale");
  expect_error<DeviceError>({"scale", "cpu:0"}, [&] { kernel(floats({3}), floats({3}), 2, 1); });
  expect_error<ValueError>({"'string s'"}, [] { cuda::elementwise("string s", "", "k"); });
  expect_error<ValueError>({"float* i", "reserved"},
                           [] { cuda::elementwise("float* i", "", "k"); });
  const auto host = kernel.on_cpu([](KernelIndex at, RawView<float> y, RawView<float> x, float c,
                                     uint32_t) { y[at.i] = c * x[at.i]; });
  const Array x = floats({3, 4}), y = zeros({3, 4}, dtype::float32);
  host(y, x, 2, 1);
  expect_equal<float>(y, multiply(x, 2));
}

TEST(UserKernels, OldFormTakesOptions) {
  KernelOptions options;
  options.preamble = "#define TWICE(x) (2 * (x))";
  options.options = {"-DFACTOR=3"};
  const auto kernel =
      cuda::elementwise("float* y, const float* x", "y[i] = TWICE(x[i])", "old", options);
  expect_error<DeviceError>({"old", "cpu:0"}, [&] { kernel(floats({3}), floats({3})); });
  const auto host = kernel.on_cpu(
      [](KernelIndex at, RawView<float> y, RawView<float> x) { y[at.i] = 2 * x[at.i]; });
  const Array y = zeros({3}, dtype::float32);
  host(y, floats({3}));
  expect_equal<float>(y, multiply(floats({3}), 2));
}

TEST(UserKernels, OldFormReductions) {
  const ReductionKernel dot = cuda::reduce("const float* x, const float* y, float c",
                                           "c * x[i] * y[i]", "a + b", "0", "old_dot");
  const Array x = floats({3});
  expect_error<DeviceError>({"old_dot", "cpu:0", "reduce()"}, [&] { dot.call({x, x, 2}); });
  expect_error<ValueError>({"old_dot", "expected 3", "got 1"}, [&] { dot(x); });
  expect_error<ValueError>({"old_dot", "c is not a pointer", "(3,)"}, [&] { dot.call({x, x, x}); });
  expect_error<ValueError>({"old_dot", "all elements", "(0,)"}, [&] { dot.call({x, x, 2}, {0}); });
  expect_error<ValueError>({"old_dot", "two lists"}, [&] {
    dot.on_cpu(
        0.0f, [](float a, float b, float c) { return a * b * c; },
        [](float a, float b) { return a + b; }, [](float a) { return a; });
  });
  expect_error<ValueError>({"'string s'"},
                           [] { cuda::reduce("string s", "s", "a + b", "0", "old_bad"); });
  expect_error<ValueError>({"two parameters", "x"}, [] {
    cuda::reduce("float* x, float* x", "x[i]", "a + b", "0", "old_bad");
  });
}

TEST(RawKernels, NeedADevice) {
  const RawKernel kernel = cuda::raw("code", "k", {"--use_fast_math"});
  expect_error<DeviceError>({"k", "cpu:0", "to_gpu"}, [&] { kernel({1}, {1}, {floats({3})}); });
  EXPECT_EQ(error_of<DeviceError>([&] { kernel({1}, {1}, {floats({3})}); }).find("on_cpu"),
            std::string::npos);
  expect_error<DeviceError>({"k"}, [&] { kernel.linear_launch(10, {floats({3})}); });
  EXPECT_NO_THROW(kernel.linear_launch(0, {floats({3})}));
  expect_error<ValueError>({"linear_launch", "-1"},
                           [&] { kernel.linear_launch(-1, {floats({3})}); });
  expect_error<IoError>({"/nowhere/file.cubin"}, [] { Module::load_file("/nowhere/file.cubin"); });
  expect_error<IoError>({"cannot read /proc"}, [] { Module::load_file("/proc"); });
  expect_error<ValueError>({"empty image"}, [] { Module::load(""); });
  const Module module = Module::compile("extern \"C\" __global__ void f() {}");
  EXPECT_EQ(module.get_function("f").name(), "f");
  expect_error<DeviceError>({"f", "cpu:0"},
                            [&] { module.get_function("f")({1}, {1}, {floats({3})}); });
  expect_error<DeviceError>({"v", "cpu:0"},
                            [&] { module.get_global_var("v", {1}, Dtype::kFloat32, cpu(0)); });
}

TEST(Memoize, RemembersByArgumentsAndDevice) {
  int calls = 0;
  const auto doubled = memoize([&](int a, std::string b) {
    ++calls;
    return b + std::to_string(2 * a);
  });
  EXPECT_EQ(doubled(2, "x"), "x4");
  EXPECT_EQ(doubled(2, "x"), "x4");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(doubled(3, "x"), "x6");
  EXPECT_EQ(calls, 2);
  clear_memo();
  EXPECT_EQ(doubled(2, "x"), "x4");
  EXPECT_EQ(calls, 3);
  int made = 0;
  const auto shared = memoize([&](int) { return ++made; });
  const auto by_device = memoize([&](int) { return ++made; }, true);
  {
    const DeviceScope first(cpu(0));
    shared(1);
    by_device(1);
    EXPECT_EQ(made, 2);
  }
  const DeviceScope second(cpu(1));
  EXPECT_EQ(shared(1), 1);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(by_device(1), 3);
}

}  // namespace
}  // namespace catena
