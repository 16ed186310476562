// The pipeline programs as users start them.
#include <gtest/gtest.h>

#include <regex>

#include "examples.h"

namespace catena::test {
namespace {

double accuracy_in(const Finished& result) { return number_behind("test accuracy ", result); }

// The rows of the training, which do not depend on cut and schedule.
std::string losses_in(const Finished& result) {
  const size_t first = result.out.find("step   0");
  return first == std::string::npos ? result.all() : result.out.substr(first);
}

TEST(ParallelExamples, AllSchedulesOfOneProcessTrainAlike) {
  std::string expected;
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zero-bubble", "zb-v"}) {
    const Finished result = run({program("pipeline_one_process"), schedule, "101"});
    EXPECT_GT(accuracy_in(result), 0.99);
    if (expected.empty()) expected = losses_in(result);
    EXPECT_EQ(losses_in(result), expected) << schedule;
    EXPECT_NE(result.out.find("largest stage: "), std::string::npos) << result.out;
  }
}

TEST(ParallelExamples, AWrongScheduleIsNamed) {
  const Finished result = run({program("pipeline_one_process"), "2f2b"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("schedule '2f2b': expected gpipe, 1f1b"), std::string::npos)
      << result.err;
}

TEST(ParallelExamples, TakeDevicesBatchSizeAndSeed) {
  const auto losses = [](const Words& more) {
    const Finished result = run(with({program("pipeline_one_process"), "1f1b", "2"}, more));
    EXPECT_EQ(result.status, 0) << result.all();
    return losses_in(result);
  };
  const std::string before = losses({"--device=cpu:0,cpu:1"});
  EXPECT_EQ(losses({"--gpu=-1,-1", "--batchsize=256", "--seed=1"}), before);
  EXPECT_NE(losses({"--device=cpu:0,cpu:1", "--batchsize=128"}), before);
  EXPECT_NE(losses({"--device=cpu:0,cpu:1", "--seed=2"}), before);
  // An option takes one word, wherever it is.
  EXPECT_EQ(losses({"-d", "cpu:0,cpu:1"}), before);
  const Finished first =
      run({program("pipeline_one_process"), "-g", "-1,-1", "1f1b", "2", "--seed=1"});
  EXPECT_EQ(losses_in(first), before) << first.all();
  for (const char* letter : {"-d", "-g"}) {
    const char* device = letter[1] == 'd' ? "cpu:0" : "-1";
    const Finished one = run({program("sharded"), letter, device, "parameters", "2"});
    EXPECT_EQ(one.status, 0) << one.all();
  }
  EXPECT_EQ(run({program("pipeline_one_process"), "1f1b", "many"}).status, 2);
  EXPECT_EQ(run({program("grid"), "--help"}).status, 0);
}

#ifdef CATENA_RUN

TEST(ParallelExamples, RanksTrainAsOneProcess) {
  const Finished ranks =
      run({CATENA_RUN, "-n", "4", "--cpu", program("pipeline_ranks"), "zero-bubble", "101"});
  EXPECT_GT(accuracy_in(ranks), 0.99);
  // catena-run may mark lines with their rank: the numbers are what counts.
  const Finished one = run({program("pipeline_one_process"), "zero-bubble", "101"});
  const std::regex number("loss ([0-9.]+)");
  std::smatch a, b;
  ASSERT_TRUE(std::regex_search(ranks.out, a, number) && std::regex_search(one.out, b, number));
  EXPECT_EQ(a[1], b[1]);
}

TEST(ParallelExamples, AGridTrains) {
  const Finished result = run({CATENA_RUN, "-n", "4", "--cpu", program("grid"), "1f1b", "101"});
  EXPECT_GT(accuracy_in(result), 0.99);
  const Finished odd = run({CATENA_RUN, "-n", "3", "--cpu", program("grid")});
  EXPECT_NE(odd.status, 0);
  EXPECT_NE(odd.err.find("grid: expected an even number of ranks, got 3"), std::string::npos)
      << odd.all();
}

// What ranks keep changes nothing of what they learn, but the memory they need.
TEST(ParallelExamples, ShardedTrainingIsThatOfOneRank) {
  const Finished one = run({program("sharded"), "none", "101", "--device=cpu:0"});
  const std::regex number("loss ([0-9.]+)"), size("([0-9]+) KiB a rank");
  const auto numbers = [&](const Finished& result) {
    std::vector<double> found;
    for (std::sregex_iterator i(result.out.begin(), result.out.end(), number), end; i != end; ++i)
      found.push_back(std::stod((*i)[1]));
    EXPECT_EQ(found.size(), 2u) << result.all();
    return found;
  };
  double most = 1e9;
  for (const char* sharding : {"none", "states", "gradients", "parameters"}) {
    const Finished ranks =
        run({CATENA_RUN, "-n", "4", "--cpu", program("sharded"), sharding, "101"});
    EXPECT_GT(accuracy_in(ranks), 0.99) << sharding;
    const auto got = numbers(ranks), expected = numbers(one);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 0.002) << sharding;
    std::smatch found;
    ASSERT_TRUE(std::regex_search(ranks.out, found, size)) << ranks.all();
    EXPECT_LT(std::stod(found[1]), most) << sharding;
    most = std::stod(found[1]);
  }
}

#endif

TEST(ParallelExamples, AWrongShardingIsNamed) {
  const Finished result = run({program("sharded"), "halves"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("sharding 'halves': expected none, states, gradients or parameters"),
            std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace catena::test
