// Convolutions whose plans were chosen by measurement (CATENA_CONVOLUTION_TUNE=1): the choice, and
// on a GPU the results, the choices on disk and captured graphs.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "backends/common/fastest.h"
#include "backends/cudnn/problem.h"
#include "catena/testing_markers.h"
#include "kernels/second_process.h"
#include "temp_folder.h"

namespace catena {
namespace {

constexpr double kFailed = std::numeric_limits<double>::infinity();

size_t fastest(const std::vector<double>& times) { return catena::fastest(std::span(times)); }

TEST(Fastest, IsTheShortestTime) {
  EXPECT_EQ(fastest({5}), 0u);
  EXPECT_EQ(fastest({5, 4, 3, 4}), 2u);
  EXPECT_EQ(fastest({1, 2, 3}), 0u);
  EXPECT_EQ(fastest({0, 0}), 0u);
}

TEST(Fastest, NoiseDoesNotDecide) {
  EXPECT_EQ(fastest({1.00, 0.99}), 0u);
  EXPECT_EQ(fastest({1.00, 0.985, 0.981}), 0u);
  EXPECT_EQ(fastest({1.00, 0.985, 0.979}), 2u);
}

TEST(Fastest, LeavesFailedPlansOut) {
  EXPECT_EQ(fastest({kFailed, 7}), 1u);
  EXPECT_EQ(fastest({7, kFailed}), 0u);
  EXPECT_EQ(fastest({kFailed, kFailed}), 0u);
}

TEST(CudnnProblem, TellsTunedChoicesApart) {
  cudnn::Problem plain{}, tuned{};
  plain.window.axes = tuned.window.axes = 2;
  tuned.tuned = true;
  PlanKey keys[2];
  plain.describe(keys[0]), tuned.describe(keys[1]);
  EXPECT_NE(keys[0], keys[1]);
  PlanText texts[2];
  plain.describe(texts[0]), tuned.describe(texts[1]);
  EXPECT_NE(texts[0].text(), texts[1].text());
}

using testing::plan_files;

// What a process that computes convolutions with this cache folder prints, its log included.
std::string lines_of_process(const std::string& folder, const std::string& settings,
                             const std::string& argument) {
  return testing::lines_of_plans_program(folder, "CATENA_LOG=debug " + settings,
                                         argument + " 2>&1");
}

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

constexpr const char* kTuned = "CATENA_CONVOLUTION_TUNE=1";
constexpr const char* kMeasured = "cuDNN: measured ";

class TunedConvolution : public ::testing::Test {
 protected:
  void SetUp() override { CATENA_NEEDS_CUDNN(); }
  // Runs the program, whose results must be right.
  std::string run(const std::string& settings, const std::string& argument) {
    const std::string lines = lines_of_process(folder_.path(), settings, argument);
    EXPECT_EQ(lines.find("the process failed"), std::string::npos) << lines;
    EXPECT_EQ(lines.find(" wrong "), std::string::npos) << lines;
    EXPECT_NE(lines.find(" taken "), std::string::npos) << lines;
    return lines;
  }
  CacheUses uses() const { return read_cache_uses(folder_.path(), kPlanCache); }

  const TempFolder folder_;
};

TEST_F(TunedConvolution, IsRightAndMeasuredOnce) {
  const std::string first = run(kTuned, "right");
  EXPECT_GT(count(first, kMeasured), 0u) << first;
  const std::set<std::string> files = plan_files(folder_.path());
  EXPECT_GT(files.size(), 0u);
  const CacheUses before = uses();
  const std::string second = run(kTuned, "right");
  EXPECT_EQ(uses().hits - before.hits, files.size());
  // What is not kept, for a reason that may pass, may be measured again.
  EXPECT_LE(count(second, kMeasured), before.misses - files.size());
  EXPECT_EQ(plan_files(folder_.path()), files);
}

TEST_F(TunedConvolution, IsNotMeasuredUnlessAskedFor) {
  EXPECT_EQ(count(run("CATENA_CONVOLUTION_TUNE=0", "right"), kMeasured), 0u);
  const std::set<std::string> plain = plan_files(folder_.path());
  EXPECT_GT(count(run(kTuned, "right"), kMeasured), 0u);
  EXPECT_GT(plan_files(folder_.path()).size(), plain.size());  // entries of both kinds
}

TEST_F(TunedConvolution, IsNotMeasuredWhereResultsMustBeDeterministic) {
  run("CATENA_CONVOLUTION_TUNE=0", "");
  const std::set<std::string> plain = plan_files(folder_.path());
  EXPECT_EQ(count(run(kTuned, ""), kMeasured), 0u);
  EXPECT_EQ(plan_files(folder_.path()), plain);
}

TEST_F(TunedConvolution, IsNotMeasuredInACapture) {
  EXPECT_EQ(count(run(kTuned, "captured"), kMeasured), 0u);
  EXPECT_EQ(plan_files(folder_.path()).size(), 0u);
  run(kTuned, "right");
  const CacheUses before = uses();
  EXPECT_EQ(count(run(kTuned, "captured"), kMeasured), 0u);
  EXPECT_GT(uses().hits, before.hits);  // of the earlier process
}

}  // namespace
}  // namespace catena
