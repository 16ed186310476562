// Texts of fused chains compile, for both architectures, and say what the chain says.
#include "backends/cuda/jit/compile/fused_source.h"

#include <gtest/gtest.h>

#include "array/fusion/fusion_graph.h"
#include "backends/cuda/jit/compile/nvrtc.h"
#include "backends/cuda/jit/compile/source.h"
#include "backends/cuda/jit/compile/user_source.h"
#include "backends/cuda/jit/user_reduction_plan.h"
#include "catena/array/creation.h"
#include "catena/array/fusion.h"
#include "device/cached_compile.h"

namespace catena::jit {
namespace {

class FusedTexts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { set_nvrtc_path(CATENA_TEST_NVRTC); }
};

void expect_compiles(const std::string& source, int arch) {
  try {
    EXPECT_GT(cached_compile(source, arch, "fused").size(), 500u);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

// The program that the library makes of a lambda for these arguments.
template <class F, class... A>
std::unique_ptr<FusedProgram> program_of(const F& f, const A&... arguments) {
  detail::FusionState state;
  detail::trace_fusion(state, sizeof...(A), [&](std::span<const Fused> list) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      using Result = std::decay_t<decltype(f(list[I]...))>;
      return detail::FusedResult<Result>::flatten(f(list[I]...));
    }
    (std::index_sequence_for<A...>());
  });
  auto program = std::make_unique<FusedProgram>();
  const Operand list[] = {Operand(arguments)...};
  const detail::FusionTraceResult& trace = *state.traces[sizeof...(A)];
  detail::resolve_program(*trace.graph, trace.outputs, list, *program);
  return program;
}

Array of(Dtype d) { return ones({4}, d); }

TEST_F(FusedTexts, ChainsOfSeveralDtypes) {
  const auto chain = [](Fused x, Fused y) { return sqrt(x * x + y * y) * 0.5; };
  for (const Dtype a : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kInt32, Dtype::kBool}) {
    for (const int arch : {80, 90})
      expect_compiles(fused_source(*program_of(chain, of(a), of(Dtype::kFloat32))), arch);
  }
  expect_compiles(fused_source(*program_of(chain, of(Dtype::kBFloat16), of(Dtype::kFloat64))), 90);
  expect_compiles(fused_source(*program_of(chain, of(Dtype::kFloat16), 2.5)), 90);
}

TEST_F(FusedTexts, SeveralResultsAndManyOperands) {
  const auto two = [](Fused x, Fused y) {
    return std::make_tuple(where(x > y, x, y % 3), exp(x) - tanh(y), (x < y) & (y < 2), x);
  };
  expect_compiles(fused_source(*program_of(two, of(Dtype::kFloat32), of(Dtype::kInt64))), 90);
  const auto many = [](auto a, auto b, auto c, auto d, auto e, auto f, auto g, auto h, auto i) {
    return a + b * c - d / e + f * g - h + i;
  };
  const Array x = of(Dtype::kFloat64);
  expect_compiles(fused_source(*program_of(many, x, x, x, x, x, x, x, x, x)), 80);
}

// Every operation of the table in every dtype, in long chains.
TEST_F(FusedTexts, EveryOperation) {
  const auto chain_of = [](Dtype d) {
    auto program = std::make_unique<FusedProgram>();
    program->inputs = {{0, d, false}, {1, Dtype::kBool, false}};
    FusedValue input{};
    input.kind = FusedValue::kInput;
    input.dtype = d;
    program->values.push_back(input);
    input.dtype = Dtype::kBool;
    input.input = 1;
    program->values.push_back(input);
    for (const ElementwiseOp op : elementwise_ops()) {
      const ElementwiseInfo& row = info(op);
      if (!row.computes_in(d)) continue;
      FusedValue value{};
      value.kind = FusedValue::kOp;
      value.op = op;
      value.compute = d;
      value.dtype = row.natural_result(d);
      if (row.first_is_bool()) value.source[0] = 1;
      program->values.push_back(value);
    }
    program->outputs = {static_cast<int>(program->values.size()) - 1, 0};
    return program;
  };
  for (int i = 0; i < kDtypeCount; ++i) {
    const Dtype d = Dtype(i);
    // As the map of a reduction: one copy of each operation, so that the compiler is quick.
    const auto program = chain_of(d);
    program->outputs.resize(1);
    const Dtype result = program->output_dtype(0);
    const auto kernel = fused_reduction(*program, ReduceOp::kMax, false, result);
    expect_compiles(user_reduction_source(kernel, {{"y", result, false}},
                                          {{"x0", d, false}, {"x1", Dtype::kBool, false}}, {}),
                    90);
  }
}

TEST_F(FusedTexts, Reductions) {
  const auto chain = [](Fused x, Fused y) { return x * y + 1; };
  const ReduceOp ops[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax,
                          ReduceOp::kMin, ReduceOp::kAll,  ReduceOp::kAny};
  for (const Dtype d : {Dtype::kFloat16, Dtype::kFloat32, Dtype::kInt8}) {
    const auto program = program_of(chain, of(d), of(Dtype::kFloat32));
    for (const ReduceOp op : ops) {
      const bool logical = op == ReduceOp::kAll || op == ReduceOp::kAny;
      const Dtype output = logical ? Dtype::kBool : program->output_dtype(0);
      const auto kernel = fused_reduction(*program, op, op == ReduceOp::kSum, output);
      expect_compiles(user_reduction_source(kernel, {{"y", output, false}},
                                            {{"x0", d, false}, {"x1", Dtype::kFloat32, false}}, {}),
                      op == ReduceOp::kSum ? 80 : 90);
    }
  }
}

TEST_F(FusedTexts, RoundsEveryValueToItsDtype) {
  const auto program = program_of([](Fused x) { return (x + 1) * x; }, of(Dtype::kFloat16));
  const std::string text = fused_source(*program);
  EXPECT_NE(text.find("convert<Half>(ops::Add::apply(widen(t0), widen(t1)))"), std::string::npos);
  EXPECT_NE(text.find("convert<Half>(ops::Multiply::apply(widen(t2), widen(t0)))"),
            std::string::npos);
  EXPECT_EQ(fused_name(*program), "fused add, multiply");
}

// Every element of every split is taken once, by a launch that fills the device.
TEST(UserReductionPlan, CoversTheElements) {
  for (const int64_t results : {1, 3, 31, 33, 1000, 1000000}) {
    for (const int64_t reduced : {1, 2, 31, 32, 129, 5000, 1 << 20, 1 << 28}) {
      for (const bool neighbours : {false, true}) {
        for (const int bytes : {0, 4, 8}) {
          const UserReducePlan plan = plan_user_reduction(results, reduced, neighbours, bytes, 132);
          EXPECT_GE(plan.per_split * plan.splits, reduced);
          EXPECT_LT(plan.per_split * (plan.splits - 1), reduced);
          EXPECT_EQ(plan.threads % plan.width, 0);
          EXPECT_LE(plan.threads, 256);
          EXPECT_TRUE(bytes > 0 || plan.splits == 1);
          EXPECT_TRUE(bytes == 0 || results > 1 || reduced < (1 << 20) || plan.splits > 132);
          EXPECT_TRUE(plan.width == 1 || neighbours);
        }
      }
    }
  }
}

}  // namespace
}  // namespace catena::jit
