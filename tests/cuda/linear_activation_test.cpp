// Linear layers with activations on GPUs, by each provider, against float64 on the CPU.
#include "catena/array/creation.h"
#include "catena/core/graph.h"
#include "catena/kernels/linear.h"
#include "gpu.h"

namespace catena {
namespace {

using namespace test;

const Device kGpu = cuda_device(0);
constexpr LinearActivation kFunctions[] = {LinearActivation::kRelu, LinearActivation::kGelu,
                                           LinearActivation::kGeluTanh};
constexpr Dtype kDtypes[] = {Dtype::kBFloat16, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64};

struct Problem {
  int64_t rows, in, out;
  bool bias, before;
  int64_t offset;  // of x, W, bias and results from their memory, in elements
  std::string text(Dtype dtype, LinearActivation f) const {
    return message(dtype, " function ", int(f), " ", rows, " x ", in, " x ", out,
                   bias ? " bias" : "", before ? " before" : "", " offset ", offset);
  }
};

// The same numbers, `offset` elements behind the beginning of an allocation.
Array placed(const Array& a, int64_t offset) {
  const Array memory = zeros({a.size() + offset}, {a.dtype(), kGpu});
  const Array place = memory(Slice(offset, a.size() + offset)).reshape(a.shape());
  place.assign(a.to(kGpu));
  return place;
}

struct Forward {
  Array x, W, bias, before, y;
  LinearActivationCall call(LinearActivation f) const {
    return {f, &x, &W, bias.defined() ? &bias : nullptr, before.defined() ? &before : nullptr, &y};
  }
  Forward on_gpu(Dtype dtype, int64_t offset) const {
    const auto move = [&](const Array& a) {
      return a.defined() ? placed(a.astype(dtype), offset) : Array();
    };
    return {move(x), move(W), move(bias), move(before), move(y)};
  }
};

// In float64, of numbers that all dtypes hold.
Forward forward_case(const Problem& p, bool before) {
  const auto draw = [](const Shape& shape, double most) {
    return real_numbers(shape, Dtype::kBFloat16, -most, most).astype(Dtype::kFloat64);
  };
  const Array y = zeros({p.rows, p.out}, Dtype::kFloat64);
  return {draw({p.rows, p.in}, 1), draw({p.out, p.in}, 2 / std::sqrt(double(p.in))),
          p.bias ? draw({p.out}, 1) : Array(), before ? zeros_like(y) : Array(), y};
}

double rounding_of(Dtype d) {
  return d == Dtype::kBFloat16  ? 0x1p-8
         : d == Dtype::kFloat16 ? 0x1p-10
         : d == Dtype::kFloat32 ? 1e-5
                                : 1e-12;
}

const std::vector<Problem> kProblems = {
    {64, 32, 96, true, true, 0},   {64, 32, 96, true, false, 0},    {64, 32, 96, false, true, 0},
    {64, 32, 96, false, false, 0}, {129, 72, 520, true, true, 0},   {64, 32, 96, true, true, 1},
    {50, 30, 100, true, true, 0},  {33, 17, 25, true, true, 3},     {1, 64, 64, true, true, 0},
    {40, 16, 1, true, true, 0},    {1024, 512, 2048, true, true, 0}};

// Rows of whole packs and others, addresses at packs and others.
TEST(CudaLinearActivation, AgreesWithDoubleByEachProvider) {
  CATENA_NEEDS_GPUS(1);
  for (const char* rules : {"", "linear_activation/cublaslt:off"}) {
    const ProviderScope scope(rules);
    for (const Dtype dtype : kDtypes)
      for (const LinearActivation f : kFunctions)
        for (const Problem& p : kProblems) {
          SCOPED_TRACE(p.text(dtype, f) + rules);
          const Forward expected = forward_case(p, p.before && f != LinearActivation::kRelu),
                        got = expected.on_gpu(dtype, p.offset);
          kernels::linear_activation(cpu(0), expected.call(f));
          kernels::linear_activation(kGpu, got.call(f));
          expect_close(got.y, expected.y, 2 * rounding_of(dtype), "y");
          if (expected.before.defined())
            expect_close(got.before, expected.before, rounding_of(dtype), "before");
        }
  }
}

// What the library computes, and what it is not asked for.
TEST(CudaLinearActivation, IsOneProductWhereTheLibraryHasIt) {
  CATENA_NEEDS_GPUS(1);
  const auto cublaslt = kernels::linear_activation.provider(DeviceType::kCuda, "cublaslt");
  const auto takes = [&](const Problem& p, Dtype dtype, LinearActivation f) {
    return cublaslt(forward_case(p, p.before).on_gpu(dtype, p.offset).call(f));
  };
  constexpr auto kTanh = LinearActivation::kGeluTanh;
  const Problem aligned{256, 64, 512, true, true, 0};
  EXPECT_TRUE(takes(aligned, Dtype::kBFloat16, kTanh));
  EXPECT_TRUE(takes(aligned, Dtype::kFloat16, kTanh));
  EXPECT_TRUE(takes({256, 64, 512, true, false, 0}, Dtype::kBFloat16, kTanh));
  EXPECT_FALSE(takes(aligned, Dtype::kFloat32, kTanh));
  EXPECT_FALSE(takes(aligned, Dtype::kFloat64, kTanh));
  EXPECT_FALSE(takes(aligned, Dtype::kBFloat16, LinearActivation::kGelu));
  EXPECT_FALSE(takes({256, 64, 512, true, true, 1}, Dtype::kBFloat16, kTanh));
  EXPECT_FALSE(takes({256, 64, 500, true, true, 0}, Dtype::kBFloat16, kTanh));
  EXPECT_FALSE(takes({256, 0, 512, true, true, 0}, Dtype::kBFloat16, kTanh));
}

// A plan serves calls with other addresses.
TEST(CudaLinearActivation, FollowsTheAddressesOfEachCall) {
  CATENA_NEEDS_GPUS(1);
  const Problem p{128, 64, 256, true, true, 0};
  std::vector<Forward> kept, expected;
  for (int i = 0; i < 4; ++i) {
    expected.push_back(forward_case(p, true));
    kept.push_back(expected.back().on_gpu(Dtype::kBFloat16, 0));
    kernels::linear_activation(kGpu, kept.back().call(LinearActivation::kGeluTanh));
  }
  for (size_t i = 0; i < 4; ++i) {
    kernels::linear_activation(cpu(0), expected[i].call(LinearActivation::kGeluTanh));
    expect_close(kept[i].y, expected[i].y, 0x1p-7, "y");
    expect_close(kept[i].before, expected[i].before, 0x1p-8, "before");
  }
}

// In place and not, with sums or without, over what is there or on top of it; columns for one strip
// of threads and for many, rows in one part and in many.
TEST(CudaLinearActivationGrad, AgreesWithDouble) {
  CATENA_NEEDS_GPUS(1);
  struct Case {
    int64_t rows, columns, offset;
  };
  for (const Dtype dtype : kDtypes)
    for (const LinearActivation f : kFunctions)
      for (const Case& c : {Case{1, 1, 0},
                            {5, 24, 0},
                            {300, 264, 0},
                            {300, 264, 1},
                            {77, 25, 0},
                            {20000, 8, 0},
                            {1024, 768, 0},
                            {9000, 33, 0},
                            {2, 70000, 0}}) {
        SCOPED_TRACE(message(dtype, " function ", int(f), " ", c.rows, " x ", c.columns));
        const Shape shape{c.rows, c.columns};
        const auto wide = [](const Array& a) { return a.astype(Dtype::kFloat64); };
        // Numbers of bfloat16 that the dtype has: of the least ones float16 has not all.
        const auto drawn = [&](const Shape& of, auto... limits) {
          return wide(real_numbers(of, Dtype::kBFloat16, limits...).astype(dtype));
        };
        const Array gy = drawn(shape, -1, 1.5), kept = drawn(shape, -4, 4), gx = zeros_like(gy),
                    sums = drawn({c.columns});
        const Array own_gy = placed(gy.astype(dtype), c.offset),
                    own_kept = placed(kept.astype(dtype), c.offset),
                    own_gx = placed(gx.astype(dtype), c.offset),
                    own_sums = placed(sums.astype(dtype), c.offset);
        for (const bool accumulate : {true, false}) {
          kernels::linear_activation_grad(cpu(0), {f, &gy, &kept, &gx, &sums, accumulate});
          kernels::linear_activation_grad(kGpu,
                                          {f, &own_gy, &own_kept, &own_gx, &own_sums, accumulate});
          expect_close(own_gx, gx, rounding_of(dtype), "gx");
          // Terms of both signs: what their float sums lack is measured by their number.
          const double sum_error = dtype == Dtype::kFloat32 ? 1e-7 * std::sqrt(double(c.rows)) : 0;
          expect_close(own_sums, sums, rounding_of(dtype) + sum_error, "sums");
        }
        const Array again = own_sums.copy();
        kernels::linear_activation_grad(kGpu, {f, &own_gy, &own_kept, &own_gx, &own_sums, false});
        expect_equal(own_sums, again, "equal bits");
        kernels::linear_activation_grad(kGpu, {f, &own_gy, &own_kept, &own_gy, nullptr, false});
        expect_equal(own_gy, own_gx, "in place, without sums");
      }
}

}  // namespace
}  // namespace catena
