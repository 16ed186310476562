// train_mnist_distributed under catena-run: two ranks train, and a rank that fails is named.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "catena/array/io.h"
#include "catena/testing.h"
#include "examples.h"

namespace catena::test {
namespace {

// The first line of the report, which is the first that catena-run says in its own name.
std::string report_line(const std::string& err) {
  const size_t begin = err.find("catena-run: ");
  return begin == std::string::npos ? "" : err.substr(begin, err.find('\n', begin) - begin);
}

void expect_equal_models(const std::string& folder, const std::string& other, double tolerance) {
  expect_equal_arrays(folder + "/model.npz", other + "/model.npz", tolerance);
}

TEST(LaunchedExampleTest, TwoRanksTrain) {
  const SmallData data;
  const TempFolder out;
  const Finished result = run({CATENA_RUN, "-n", "2", "--cpu", program("train_mnist_distributed"),
                               "--data", data.path(), "--out", out / "out", "--epoch", "1"});
  expect_trained(result);
  EXPECT_EQ(load_npz(out / "out/model.npz").size(), 6u);
}

// 410 images in batches of 100: the last ten do not divide evenly by four.
class RanksTrainAsOneProcess : public ::testing::TestWithParam<std::tuple<int, std::string>> {};

TEST_P(RanksTrainAsOneProcess, ParameterByParameter) {
  const auto& [ranks, rule] = GetParam();
  const SmallData data;
  const TempFolder out;
  const Words options{"--data", data.path(), "--epoch", "1", "--optimizer", rule, "--out"};
  Words one{program("train_mnist"), "--device", "cpu"},
      many{CATENA_RUN, "-n", std::to_string(ranks), "--cpu", program("train_mnist_distributed")};
  for (Words* words : {&one, &many}) words->insert(words->end(), options.begin(), options.end());
  one.push_back(out / "one");
  many.push_back(out / "many");
  expect_trained(run(one));
  expect_trained(run(many));
  expect_equal_models(out / "one", out / "many", 1e-5);
}
INSTANTIATE_TEST_SUITE_P(Cases, RanksTrainAsOneProcess,
                         ::testing::Combine(::testing::Values(2, 4),
                                            ::testing::Values("sgd", "adam")),
                         [](const auto& info) {
                           return std::get<1>(info.param) + std::to_string(std::get<0>(info.param));
                         });

// 410 images in batches of 100, by slices of 12 or 13; the last ten make slices of one or two.
TEST(LaunchedExampleTest, SlicesGiveOneModelOnAnyNumberOfRanks) {
  const SmallData data;
  const TempFolder out;
  const auto train = [&](int ranks, const std::string& folder, const Words& more) {
    return run(
        with({CATENA_RUN, "-n", std::to_string(ranks), "--cpu", program("train_mnist_distributed"),
              "--data", data.path(), "--out", out / folder, "--epoch", "1", "--dropout", "0.3"},
             more));
  };
  for (const int ranks : {1, 2, 4})
    expect_trained(train(ranks, std::to_string(ranks), {"--slices", "8"}));
  expect_equal_models(out / "1", out / "2", 0);
  expect_equal_models(out / "1", out / "4", 0);
  const Finished refused = train(3, "three", {"--slices", "8"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("8 slices cannot be divided over 3 ranks"), std::string::npos)
      << refused.err;
}

// As on hosts without a shared file system: each rank has a folder of its own, and rank 1's
// checkpoint is of another run.
TEST(LaunchedExampleTest, ResumesFromRank0sCheckpoint) {
  const SmallData data;
  const TempFolder out;
  const std::string common =
      program("train_mnist_distributed") + " --data " + data.path() + " --out " + out.path() + "/";
  const auto train = [&](const std::string& rest) {
    return run({CATENA_RUN, "-n", "2", "--cpu", "/bin/sh", "-c", "exec " + common + rest});
  };
  expect_trained(train("whole --epoch 2"));
  expect_trained(train("rank0 --epoch 1"));
  expect_trained(train("rank1 --epoch 1 --lr 0.5"));
  expect_trained(train("rank$CATENA_RANK --epoch 2 --resume"));
  expect_equal_models(out / "whole", out / "rank0", 0);
  std::filesystem::remove_all(out / "rank1");
  expect_trained(train("rank$CATENA_RANK --epoch 3 --resume"));
  const Finished missing = train("nowhere$CATENA_RANK --epoch 3 --resume");
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.err.find("--resume: there is no '" + (out / "nowhere0/checkpoint.npz")),
            std::string::npos)
      << missing.err;
}

// Rank 1 is killed once `checkpoint`, a pattern, is there.
void expect_restart_from(const std::string& checkpoint, Words options) {
  const SmallData data;
  const TempFolder out;
  options.insert(options.end(), {"--data", data.path(), "--epoch", "12", "--out"});
  const std::string script =
      "if [ $CATENA_RANK$CATENA_RESTART = 10 ]; then { while ! ls " + (out / "parts/") +
      checkpoint + " >/dev/null 2>&1; do sleep 0.01; done; kill -9 $$; } & fi; exec \"$@\"";
  Words whole{CATENA_RUN, "-n", "2", "--cpu", program("train_mnist_distributed")};
  Words parts{CATENA_RUN,
              "-n",
              "2",
              "--cpu",
              "--max-restarts",
              "2",
              "/bin/sh",
              "-c",
              script,
              "sh",
              program("train_mnist_distributed")};
  for (Words* words : {&whole, &parts}) words->insert(words->end(), options.begin(), options.end());
  whole.push_back(out / "whole");
  parts.push_back(out / "parts");
  expect_trained(run(whole));
  const Finished result = run(parts);
  EXPECT_EQ(result.status, 0) << result.all();
  EXPECT_NE(result.out.find("restart 1: going on from the checkpoint"), std::string::npos)
      << result.all();
  EXPECT_NE(result.err.find("catena-run: 2 attempts\n"), std::string::npos) << result.err;
  expect_equal_models(out / "whole", out / "parts", 0);
}

TEST(LaunchedExampleTest, AKilledRankIsStartedAgainAndEndsWithTheSameBits) {
  expect_restart_from("checkpoint.npz", {});
}

TEST(LaunchedExampleTest, ARankThatIsKilledWhileAllSaveIsStartedAgain) {
  expect_restart_from("checkpoints/step-*/complete", {"--async-checkpoints"});
}

// The checkpoint of an earlier run must not be taken for one of an attempt that failed.
TEST(LaunchedExampleTest, ARestartDoesNotGoOnFromAnEarlierRun) {
  const SmallData data;
  const TempFolder out;
  const std::string train =
      program("train_mnist_distributed") + " --data " + data.path() + " --out ";
  const auto ranks = [&](const Words& options, const std::string& script) {
    Words words{CATENA_RUN, "-n", "2", "--cpu"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"/bin/sh", "-c", script});
    return run(words);
  };
  const std::string here = out / "out", checkpoint = here + "/checkpoint.npz";
  expect_trained(ranks({}, "exec " + train + here + " --epoch 1 --lr 0.5"));
  const Finished refused = ranks({"--max-restarts", "3"}, "exec " + train + here + " --epoch 12");
  EXPECT_EQ(refused.status, 2) << refused.all();
  EXPECT_NE(refused.err.find("not started again: exit code 2"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("is of an earlier run"), std::string::npos) << refused.err;
  // With --overwrite it is gone before the first update; then rank 1 is killed.
  const Finished again =
      ranks({"--max-restarts", "3"}, "if [ $CATENA_RANK$CATENA_RESTART = 10 ]; then { while [ -e " +
                                         checkpoint +
                                         " ]; do sleep 0.01; done; kill -9 $$; } & fi; exec " +
                                         train + here + " --epoch 12 --overwrite");
  EXPECT_EQ(again.status, 0) << again.all();
  EXPECT_NE(again.out.find("restart 1: "), std::string::npos) << again.all();
  expect_trained(ranks({}, "exec " + train + (out / "whole") + " --epoch 12"));
  expect_equal_models(out / "whole", out / "out", 0);
}

// Only rank 1 is given a folder that does not exist.
TEST(LaunchedExampleTest, TheRankThatFailsIsNamedFirst) {
  const SmallData data;
  const TempFolder out;
  const std::string script = "data=" + data.path() +
                             "; if [ $CATENA_RANK = 1 ]; then data=" + (out / "nowhere") +
                             "; fi; exec " + program("train_mnist_distributed") +
                             " --data $data --epoch 1 --out " + (out / "out");
  const Finished result = run({CATENA_RUN, "-n", "2", "--cpu", "/bin/sh", "-c", script});
  EXPECT_EQ(result.status, 1) << result.all();
  // The program catches its exception and ends with exit code 1; the cause is in the first line.
  EXPECT_TRUE(
      std::regex_match(report_line(result.err),
                       std::regex("catena-run: rank 1 on .+ failed first: the data folder '" +
                                  (out / "nowhere") + "' does not exist.*")))
      << result.err;
}

TEST(LaunchedExampleTest, TheProgramForOneDeviceNamesTheOtherOne) {
  const Finished result = run({CATENA_RUN, "-n", "2", "--cpu", program("train_mnist")});
  EXPECT_EQ(result.status, 1) << result.all();
  EXPECT_TRUE(std::regex_match(
      report_line(result.err),
      std::regex("catena-run: rank [01] on .+ failed first: this program trains on one device by "
                 "itself, but CATENA_SIZE says that the job has 2 ranks; start "
                 "train_mnist_distributed, .+")))
      << result.err;
}

// catena-run ends its ranks by SIGTERM, and waits for their checkpoint.
TEST(LaunchedExampleTest, CtrlCSavesOnAllRanks) {
  const SmallData data(50, 20);
  const TempFolder out;
  const Words words{
      CATENA_RUN, "-n",        "2",           "--cpu", program("train_mnist_distributed"),
      "--data",   data.path(), "--batchsize", "20",    "--unit",
      "20",       "--out",     out / "out"};
  Words endless = words, rest = words;
  endless.insert(endless.end(), {"--epoch", "1000000"});
  rest.insert(rest.end(), {"--epoch", "1", "--resume"});
  const Finished first = run(endless, {.signal = SIGINT, .once = out / "out/log.json"});
  EXPECT_NE(first.out.find("go on with --resume"), std::string::npos) << first.all();
  const Finished second = run(rest);
  EXPECT_EQ(second.status, 0) << second.all();
  EXPECT_NE(second.out.find("nothing is left to do"), std::string::npos) << second.all();
}

// Before there is a communicator, and with an exit code of its own.
TEST(LaunchedExampleTest, WrongUsageIsTheCause) {
  const Finished result =
      run({CATENA_RUN, "-n", "1", "--cpu", program("train_mnist_distributed"), "--epoch", "-1"});
  EXPECT_EQ(result.status, 2) << result.all();
  EXPECT_TRUE(
      std::regex_match(report_line(result.err),
                       std::regex("catena-run: rank 0 on .+ failed first: --epoch: .*-1.*")))
      << result.err;
}

TEST(LaunchedExampleTest, PluginOfAnotherBuildIsTheCause) {
  const TempFolder plugins;
  std::filesystem::copy(TEST_PLUGINS "/libcatena_other_build.so", plugins / "libcatena_mpi.so");
  const Finished result =
      run({CATENA_RUN, "-n", "2", "--cpu", "--env", "CATENA_PLUGIN_PATH=" + plugins.path(),
           program("train_mnist_distributed")});
  EXPECT_EQ(result.status, 1) << result.all();
  EXPECT_TRUE(std::regex_match(
      report_line(result.err),
      std::regex("catena-run: rank [01] on .+ failed first: create_communicator: the mpi plug-in "
                 "cannot be used: plug-in 'mpi' is of another build: .+")))
      << result.err;
}

}  // namespace
}  // namespace catena::test
