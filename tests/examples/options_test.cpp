// The options that all training examples share have one name, that of Chainer's examples; names of
// earlier versions are accepted; a checkpoint knows its batch size and its seed.
#include <gtest/gtest.h>

#include "catena/core/device.h"
#include "error_text.h"
#include "examples.h"

namespace catena::test {
namespace {

const Words& training_programs() {
  static const Words all{"train_mnist",
                         "train_mnist_model_parallel",
                         "train_mnist_data_parallel",
                         "train_mnist_distributed",
                         "train_ptb",
                         "train_imagenet",
                         "train_translation",
                         "train_word2vec",
                         "train_vae",
                         "train_gan"};
  return all;
}

TEST(ExampleOptions, HaveOneNameInAllPrograms) {
  for (const std::string& name : training_programs()) {
    const std::string help = run({program(name), "--help"}).out;
    for (const char* option : {"-d,--device ", "-g,--gpu ", "--epoch ", "--batchsize ", "--seed ",
                               "--out ", "--resume", "--overwrite", "--report "})
      EXPECT_NE(help.find(option), std::string::npos) << option << " is not in: " << help;
    EXPECT_EQ(help.find("--epochs"), std::string::npos) << help;
  }
}

// Chainer's word2vec and imagenet have other letters for some of them.
TEST(ExampleOptions, HaveChainersLetters) {
  const auto expect = [](const std::string& name, const Words& options) {
    const std::string help = run({program(name), "--help"}).out;
    for (const std::string& option : options)
      EXPECT_NE(help.find("  " + option + " "), std::string::npos)
          << option << " is not in: " << help;
  };
  for (const char* name :
       {"train_mnist", "train_ptb", "train_translation", "train_vae", "train_gan"})
    expect(name, {"-e,--epoch", "-b,--batchsize", "-o,--out"});
  expect("train_word2vec", {"-e,--epoch", "-b,--batchsize", "-o,--out-type", "-u,--unit",
                            "-w,--window", "-m,--model"});
  expect("train_imagenet", {"-e,-E,--epoch", "-B,--batchsize", "-b,--val_batchsize", "-o,--out",
                            "-a,--arch", "-m,--mean", "-r,--root", "-j,--loaderjob"});
  expect("train_vae", {"-z,--dimz", "-u,--unit"});
}

// Each pair of spellings trains the same model, and another batch size or length another one.
TEST(ExampleOptions, EarlierNamesAreAccepted) {
  const SmallData data(50, 20);
  const TempFolder folder;
  const auto model_of = [&](const Words& options) {
    Words words{
        program("train_mnist_data_parallel"), "--data", data.path(), "--unit", "10", "--overwrite"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--out", folder / "out"});
    expect_trained(run(words));
    return read_file(folder / "out/model.npz");
  };
  const std::string now =
      model_of({"--epoch", "2", "--batchsize", "20", "--device", "cpu:0,cpu:1"});
  EXPECT_TRUE(model_of({"--epochs", "2", "--batch", "20", "--devices", "cpu:0,cpu:1"}) == now);
  EXPECT_TRUE(model_of({"--epochs=2", "--batch=20", "--devices=cpu:0,cpu:1"}) == now);
  EXPECT_TRUE(model_of({"-e", "2", "-b", "20", "-d", "cpu:0,cpu:1"}) == now);
  EXPECT_FALSE(model_of({"-e2", "-b10", "-dcpu:0,cpu:1"}) == now);
  EXPECT_FALSE(model_of({"-e1", "-b20", "-dcpu:0,cpu:1"}) == now);
}

TEST(ExampleOptions, AnEarlierNameIsRefusedWhereThereIsNoNewOne) {
  const Finished result = run({program("train_vae"), "--window", "3"});
  EXPECT_EQ(result.status, 2);
  const Finished steps = run({program("pipeline_one_process"), "--epochs", "3"});
  EXPECT_EQ(steps.status, 2);
  expect_contains(steps.err, {"--epochs"});
}

// A graph needs a GPU, so it shows where the program trains by itself.
TEST(ExampleOptions, TheFirstGpuIsTakenWhereThereIsOne) {
  const SmallData data;
  const TempFolder folder;
  const Words words{program("train_mnist"),
                    "--data",
                    data.path(),
                    "--out",
                    folder / "out",
                    "--epoch",
                    "2",
                    "--model",
                    "lenet",
                    "--graph"};
  const Finished result = run(words);
  if (device_count(DeviceType::kCuda) > 0) {
    expect_trained(result);
    return;
  }
  EXPECT_EQ(result.status, 1);
  expect_contains(result.err, {"--graph: CUDA graphs need a GPU, training runs on cpu:0"});
}

TEST(ExampleOptions, ReportSetsTheRows) {
  const SmallData data;  // five updates an epoch
  const TempFolder folder;
  expect_trained(run({program("train_mnist"), "--data", data.path(), "--out", folder / "out",
                      "--device", "cpu", "--unit", "10", "--epoch", "2", "--report", "4"}));
  const std::string log = read_file(folder / "out/log.json");
  for (const char* text : {"\"iteration\": 4,", "\"iteration\": 8,", "\"iteration\": 10,"})
    EXPECT_NE(log.find(text), std::string::npos) << text << " is not in " << log;
}

// Programs whose run is examples::run.
TEST(ExampleOptions, ResumeRefusesAnotherBatchSizeOrSeed) {
  const SmallData data(50, 20);
  for (const char* name : {"train_mnist", "train_vae", "train_gan"}) {
    const TempFolder folder;
    const std::string path = folder / "checkpoint.npz";
    const auto train = [&](const Words& more) {
      return run(
          with({program(name), "--device=cpu", "--data=" + data.path(), "--out=" + folder.path()},
               more));
    };
    const Finished first = train({"-e1", "-b25", "--seed=3"});
    EXPECT_EQ(first.status, 0) << first.all();
    const std::string before = read_file(path);
    const auto expect_refused = [&](const Words& more, const char* text) {
      const Finished result = train(more);
      EXPECT_EQ(result.status, 1) << name << result.all();
      expect_contains(result.err, {"--resume: '",
                                   "checkpoint.npz' was made with --batchsize 25 "
                                   "--seed 3, got ",
                                   text});
      EXPECT_TRUE(read_file(path) == before) << name << ": the checkpoint was changed";
    };
    expect_refused({"-e2", "-b20", "--seed=3", "--resume"}, "got --batchsize 20 --seed 3");
    expect_refused({"-e2", "-b25", "--seed=4", "--resume"}, "got --batchsize 25 --seed 4");
    EXPECT_EQ(train({"-e2", "-b25", "--seed=3", "--resume"}).status, 0) << name;
  }
}

}  // namespace
}  // namespace catena::test
