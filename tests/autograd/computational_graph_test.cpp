// Graphs as data and as text: Chainer's counts, captions, order, large graphs, drawings.
#include "catena/autograd/computational_graph.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "autograd/product.h"
#include "catena/autograd/function.h"
#include "catena/autograd/function_set.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/math/sum.h"
#include "environment_scope.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena {
namespace {

namespace F = catena::functions;
using Counts = std::pair<size_t, size_t>;
using testing::mul;

Counts counts(const Variables& outputs, bool remove_split) {
  const ComputationalGraph g = build_computational_graph(outputs, remove_split);
  return {g.nodes().size(), g.edges().size()};
}

Variable root() { return Variable(array({{1.0, 2.0, 3.0}})); }

struct Halves : Function {
  Arrays forward(const Arrays& x) override { return {x[0] * 0.5, x[0] * 0.5}; }
};

TEST(ComputationalGraph, CountsAreChainers) {
  struct Case {
    const char* what;
    Variables outputs;
    Counts with_split, without;
  };
  const Variable x = root(), y = F::exp(x), z = F::log(y);
  const Variable x1 = root(), x2 = root(), x3 = root();
  const Variables halves = call_multi(Halves(), Variables{x});
  const std::vector<Case> cases = {
      {"x > f > y", {y}, {5, 4}, {3, 2}},
      {"a chain of two", {z}, {9, 8}, {5, 4}},
      {"two uses of x", {F::exp(x), F::log(x)}, {8, 7}, {5, 4}},
      {"two outputs", halves, {6, 5}, {4, 3}},
      {"one of two outputs", {halves[1]}, {5, 4}, {3, 2}},
      {"two inputs", {x1 + x2}, {8, 7}, {4, 3}},
      {"0.3 * (x1 + x2) + x3", {0.3 * (x1 + x2) + x3}, {19, 18}, {9, 8}},
      {"x * x: one edge", {mul(x, x)}, {6, 6}, {3, 2}},
      {"a root", {x}, {1, 0}, {1, 0}},
      {"an output and what is behind it", {z, y, x, z}, {9, 8}, {5, 4}},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(counts(c.outputs, false), c.with_split) << c.what;
    EXPECT_EQ(counts(c.outputs, true), c.without) << c.what;
  }
  EXPECT_EQ(counts({}, true), Counts(0, 0));
}

TEST(ComputationalGraph, IsInTheOrderOfTheProgram) {
  const Variable x = root(), y = root();
  const Variable product = mul(x, y);
  const Variable sum = product + x;
  const ComputationalGraph g = build_computational_graph(sum);
  EXPECT_EQ(g.dump(),
            "digraph graphname{\n"
            "0 [label=\"(1, 3), float64\",shape=\"oval\"];\n"
            "1 [label=\"(1, 3), float64\",shape=\"oval\"];\n"
            "2 [label=\"Product\",shape=\"box\"];\n"
            "3 [label=\"(1, 3), float64\",shape=\"oval\"];\n"
            "4 [label=\"_ + _\",shape=\"box\"];\n"
            "5 [label=\"(1, 3), float64\",shape=\"oval\"];\n"
            "0 -> 2;\n1 -> 2;\n2 -> 3;\n3 -> 4;\n0 -> 4;\n4 -> 5;\n}\n");
}

TEST(ComputationalGraph, SplitsAsChainerDraws) {
  const Variable x = root();
  const ComputationalGraph g = build_computational_graph({mul(x, x)}, false);
  std::vector<ComputationalGraph::Kind> kinds;
  for (const auto& node : g.nodes()) kinds.push_back(node.kind);
  using enum ComputationalGraph::Kind;
  EXPECT_EQ(kinds, (std::vector{kVariable, kSplit, kVariable, kVariable, kFunction, kVariable}));
  const std::vector<ComputationalGraph::Edge> edges = {{0, 1}, {1, 2}, {1, 3},
                                                       {2, 4}, {3, 4}, {4, 5}};
  EXPECT_EQ(g.edges(), edges);
  expect_contains(g.dump(), {"1 [label=\"Split\",shape=\"hexagon\"];"});
}

TEST(ComputationalGraph, NamesParametersAndVariables) {
  struct Model : FunctionSet {
    F::Linear l1{3, 2};
    CATENA_FUNCTIONS(l1)
  } model;
  model.parameters();
  Variable x = Variable(zeros({1, 3}, dtype::float32));
  x.set_name("a \"quoted\" \\name\nof two lines");
  const std::string dot = build_computational_graph(F::sum(model.l1(x))).dump();
  expect_contains(dot, {"label=\"l1/W: (2, 3), float32\"", "label=\"l1/b: (2,), float32\"",
                        "label=\"a \\\"quoted\\\" \\\\name\\nof two lines: (1, 3), float32\"",
                        "label=\"Linear\",shape=\"box\"", "label=\"float32\",shape=\"oval\""});
  model.l1 = F::Linear(3, 2);  // the graph does not need the model
}

TEST(ComputationalGraph, StopsWhereHistoryWasCut) {
  const Variable x = root(), h = F::exp(x), y = F::log(h);
  h.unchain_backward();
  EXPECT_EQ(counts({y}, true), Counts(3, 2));
  y.unchain_backward();
  EXPECT_EQ(counts({y}, true), Counts(1, 0));
  const Variable still(array({1.0}), Volatile::on);
  EXPECT_EQ(counts({F::exp(still), F::log(Variable::constant(array({1.0})))}, true), Counts(2, 0));
}

TEST(ComputationalGraph, IsACopy) {
  Variable y = F::exp(root());
  const ComputationalGraph g = build_computational_graph(y);
  y = Variable();
  EXPECT_EQ(g.nodes().size(), 3u);
  expect_contains(g.dump(), {"exp"});
}

// Neither the stack nor quadratic time: a chain, and one function with many inputs, as fast as the
// same number of small ones.
TEST(ComputationalGraph, OfManyFunctions) {
  constexpr int kCount = 100'000;
  const Variable x{testing::number(1)};
  Variable y = x;
  for (int i = 0; i < kCount; ++i) y = mul(y, x);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(counts({y}, true), Counts(2 * kCount + 1, 3 * kCount - 1));
  EXPECT_EQ(counts({y}, false), Counts(5 * kCount + 1, 6 * kCount));
  const auto time = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(std::chrono::duration<double>(time).count(), 20) << "of which 1 s is expected";
}

TEST(ComputationalGraph, RefusesWhatIsNone) {
  const Variable y = F::exp(root());
  expect_contains(error_of<ValueError>([&] {
                    build_computational_graph({y, Variable()});
                  }),
                  {"build_computational_graph", "undefined variable"});
  expect_contains(error_of<ValueError>([&] { build_computational_graph(y).dump("pdf"); }),
                  {"dump: expected the format \"dot\" or \"svg\", got \"pdf\""});
  expect_contains(error_of<ValueError>([] {
                    ComputationalGraph({}, {{0, 1}});
                  }),
                  {"from vertex 0 to 1", "0 vertices"});
}

// What Chainer's inputs, outputs and rank were.
TEST(FunctionNodes, KnowTheirVerticesAndOrder) {
  const Variable x = root();
  Variable y = F::exp(x);
  const Variable z = F::log(y);
  FunctionNode& exp = *y.creator();
  FunctionNode& log = *z.creator();
  EXPECT_LT(exp.sequence(), log.sequence());
  ASSERT_EQ(exp.inputs().size(), 1u);
  EXPECT_EQ(exp.inputs()[0].get(), x.node());
  ASSERT_EQ(exp.outputs().size(), 1u);
  EXPECT_EQ(exp.outputs()[0], y.node());
  EXPECT_EQ(log.inputs()[0].get(), y.node());
  exp.unchain();
  EXPECT_EQ(y.creator(), nullptr);
  EXPECT_NE(z.creator(), nullptr);
}

// The programs that `dot` may be, in a PATH of their own.
class Drawing : public ::testing::Test {
 protected:
  void program(const std::string& text) {
    write_file(folder_ / "dot", "#!/bin/sh\n" + text);
    ::chmod((folder_ / "dot").c_str(), 0755);
  }
  TempFolder folder_;
  EnvironmentScope path_{"PATH", folder_.path() + ":" + ::getenv("PATH")};
  Variable y_ = F::exp(root());
};

TEST_F(Drawing, HandsTheTextToDot) {
  program("[ \"$1\" = -Tsvg ] && echo '<svg>' && cat && echo '</svg>'\n");
  const ComputationalGraph g = build_computational_graph(y_);
  EXPECT_EQ(g.dump("svg"), "<svg>\n" + g.dump() + "</svg>\n");
}

TEST_F(Drawing, ReportsWhatDotReports) {
  program("echo 'syntax error near line 7' >&2; exit 1\n");
  expect_contains(error_of<IoError>([&] { build_computational_graph(y_).dump("svg"); }),
                  {"the program dot failed: syntax error near line 7"});
}

TEST_F(Drawing, NeedsGraphviz) {
  path_.set("PATH", folder_.path());
  expect_contains(error_of<IoError>([&] { build_computational_graph(y_).dump("svg"); }),
                  {"program dot", "not in PATH", "package graphviz", "dump(\"dot\")"});
}

TEST_F(Drawing, IsSvgByTheRealProgram) {
  if (::system("PATH=/usr/bin:/usr/local/bin:/bin dot -V >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "Graphviz's program dot is not installed (package graphviz)";
  expect_contains(build_computational_graph(y_).dump("svg"), {"<svg", ">exp<", "</svg>"});
}

}  // namespace
}  // namespace catena
