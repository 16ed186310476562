// What Chainer's and CuPy's tutorials do with arrays, devices and kernels; the names are those of
// the inventory's rows.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "array/devices.h"
#include "catena/array/cuda.h"
#include "catena/array/kernel.h"
#include "catena/array/linalg.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/core/memory.h"
#include "catena/core/memory_pool.h"
#include "catena/testing.h"
#include "catena/testing_markers.h"

namespace catena {
namespace {

using testing::difference;

class ArrayTutorial : public test::OnDevice {
 protected:
  // 0, 1, 2, ... as float32.
  Array counted(const Shape& shape) const { return counting(shape, Dtype::kFloat32); }
  Array floats(const std::vector<float>& list, const Shape& shape) const {
    return on(array(list).astype(Dtype::kFloat32).reshape(shape));
  }
};
CATENA_ON_DEVICES(ArrayTutorial);

TEST_P(ArrayTutorial, TUT_13_ScopesAndTransfers) {
  Array inside;
  {
    const DeviceScope scope(GetParam());
    inside = arange(6);
  }
  EXPECT_EQ(inside.device(), GetParam());
  const Array moved = cuda::to_gpu(arange(6, cpu(0)), GetParam());
  EXPECT_EQ(moved.device(), GetParam());
  EXPECT_EQ(difference(moved, inside), "");
  EXPECT_EQ(difference(cuda::to_cpu(moved), inside.get()), "");
}

Array add1(const Array& x) {
  const auto user = cuda::using_device(x);
  return x + 1;
}

TEST_P(ArrayTutorial, TUT_14_FormsOfGetDevice) {
  const Array x = counted({3});
  EXPECT_EQ(add1(x).device(), GetParam());
  EXPECT_EQ(difference(add1(x), floats({1, 2, 3}, {3})), "");
  const Device before = current_device();
  cuda::get_device(x).use();
  EXPECT_EQ(current_device(), GetParam().is_cpu() ? before : GetParam());
  before.use();
  {
    const auto user = cuda::using_device(GetParam());
    EXPECT_EQ(current_device(), GetParam());
  }
  EXPECT_EQ(current_device(), before);
}

TEST_P(ArrayTutorial, TUT_15_SoftplusOnEveryDevice) {
  const auto softplus = [](const Array& x) {
    return maximum(0, x) + log1p(exp(negative(absolute(x))));
  };
  const Array x = on(array({-30.0, -1.0, 0.0, 2.0, 800.0}));
  const Array y = softplus(x).get();
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_NEAR(y(i).item<double>(), std::log1p(std::exp(x(i).item<double>())), 1e-12) << i;
  EXPECT_EQ(y(4).item<double>(), 800);
}

TEST_P(ArrayTutorial, TUT_21_KernelsOfMulAdd) {
  const auto forward = ElementwiseKernel("float32 x, float32 y, float32 z", "float32 w",
                                         "w = x * y + z", "muladd_fwd")
                           .on_cpu([](float x, float y, float z, float& w) { w = x * y + z; });
  const auto backward =
      ElementwiseKernel("T x, T y, T gw", "T gx, T gy", "gx = y * gw; gy = x * gw", "muladd_bwd")
          .on_cpu([](float x, float y, float gw, float& gx, float& gy) {
            gx = y * gw;
            gy = x * gw;
          });
  const Array x = counted({4, 3}), y = x + 2, z = x * 3;
  EXPECT_EQ(difference(forward(x, y, z), x * y + z), "");
  const KernelOutputs gradients = backward(x, y, z);
  EXPECT_EQ(difference(gradients[0], y * z), "");
  EXPECT_EQ(difference(gradients[1], x * z), "");
}

TEST_P(ArrayTutorial, TUT_35_SquaredDifference) {
  const auto squared_diff = ElementwiseKernel("float32 x, float32 y", "float32 z",
                                              "z = (x - y) * (x - y)", "squared_diff")
                                .on_cpu([](float x, float y, float& z) { z = (x - y) * (x - y); });
  const Array x = counted({2, 5}), y = counted({5});
  EXPECT_EQ(difference(squared_diff(x, y), floats({0, 0, 0, 0, 0, 25, 25, 25, 25, 25}, {2, 5})),
            "");
  const Array expected = floats({25, 16, 9, 4, 1, 0, 1, 4, 9, 16}, {2, 5});
  EXPECT_EQ(difference(squared_diff(x, 5), expected), "");
  const Array z = floats({0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {2, 5});
  EXPECT_TRUE(Array(squared_diff(x, 5, z)).same_body(z));
  EXPECT_EQ(difference(z, expected), "");
}

TEST_P(ArrayTutorial, TUT_36_GenericKernels) {
  const auto generic = ElementwiseKernel("T x, T y", "T z", "T diff = x - y; z = diff * diff",
                                         "squared_diff_generic")
                           .on_cpu<float, double>([]<class T>(T x, T y, T& z) {
                             const T diff = x - y;
                             z = diff * diff;
                           });
  for (const Dtype d : {Dtype::kFloat32, Dtype::kFloat64}) {
    const Array x = counting({2, 5}, d), y = counting({5}, d);
    EXPECT_EQ(difference(generic(x, y), square(x - y)), "");
  }
  const auto mixed =
      ElementwiseKernel("X x, Y y", "Z z", "z = (x - y) * (x - y)", "squared_diff_super_generic")
          .on_cpu([](float x, double y, double& z) { z = (x - y) * (x - y); });
  const Array x = counted({2, 5}), y = counting({5}, Dtype::kFloat64), z = zeros_like(x * 1.0);
  EXPECT_THROW(mixed(x, y), DtypeError) << "nothing says what Z is";
  const Array out = on(zeros({2, 5}));
  mixed(x, y, out);
  EXPECT_EQ(difference(out, square(x.astype(Dtype::kFloat64) - y)), "");
}

TEST_P(ArrayTutorial, TUT_37_RawArguments) {
  const auto add_reverse =
      ElementwiseKernel("T x, raw T y", "T z", "z = x + y[n - i - 1]", "add_reverse")
          .on_cpu([](KernelIndex at, float x, RawView<float> y, float& z) {
            z = x + y[at.n - at.i - 1];
          });
  const Array x = counted({5}), y = counted({5}) * 10.0f;
  EXPECT_EQ(difference(add_reverse(x, y), x + y(Slice(none, none, -1))), "");
  const auto all_raw = ElementwiseKernel("raw T x", "raw T y", "y[i] = x[n - i - 1]", "reverse")
                           .on_cpu([](KernelIndex at, RawView<float> x, RawView<float> y) {
                             y[at.i] = x[at.n - at.i - 1];
                           });
  const Array out = counted({5});
  EXPECT_THROW(all_raw(x, out), ValueError) << "nothing says how large";
  all_raw.call({y, out}, 5);
  EXPECT_EQ(difference(out, y(Slice(none, none, -1))), "");
}

TEST_P(ArrayTutorial, TUT_38_LengthsOfRows) {
  const auto l2norm =
      ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
          .on_cpu(
              0.0f, [](float x) { return x * x; }, [](float a, float b) { return a + b; },
              [](float a) { return std::sqrt(a); });
  EXPECT_EQ(
      difference(l2norm(counted({2, 5}), 1), floats({5.47722578f, 15.96871948f}, {2}), 1e-6, 1e-6),
      "");
}

TEST_P(ArrayTutorial, TUT_39_PoolsReuseMemory) {
  const MemoryPool own;
  set_allocator(own.allocator());
  const auto address = [&](int64_t bytes) {
    const Array a = empty({bytes}, {Dtype::kUInt8, GetParam()});
    return a.raw_data();
  };
  const void* const first = address(5 << 20);
  EXPECT_EQ(address(5 << 20), first) << "freed memory of the same size is used again";
  const Array held = empty({5 << 20}, {Dtype::kUInt8, GetParam()});
  EXPECT_NE(address(9 << 20), held.raw_data());
  set_allocator({});
}

TEST_P(ArrayTutorial, TUT_40_SeedsRepeatNumbers) {
  const DeviceScope scope(GetParam());
  const auto draw = [] {
    return std::vector<Array>{random::uniform({3}),   random::normal({3}, 0, 1, dtype::float32),
                              random::lognormal({3}), random::randint(0, 100, {3}),
                              random::rand({3}),      random::randn({3})};
  };
  random::seed(11);
  const std::vector<Array> first = draw(), later = draw();
  random::seed(11);
  const std::vector<Array> again = draw();
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(difference(first[i], again[i]), "") << i;
    EXPECT_NE(difference(first[i], later[i]), "") << i;
  }
  EXPECT_EQ(first[1].dtype(), Dtype::kFloat32);
  RandomState a(5), b(5);
  EXPECT_EQ(difference(a.uniform({4}), b.uniform({4})), "");
}

TEST_P(ArrayTutorial, TUT_44_TheFirstInterface) {
  const Array moved = cuda::to_gpu(ones({5, 4, 3}, Dtype::kFloat32), GetParam());
  const auto user = cuda::using_device(GetParam());
  EXPECT_EQ(difference(moved, GetParam().is_cpu() ? ones({5, 4, 3}, Dtype::kFloat32)
                                                  : cuda::ones({5, 4, 3})),
            "");
  const Device before = current_device();
  cuda::use_device(GetParam());
  EXPECT_EQ(current_device(), GetParam());
  cuda::use_device(before);
  const Array across = cuda::copy(moved, {}, cpu(1));
  EXPECT_EQ(across.device(), cpu(1));
  EXPECT_EQ(difference(across, moved.get()), "");
}

TEST_P(ArrayTutorial, TUT_45_TransfersOfToday) {
  const Array here = on(array({1, 2, 3})), other = array({4, 5, 6}, cpu(1));
  const Array both = here + other.to(GetParam());
  EXPECT_EQ(both.get().to_vector<int64_t>(), (std::vector<int64_t>{5, 7, 9}));
  EXPECT_EQ(cuda::asnumpy(both).to_vector<int64_t>(), (std::vector<int64_t>{5, 7, 9}));
  if (GetParam() != cpu(1)) {
    EXPECT_THROW(here + other, DeviceError);
  }
}

}  // namespace
}  // namespace catena
