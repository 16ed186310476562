// The hand-written kernel families on GPUs against the CPU.
#include <array>

#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/core/config.h"
#include "catena/kernels/index.h"
#include "catena/kernels/loss.h"
#include "catena/kernels/optimizer.h"
#include "catena/kernels/random.h"
#include "catena/kernels/softmax.h"
#include "deterministic_scope.h"
#include "gpu.h"

namespace catena {
namespace {

using namespace test;

const Device kGpu = cuda_device(0);

// (outer, classes, inner) that reach every kernel: warps, blocks, long rows, columns, odd sizes.
const std::vector<Shape>& softmax_shapes() {
  static const std::vector<Shape> all = {{100, 10, 1},  {1, 1, 1},    {7, 32, 1},   {33, 1000, 1},
                                         {5, 1024, 1},  {6, 4096, 1}, {3, 9999, 1}, {2, 16384, 1},
                                         {2, 50257, 1}, {4, 7, 5},    {2, 300, 77}, {700, 64, 1}};
  return all;
}

class CudaSoftmax : public ::testing::TestWithParam<Dtype> {};

TEST_P(CudaSoftmax, ForwardAndGradient) {
  CATENA_NEEDS_GPUS(1);
  const Dtype dtype = GetParam();
  for (const Shape& shape : softmax_shapes()) {
    for (bool log : {false, true}) {
      const std::string what = message(log ? "log_softmax " : "softmax ", shape, " ", dtype);
      const Array x = real_numbers(shape, dtype, -8, 8), gy = real_numbers(shape, dtype);
      const Array x64 = x.astype(Dtype::kFloat64), y64 = empty(shape, Dtype::kFloat64),
                  gx64 = empty(shape, Dtype::kFloat64);
      kernels::softmax(cpu(), {x64, log, y64});
      const Array y = empty(shape, {dtype, kGpu}), gx = empty(shape, {dtype, kGpu});
      kernels::softmax(kGpu, {x.to(kGpu), log, y});
      expect_close(y, y64, rounding(dtype), what);
      // The gradient from the same rounded result.
      kernels::softmax_grad(
          cpu(), {y.to_cpu().astype(Dtype::kFloat64), gy.astype(Dtype::kFloat64), log, gx64});
      kernels::softmax_grad(kGpu, {y, gy.to(kGpu), log, gx});
      expect_close(gx, gx64, 20 * rounding(dtype), what + " gradient");
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(CudaSoftmax, UnalignedRows) {
  CATENA_NEEDS_GPUS(1);
  const Dtype dtype = GetParam();
  const Array all = real_numbers({1 + 12 * 256}, dtype);
  const Array x = all(Slice(1, none)).reshape({12, 256, 1}),
              gpu_x = all.to(kGpu)(Slice(1, none)).reshape({12, 256, 1});
  const Array expected = empty({12, 256, 1}, Dtype::kFloat64),
              y = empty({12, 256, 1}, {dtype, kGpu});
  kernels::softmax(cpu(), {x.astype(Dtype::kFloat64).contiguous(), false, expected});
  kernels::softmax(kGpu, {gpu_x, false, y});
  expect_close(y, expected, rounding(dtype), "unaligned rows");
}

// Losses are means of a few samples or of many, with labels to ignore and labels out of range.
TEST_P(CudaSoftmax, CrossEntropy) {
  CATENA_NEEDS_GPUS(1);
  const Dtype dtype = GetParam(), wide = dtype == Dtype::kFloat64 ? dtype : Dtype::kFloat32;
  for (const Shape& shape : softmax_shapes()) {
    for (int variant = 0; variant < 4; ++variant) {
      const bool normalize = variant != 1;
      const std::string what = message("cross entropy ", shape, " ", dtype, " variant ", variant);
      const Array x = real_numbers(shape, dtype, -8, 8);
      std::vector<int32_t> labels(static_cast<size_t>(shape[0] * shape[2]));
      for (auto& t : labels)
        t = int32_t(variant == 3 ? -1 : between(variant == 2 ? -1 : 0, shape[1] - 1));
      const Array t = array(labels, {shape[0], shape[2]}, cpu()), gpu_t = t.to(kGpu);
      const Array x64 = x.astype(Dtype::kFloat64), gpu_x = x.to(kGpu);
      const Array lse64 = empty({2, shape[0], shape[2]}, Dtype::kFloat64),
                  count64 = empty({}, Dtype::kFloat64), loss64 = empty({}, Dtype::kFloat64);
      const Array lse = empty({2, shape[0], shape[2]}, {wide, kGpu}),
                  count = empty({}, {wide, kGpu}), loss = empty({}, {dtype, kGpu});
      const CrossEntropyCall call64{&x64, &t, -1, normalize, &lse64, &count64, &loss64};
      const CrossEntropyCall call{&gpu_x, &gpu_t, -1, normalize, &lse, &count, &loss};
      kernels::softmax_cross_entropy(cpu(), call64);
      kernels::softmax_cross_entropy(kGpu, call);
      expect_close(lse, lse64, rounding(wide), what + " lse");
      expect_close(count, count64, 0, what + " count");
      expect_close(loss, loss64, rounding(dtype), what + " loss");
      const Array again = empty({}, {dtype, kGpu});
      CrossEntropyCall second = call;
      second.loss = &again;
      kernels::softmax_cross_entropy(kGpu, second);
      expect_equal(again, loss, what + " twice the same bits");
      const Array gloss = full({}, 1.5, dtype), gx64 = empty(shape, Dtype::kFloat64),
                  gx = empty(shape, {dtype, kGpu});
      kernels::softmax_cross_entropy_grad(cpu(), {call64, gloss.astype(Dtype::kFloat64), gx64});
      kernels::softmax_cross_entropy_grad(kGpu, {call, gloss.to(kGpu), gx});
      expect_close(gx, gx64, rounding(dtype), what + " gradient");
      // With factors of the samples, and with what all classes take.
      for (const int parts : {1, 3}) {
        const Array factors = real_numbers({parts, shape[0], shape[2]}, wide, -1, 1),
                    spread = real_numbers({shape[1]}, wide, -1, 1), gpu_factors = factors.to(kGpu),
                    gpu_spread = spread.to(kGpu), factors64 = factors.astype(Dtype::kFloat64),
                    spread64 = spread.astype(Dtype::kFloat64);
        const bool spreads = parts == 3;
        kernels::softmax_cross_entropy_grad(cpu(), {call64, gloss.astype(Dtype::kFloat64), gx64,
                                                    &factors64, spreads ? &spread64 : nullptr});
        kernels::softmax_cross_entropy_grad(
            kGpu, {call, gloss.to(kGpu), gx, &gpu_factors, spreads ? &gpu_spread : nullptr});
        expect_close(gx, gx64, rounding(dtype), message(what, " gradient of ", parts, " factors"));
      }
      // All arithmetic of the accuracy is exact.
      const Array share = empty({}, wide), gpu_share = empty({}, {wide, kGpu});
      kernels::accuracy(cpu(), {x, t, variant == 2, -1, share});
      kernels::accuracy(kGpu, {gpu_x, gpu_t, variant == 2, -1, gpu_share});
      expect_equal(gpu_share, share, what + " accuracy");
      if (HasFatalFailure()) return;
    }
  }
}

void expect_in_place(const std::vector<Shape>& shapes, Dtype dtype) {
  const Dtype wide = dtype == Dtype::kFloat64 ? dtype : Dtype::kFloat32;
  for (const Shape& shape : shapes) {
    const Shape samples = {shape[0], shape[2]};
    std::vector<int32_t> labels(static_cast<size_t>(shape[0] * shape[2]));
    for (auto& t : labels) t = int32_t(between(-1, shape[1] - 1));
    const Array t = array(labels, samples, cpu()), gpu_t = t.to(kGpu);
    for (int variant = 0; variant < 4; ++variant) {
      const bool spreads = variant % 2 == 1, has_factors = variant >= 2;
      const std::string what = message("in place ", shape, " ", dtype, spreads ? " spread" : "",
                                       has_factors ? " factors and z-loss" : "");
      const Array x = real_numbers(shape, dtype, -8, 8), gpu_x = x.to(kGpu),
                  x64 = x.astype(Dtype::kFloat64).contiguous();
      const Array w = real_numbers(samples, wide, 0.5, 2), w64 = w.astype(Dtype::kFloat64),
                  gpu_w = w.to(kGpu);
      const Array spread = full({shape[1]}, 0.125 / double(shape[1]), wide),
                  spread64 = spread.astype(Dtype::kFloat64), gpu_spread = spread.to(kGpu);
      const Array total = full({}, 0.125, wide), total64 = total.astype(Dtype::kFloat64),
                  gpu_total = total.to(kGpu);
      const Array each = real_numbers(samples, wide, 0.5, 2), each64 = each.astype(Dtype::kFloat64),
                  gpu_each = each.to(kGpu);
      // So large that gradients of long rows are normal numbers of float16.
      const double upstream = 4096;
      const Array gloss = full({}, upstream, dtype), gloss64 = gloss.astype(Dtype::kFloat64),
                  gpu_gloss = gloss.to(kGpu);
      const Array losses64 = empty(samples, Dtype::kFloat64), loss64 = empty({}, Dtype::kFloat64),
                  divisor64 = empty({}, Dtype::kFloat64);
      const Array losses = empty(samples, {wide, kGpu}), loss = empty({}, {dtype, kGpu}),
                  divisor = empty({}, {wide, kGpu});
      CrossEntropyInPlaceCall call64{x64,        t,    -1,   losses64, &loss64,
                                     &divisor64, true, true, &gloss64};
      CrossEntropyInPlaceCall call{gpu_x,    gpu_t, -1,   losses,    &loss,
                                   &divisor, true,  true, &gpu_gloss};
      if (spreads) {
        call64.weights = &w64;
        call64.spread = &spread64;
        call64.total = &total64;
        call.weights = &gpu_w;
        call.spread = &gpu_spread;
        call.total = &gpu_total;
      }
      if (has_factors) {
        call64.factors = &each64;
        call.factors = &gpu_each;
        call64.z_loss = call.z_loss = 0.01;
      }
      kernels::softmax_cross_entropy_in_place(cpu(), call64);
      call.losses_only = true;
      kernels::softmax_cross_entropy_in_place(kGpu, call);
      expect_close(losses, losses64, 20 * rounding(wide), what + " losses only");
      expect_equal(gpu_x, x, what + " left alone");
      losses.fill(7);
      call.losses_only = false;
      kernels::softmax_cross_entropy_in_place(kGpu, call);
      expect_close(losses, losses64, 20 * rounding(wide), what + " losses");
      expect_close(divisor, divisor64, 0, what + " divisor");
      expect_close(loss, loss64, 20 * rounding(dtype), what + " loss");
      // Multiplied until probabilities are about 1.
      const auto expect_gradient = [&](const std::string& name) {
        const double factor = double(t.size()) * double(shape[1]) / upstream;
        expect_close(gpu_x.to_cpu().astype(Dtype::kFloat64) * factor, x64 * factor,
                     8 * rounding(dtype), name);
      };
      expect_gradient(what + " gradient");
      for (const Shape& many : {Shape{}, samples}) {
        const Array factors = full(many, 1.5 * upstream, dtype),
                    factors64 = factors.astype(Dtype::kFloat64);
        kernels::scale_samples(cpu(), {x64, factors64, &gloss64});
        kernels::scale_samples(kGpu, {gpu_x, factors.to(kGpu), &gpu_gloss});
        expect_gradient(what + " scaled");
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Rows in shared memory, several for each block; rows that do not fit there; columns; aligned and
// not.
TEST_P(CudaSoftmax, CrossEntropyInPlace) {
  CATENA_NEEDS_GPUS(1);
  expect_in_place(softmax_shapes(), GetParam());
  expect_in_place({{3000, 1001, 1}, {3000, 1008, 1}, {3, 131072, 1}, {3, 131073, 1}}, GetParam());
}
// More rows than blocks, of which one or two fill a multiprocessor.
TEST_P(CudaSoftmax, CrossEntropyInPlaceOfLongRows) {
  CATENA_NEEDS_GPUS(1);
  expect_in_place({{300, 50304, 1}}, GetParam());
}
INSTANTIATE_TEST_SUITE_P(Dtypes, CudaSoftmax, ::testing::ValuesIn(float_dtypes()),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(CudaLoss, ALabelOutOfRangeMakesTheLossNan) {
  CATENA_NEEDS_GPUS(1);
  const Array x = real_numbers({50, 10, 1}, Dtype::kFloat32).to(kGpu);
  std::vector<int32_t> labels(50, 3);
  labels[20] = 10;
  const Array t = array(labels, {50, 1}, kGpu);
  const Array lse = empty({2, 50, 1}, {Dtype::kFloat32, kGpu}),
              count = empty({}, {Dtype::kFloat32, kGpu}), loss = empty({}, {Dtype::kFloat32, kGpu});
  kernels::softmax_cross_entropy(kGpu, {&x, &t, -1, true, &lse, &count, &loss});
  EXPECT_TRUE(std::isnan(loss.item<float>()));
}

class CudaIndexing : public ::testing::TestWithParam<Dtype> {};

// Strict ids of which none is ignored, or one.
const IdRule kStrictIds[] = {{true}, {true, 1}};

// scatter_add in any order and in that of the positions, added to the target or over it, as on the
// CPU.
void expect_same_sums(const Array& source, const Array& positions, const Array& values,
                      const std::string& what, const IdRule& ids = {}) {
  const Array gpu_positions = positions.to(kGpu), gpu_values = values.to(kGpu);
  for (bool accumulate : {true, false}) {
    const Array expected = source.copy();
    kernels::scatter_add(cpu(), {expected, positions, values, accumulate, ids});
    for (bool deterministic : {false, true}) {
      const DeterministicScope scope(deterministic);
      const Array target = source.to(kGpu);
      kernels::scatter_add(kGpu, {target, gpu_positions, gpu_values, accumulate, ids});
      expect_equal(target, expected,
                   message(what, ids.strict ? ", strict" : "", ids.ignored ? ", ignoring" : "",
                           accumulate ? "" : ", over it", deterministic ? ", in order" : ""));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_P(CudaIndexing, TakeAndScatterAdd) {
  CATENA_NEEDS_GPUS(1);
  const Dtype dtype = GetParam();
  for (int i = 0; i < repeats(40) && !HasFatalFailure(); ++i) {
    // Few rows of wide slices, or many rows of narrow ones.
    const bool narrow = i % 5 == 4;
    const int64_t outer = narrow ? between(60, 900) : between(1, 4), extent = between(1, 50),
                  inner = narrow  ? between(1, 3)
                          : i % 3 ? between(1, 300)
                                  : 784,
                  n = between(1, 120);
    const std::string what =
        message("(", outer, ", ", extent, ", ", inner, ") by ", n, " positions, ", dtype);
    const Array source = whole_numbers({outer, extent, inner}, dtype, -9, 9);
    const bool far = i % 2;
    const Array positions =
        whole_numbers({n}, i % 4 < 2 ? Dtype::kInt32 : Dtype::kInt64, int(-extent) * (far ? 3 : 1),
                      int(extent) * (far ? 3 : 1) - 1);
    for (OutOfRange mode : {OutOfRange::kWrap, OutOfRange::kClip}) {
      const Array expected = empty({outer, n, inner}, dtype),
                  out = empty({outer, n, inner}, {dtype, kGpu});
      kernels::take(cpu(), {source, positions, uint8_t(mode), expected});
      kernels::take(kGpu, {source.to(kGpu), positions.to(kGpu), uint8_t(mode), out});
      expect_equal(out, expected, "take " + what);
    }
    for (const IdRule& ids : kStrictIds) {
      if (dtype == Dtype::kBool) continue;  // rows of ids out of range would be no bools
      const Array expected = empty({outer, n, inner}, dtype),
                  out = empty({outer, n, inner}, {dtype, kGpu});
      kernels::take(cpu(), {source, positions, 0, expected, ids});
      kernels::take(kGpu, {source.to(kGpu), positions.to(kGpu), 0, out, ids});
      expect_equal(out, expected, "take of strict ids " + what);
    }
    if (far) continue;
    const Array values = whole_numbers({outer, n, inner}, dtype, -1, 1);
    expect_same_sums(source, positions, values, "scatter_add " + what);
  }
}

// So much work that positions are sorted first, where the order counts, or listed by rows: short
// and long ones, of few slices and of many.
TEST_P(CudaIndexing, ScatterAddOfManyPositions) {
  CATENA_NEEDS_GPUS(1);
  const Dtype dtype = GetParam();
  struct Case {
    int64_t outer, extent, inner, n, distinct;
  };
  for (const Case& c :
       {Case{1, 40000, 1, 60000, 40000}, Case{1, 60000, 1, 30001, 31}, Case{2, 9000, 3, 5000, 9000},
        Case{1, 50000, 4, 2000, 7}, Case{3, 3000, 17, 5000, 3000}, Case{1, 9000, 300, 4000, 9},
        Case{1, 9000, 128, 4001, 9000}, Case{1, 2, 8400001, 3, 2}, Case{1, 20001, 136, 5000, 20001},
        Case{1, 20000, 136, 5001, 9}, Case{1, 2003, 2056, 1500, 1000},
        Case{1, 2100, 1032, 9000, 100}}) {
    const std::string what =
        message("(", c.outer, ", ", c.extent, ", ", c.inner, ") by ", c.n, " positions, ", dtype);
    const Array source = whole_numbers({c.outer, c.extent, c.inner}, dtype, -9, 9),
                values = whole_numbers({c.outer, c.n, c.inner}, dtype, -1, 1),
                positions = whole_numbers({c.n}, Dtype::kInt64, int(-c.distinct), -1);
    expect_same_sums(source, positions, values, what);
    if (source.size() > (int64_t{1} << 23)) continue;
    // Most of them rows, some outside.
    const Array ids = whole_numbers({c.n}, Dtype::kInt32, -1, int(c.distinct));
    for (const IdRule& rule : kStrictIds) expect_same_sums(source, ids, values, what, rule);
  }
}
INSTANTIATE_TEST_SUITE_P(Dtypes, CudaIndexing,
                         ::testing::Values(Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16,
                                           Dtype::kBFloat16, Dtype::kBool, Dtype::kInt8,
                                           Dtype::kUInt8, Dtype::kInt16, Dtype::kInt32,
                                           Dtype::kUInt64),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(CudaIndexingOrder, DeterministicScatterGivesTheBitsOfTheCpu) {
  CATENA_NEEDS_GPUS(1);
  const DeterministicScope scope(true);
  // By a look through the positions, and by sorting them: slices of some length and short ones.
  for (const auto& [extent, count, inner] :
       {std::array<int64_t, 3>{20, 3000, 33}, {5000, 9000, 33}, {5000, 9000, 3}}) {
    const Array target = real_numbers({2, extent, inner}, Dtype::kFloat32),
                values = real_numbers({2, count, inner}, Dtype::kFloat32);
    const Array positions =
        whole_numbers({count}, Dtype::kInt32, 0, int(std::min<int64_t>(extent, 200)) - 1);
    const Array expected = target.copy(), out = target.to(kGpu);
    kernels::scatter_add(cpu(), {expected, positions, values});
    kernels::scatter_add(kGpu, {out, positions.to(kGpu), values.to(kGpu)});
    expect_equal(out, expected, message("ordered scatter_add to ", extent));
  }
}

class CudaRandom : public ::testing::TestWithParam<int64_t> {};

// A call on both devices, the GPU's part of the block number read from device memory when asked.
std::pair<Array, Array> draw(RandomKind kind, int64_t n, Dtype dtype, bool from_device) {
  RandomCall call{};
  call.kind = kind;
  call.bits = {0x123456789abcdefull, (uint64_t{1} << 32) - 50,
               nullptr};  // carries into the high word
  call.low = -1.5;
  call.high = kind == RandomKind::kBernoulli ? 0.3 : 2.25;
  call.ilow = is_unsigned_int(dtype) ? 3 : -7;
  call.range = 101;
  const Array host = empty({n}, dtype), device = empty({n}, {dtype, kGpu});
  call.output = &host;
  kernels::random(cpu(), call);
  call.output = &device;
  const Array base = array({call.bits.seed, uint64_t(1000)}, kGpu);
  if (from_device) {
    call.bits.seed = 0;
    call.bits.offset -= 1000;
    call.bits.base = &base;
  }
  kernels::random(kGpu, call);
  return {device, host};
}

TEST_P(CudaRandom, IsTheCpusBitForBit) {
  CATENA_NEEDS_GPUS(1);
  const int64_t n = GetParam();
  for (bool from_device : {false, true}) {
    auto same = [&](RandomKind kind, Dtype dtype) {
      const auto [device, host] = draw(kind, n, dtype, from_device);
      expect_equal(device, host, message("random kind ", int(kind), " ", dtype));
    };
    same(RandomKind::kBits64, Dtype::kUInt64);
    same(RandomKind::kBernoulli, Dtype::kBool);
    for (Dtype dtype : float_dtypes()) same(RandomKind::kUniform, dtype);
    for (Dtype dtype : {Dtype::kInt8, Dtype::kUInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kInt64,
                        Dtype::kUInt64}) {
      same(RandomKind::kIntegers, dtype);
    }
    for (Dtype dtype : float_dtypes()) {
      const auto [device, host] = draw(RandomKind::kNormal, n, dtype, from_device);
      expect_close(device, host, dtype == Dtype::kFloat64 ? 4e-15 : rounding(dtype), "normal");
    }
  }
}

TEST_P(CudaRandom, PermutationAndDropoutToo) {
  CATENA_NEEDS_GPUS(1);
  const int64_t n = GetParam();
  const RandomBits bits{99, 12345, nullptr};
  const Array host = empty({n}, Dtype::kInt64), device = empty({n}, {Dtype::kInt64, kGpu});
  kernels::permutation(cpu(), {bits, host});
  kernels::permutation(kGpu, {bits, device});
  expect_equal(device, host, "permutation");
  for (Dtype dtype : float_dtypes()) {
    const Array x = real_numbers({n}, dtype), y = empty({n}, dtype),
                gpu_y = empty({n}, {dtype, kGpu});
    kernels::dropout(cpu(), {x, 0.4, 1 / 0.6, bits, y});
    kernels::dropout(kGpu, {x.to(kGpu), 0.4, 1 / 0.6, bits, gpu_y});
    expect_equal(gpu_y, y, message("dropout ", dtype));
    // Views whose first element is not on a border of 16 bytes.
    const Array wide = empty({n + 1}, {dtype, kGpu}), odd_y = wide(Slice(1, none));
    const Array odd_x = empty({n + 1}, {dtype, kGpu})(Slice(1, none));
    odd_x.assign(x.to(kGpu));
    kernels::dropout(kGpu, {odd_x, 0.4, 1 / 0.6, bits, odd_y});
    expect_equal(odd_y, y, message("dropout of a view ", dtype));
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, CudaRandom, ::testing::Values(1, 2, 333, 100000, 1 << 20));

class CudaOptimizer : public ::testing::TestWithParam<Dtype> {};

// The arrays of a call, of which `skip` leading elements are left out.
struct RuleArrays {
  Array p, g, master;
  std::vector<Array> states;

  RuleArrays(const OptimizerRule& rule, const Array& parameter, const Array& gradient, int64_t skip)
      : p(parameter(Slice(skip, none))), g(gradient(Slice(skip, none))) {
    const Dtype wide = p.itemsize() == 2 ? Dtype::kFloat32 : p.dtype();
    if (wide != p.dtype()) master = parameter.astype(wide)(Slice(skip, none));
    for (const auto& state : rule.states)
      states.push_back(full(parameter.shape(), state.start, {wide, p.device()})(Slice(skip, none)));
  }
  OptimizerCall call(const OptimizerRule& rule) const {
    OptimizerCall c{};
    c.rule = &rule;
    c.parameter = &p;
    c.gradient = &g;
    if (master.defined()) c.master = &master;
    for (size_t k = 0; k < states.size(); ++k) c.states[k] = &states[k];
    for (size_t k = 0; k < rule.numbers.size(); ++k) c.numbers[k] = 0.5;  // in all ranges
    c.learning_rate.value = 0.01;
    c.gradient_scale.value = 0.5;
    return c;
  }
};

TEST_P(CudaOptimizer, FollowsTheCpu) {
  CATENA_NEEDS_GPUS(1);
  const Dtype dtype = GetParam();
  for (const OptimizerRule& rule : optimizer_rules()) {
    for (int64_t n : {int64_t(0), int64_t(1), int64_t(1001), int64_t(300000)}) {
      for (int64_t skip : {0, 1}) {  // an odd start takes the path of single elements
        const std::string what = message(rule.name, " ", n, " ", dtype, " from ", skip);
        const Array p = real_numbers({n + skip}, dtype), g = real_numbers({n + skip}, dtype);
        const RuleArrays host(rule, p, g, skip), device(rule, p.to(kGpu), g.to(kGpu), skip);
        const Array counter = zeros({2}, {Dtype::kFloat64, kGpu});
        const Array yes = ones({}, {Dtype::kFloat64, kGpu});
        for (int step = 1; step <= 3; ++step) {
          OptimizerCall on_cpu = host.call(rule), on_gpu = device.call(rule);
          on_cpu.step.value = step;
          on_gpu.counter = &counter;
          on_cpu.weight_decay = on_gpu.weight_decay = step == 2 ? 0 : 1e-3;
          kernels::optimizer_update(cpu(), on_cpu);
          kernels::optimizer_update(kGpu, on_gpu);
          on_gpu.skip = &yes;
          kernels::optimizer_update(kGpu, on_gpu);  // does nothing
        }
        expect_close(device.p, host.p, rounding(dtype), what);
        if (host.master.defined())
          expect_close(device.master, host.master, rounding(Dtype::kFloat32), what);
        for (size_t k = 0; k < host.states.size(); ++k)
          expect_close(device.states[k], host.states[k], rounding(host.states[k].dtype()), what);
        EXPECT_EQ(counter.to_vector<double>(), (std::vector<double>{3, 0})) << what;
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(CudaOptimizer, FindsWhatIsNotFinite) {
  CATENA_NEEDS_GPUS(1);
  for (const int64_t at : {0, 777, 300000}) {
    const Array values = real_numbers({300001}, GetParam()).to(kGpu);
    const Array found = zeros({}, {Dtype::kFloat64, kGpu});
    const Array part = values(Slice(at % 2, none));
    kernels::find_nonfinite(kGpu, {&part, &found});
    EXPECT_EQ(found.item<double>(), 0);
    values[at].fill(at == 777 ? NAN : INFINITY);
    const Array all = values(Slice(at == 0 ? 0 : at % 2, none));
    kernels::find_nonfinite(kGpu, {&all, &found});
    EXPECT_EQ(found.item<double>(), 1) << at;
  }
}

TEST_P(CudaOptimizer, LossScalesFollowTheCpu) {
  CATENA_NEEDS_GPUS(1);
  std::vector<Array> states, scales;
  for (const Device device : {cpu(), kGpu}) {
    states.push_back(array(std::vector<double>{64, 1. / 64, 0, 0, 0}).to(device));
    scales.push_back(zeros({}, {Dtype::kFloat32, device}));
  }
  for (const double found : {0., 1., 0., 0., 0., 0., 1., 1., 1.}) {
    for (size_t i = 0; i < 2; ++i) {
      states[i][3].fill(found);
      kernels::advance_loss_scale(states[i].device(), {&states[i], &scales[i], 2, 0.5, 8, 64, 3});
    }
    EXPECT_EQ(states[1].to_vector<double>(), states[0].to_vector<double>());
    EXPECT_EQ(scales[1].item<float>(), scales[0].item<float>());
  }
  EXPECT_EQ(states[0].to_vector<double>(), (std::vector<double>{8, 1. / 8, 0, 0, 4}));
}
INSTANTIATE_TEST_SUITE_P(Dtypes, CudaOptimizer, ::testing::ValuesIn(float_dtypes()),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace catena
