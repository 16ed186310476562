// Ctrl-C ends a training example like SIGTERM: after the current update, with a checkpoint that
// --resume goes on from. Ctrl-\ ends it at once.
#include <gtest/gtest.h>

#include <filesystem>

#include "catena/array/io.h"
#include "catena/testing.h"
#include "error_text.h"
#include "examples.h"

namespace catena::test {
namespace {

constexpr const char* kEndless = "--epoch=1000000";

// train_mnist on few images, and its folder.
class Signals : public ::testing::Test {
 protected:
  Words train(const std::string& out, const std::string& epoch) const {
    return {program("train_mnist"),    "--device=cpu", "--unit=20",
            "--batchsize=20",          epoch,          "--data=" + data_.path(),
            "--out=" + (folder_ / out)};
  }
  // Sends it after the first row.
  Finished stopped_by(int signal, const Words& words, const std::string& out) const {
    return run(words, {.signal = signal, .once = folder_ / (out + "/log.json")});
  }

  SmallData data_{50, 20};  // three updates an epoch
  TempFolder folder_;
};

int64_t updates_in(const std::string& text, const std::string& by) {
  std::smatch found;
  const bool is_there = std::regex_search(
      text, found,
      std::regex("stopped by " + by + " after update ([0-9]+); go on with --resume\n"));
  EXPECT_TRUE(is_there) << text;
  return is_there ? std::stoll(found[1]) : 0;
}

TEST_F(Signals, CtrlCSavesAndTheRunGoesOnAsIfItHadNotEnded) {
  const Finished first = stopped_by(SIGINT, train("parts", kEndless), "parts");
  EXPECT_EQ(first.status, 0) << first.all();
  const int64_t updates = updates_in(first.out, "Ctrl-C");
  EXPECT_GE(updates, 3);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "parts/model.npz")) << "it is not finished";
  const std::string epoch = "--epoch=" + std::to_string(updates / 3 + 2);
  expect_trained(run(with(train("parts", epoch), {"--resume"})));
  expect_trained(run(train("whole", epoch)));
  expect_equal_arrays(folder_ / "whole/model.npz", folder_ / "parts/model.npz");
}

TEST_F(Signals, OfABatchSystemDoTheSame) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    const std::string out = std::to_string(signal);
    const Finished result = stopped_by(signal, train(out, kEndless), out);
    EXPECT_EQ(result.status, 0) << result.all();
    EXPECT_GE(updates_in(result.out, "signal " + out), 3);
  }
}

TEST_F(Signals, CtrlBackslashEndsAtOnce) {
  const Finished result = stopped_by(SIGQUIT, train("out", kEndless), "out");
  EXPECT_EQ(result.status, 128 + SIGQUIT) << result.all();
  EXPECT_EQ(result.out.find("stopped by"), std::string::npos) << result.out;
}

// A shell starts programs in the background with it ignored, so that Ctrl-C is for the foreground.
TEST_F(Signals, CtrlCIsIgnoredInTheBackground) {
  const Words words =
      with({"/bin/sh", "-c", "trap '' INT; exec \"$0\" \"$@\""}, train("out", "--epoch=200"));
  const Finished result = stopped_by(SIGINT, words, "out");
  expect_trained(result);
  EXPECT_EQ(result.out.find("stopped by"), std::string::npos) << result.out;
}

// The other programs, each with a run that would not end by itself in the time of a test.
class SignalsOfPrograms : public ::testing::TestWithParam<const char*> {};

TEST_P(SignalsOfPrograms, CtrlCSaves) {
  const std::string name = GetParam();
  const SmallData data(50, 20);
  const TempFolder folder;
  write_file(folder / "text.txt", [] {
    std::string text;
    for (int i = 0; i < 3000; ++i) text += "a b c d e f g\n";
    return text;
  }());
  const bool reads_text = name == "train_ptb" || name == "train_word2vec";
  Words words{program(name), "--device=cpu",
              "--data=" + (reads_text ? folder / "text.txt" : data.path()),
              "--out=" + (folder / "out"), "--batchsize=10"};
  if (reads_text || name == "train_vae") words.push_back("--unit=10");
  if (name == "train_mnist_data_parallel" || name == "train_mnist_model_parallel")
    words[1] = "--device=cpu:0,cpu:1";
  const Finished result =
      run(with(words, {kEndless}), {.signal = SIGINT, .once = folder / "out/log.json"});
  EXPECT_EQ(result.status, 0) << result.all();
  EXPECT_GE(updates_in(result.out, "Ctrl-C"), 1);
  const Finished rest = run(with(words, {"--epoch=1", "--resume"}));
  EXPECT_EQ(rest.status, 0) << rest.all();
  expect_contains(rest.out, {"epochs already; ask for more with --epoch", "nothing is left to do"});
}
INSTANTIATE_TEST_SUITE_P(Programs, SignalsOfPrograms,
                         ::testing::Values("train_mnist_model_parallel",
                                           "train_mnist_data_parallel", "train_mnist_distributed",
                                           "train_ptb", "train_word2vec", "train_vae", "train_gan"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace catena::test
