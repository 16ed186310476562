// The programs train, write what they promise, and resume bit for bit.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "catena/array/io.h"
#include "catena/testing.h"
#include "environment_scope.h"
#include "examples.h"

namespace catena::test {
namespace {

const SmallData& data() {
  static const SmallData small;
  return small;
}

// On a CPU, also where there is a GPU: bits are compared.
Words train(const std::string& name, const std::string& out, const Words& more) {
  Words words{program(name), "--out", out};
  if (std::find(more.begin(), more.end(), "--data") == more.end())
    words.insert(words.end(), {"--data", data().path()});
  if (name == "train_mnist") words.insert(words.end(), {"--device", "cpu"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Names and bits agree, but for what measures time.
void expect_equal_files(const std::string& path_a, const std::string& path_b) {
  const std::map<std::string, Array> a = load_npz(path_a), b = load_npz(path_b);
  ASSERT_EQ(a.size(), b.size());
  EXPECT_GE(a.size(), 6u);
  for (const auto& [name, array] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    if (name == "elapsed" || name == "row") continue;  // a row has the seconds, too
    EXPECT_EQ(testing::difference(array, b.at(name)), "") << name;
  }
}

// 200 and 100 images, each with one bright quarter, whose number is the label.
void write_quarters(const std::string& folder) {
  for (const auto& [part, count] : {std::pair("train", 200), std::pair("t10k", 100)}) {
    std::string images = big_endian(0x803) + big_endian(uint32_t(count)) + big_endian(28) +
                         big_endian(28),
                labels = big_endian(0x801) + big_endian(uint32_t(count));
    for (int i = 0; i < count; ++i) {
      labels += static_cast<char>(i % 4);
      for (int pixel = 0; pixel < 28 * 28; ++pixel) {
        const int quarter = pixel / 28 / 14 * 2 + pixel % 28 / 14;
        images += static_cast<char>(quarter == i % 4 ? 255 : 0);
      }
    }
    write_file(folder + "/" + part + "-images-idx3-ubyte", images);
    write_file(folder + "/" + part + "-labels-idx1-ubyte", labels);
  }
}

TEST(Programs, SummarizeAndDraw) {
  const TempFolder folder;
  const Finished result = run(
      train("train_mnist", folder / "out",
            {"--epoch", "1", "--summary", "--graph-dot", folder / "g.dot", "--dropout", "0.5"}));
  expect_trained(result);
  EXPECT_NE(result.out.find("total"), std::string::npos) << result.all();
  EXPECT_NE(result.out.find("785,000"), std::string::npos) << result.all();
  const std::string dot = read_file(folder / "g.dot");
  EXPECT_EQ(dot.find("digraph graphname{\n"), 0u) << dot;
  EXPECT_NE(dot.find("l3/W: (10, 1000), float32"), std::string::npos) << dot;
  EXPECT_NE(dot.find("SoftmaxCrossEntropy"), std::string::npos) << dot;
  EXPECT_NE(dot.find("Dropout"), std::string::npos) << dot;
}

class ResumeTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ResumeTest, TwoEpochsAndThreeEqualFive) {
  const std::string rule = GetParam(), dtype = rule == "adamw" ? "bfloat16" : "float32";
  const TempFolder folder;
  const std::string whole = folder / "whole", parts = folder / "parts";
  const auto options = [&](const char* epochs) {
    return Words{"--epoch", epochs, "--optimizer", rule, "--dtype", dtype};
  };
  expect_trained(run(train("train_mnist", whole, options("5"))));
  expect_trained(run(train("train_mnist", parts, options("2"))));
  // The test can fail: two epochs are not five.
  const Array early = load_npz(parts + "/model.npz").at("l1/W");
  EXPECT_NE(testing::difference(early, load_npz(whole + "/model.npz").at("l1/W")), "");
  Words more = options("5");
  more.push_back("--resume");
  expect_trained(run(train("train_mnist", parts, more)));
  expect_equal_files(whole + "/model.npz", parts + "/model.npz");
  expect_equal_files(whole + "/checkpoint.npz", parts + "/checkpoint.npz");
}
INSTANTIATE_TEST_SUITE_P(Rules, ResumeTest, ::testing::Values("sgd", "adam", "adamw"));

class ExamplesTest : public ::testing::Test {
 protected:
  const TempFolder folder;
};

// Weights stay in float32; products round their operands, so that the model is another one than
// without.
TEST_F(ExamplesTest, AutocastTrainsFloat32Weights) {
  const std::string with = folder / "with", without = folder / "without";
  expect_trained(run(train("train_mnist", with, {"--epoch", "2", "--autocast"})));
  expect_trained(run(train("train_mnist", without, {"--epoch", "2"})));
  const Array a = load_npz(with + "/model.npz").at("l1/W");
  EXPECT_EQ(a.dtype(), Dtype::kFloat32);
  EXPECT_NE(testing::difference(a, load_npz(without + "/model.npz").at("l1/W")), "");
}

// The averages of its normalizations are part of the model and of the checkpoint.
TEST_F(ExamplesTest, ResidualNetworkResumes) {
  const SmallData few(50, 20);
  const std::string whole = folder / "whole", parts = folder / "parts";
  const auto train = [&](const std::string& out, const std::string& epochs, const Words& more) {
    expect_trained(
        run(with({program("train_mnist"), "--device=cpu", "--model=resnet", "--batchsize=20",
                  "--data=" + few.path(), "--out=" + out, "--epoch=" + epochs},
                 more)));
  };
  train(whole, "2", {});
  train(parts, "1", {});
  train(parts, "2", {"--resume"});
  expect_equal_files(whole + "/model.npz", parts + "/model.npz");
  expect_equal_files(whole + "/checkpoint.npz", parts + "/checkpoint.npz");
  const auto model = load_npz(whole + "/model.npz");
  for (const std::string name : {"bn/avg_mean", "blocks/5/bn2/avg_var", "blocks/2/shortcut/0/bn/N"})
    EXPECT_TRUE(model.contains(name)) << name;
}

TEST_F(ExamplesTest, LeNetHasTwoConvolutionsAndTwoLinearLayers) {
  const Words options{"--epoch", "1", "--model", "lenet", "--dropout", "0.5"};
  expect_trained(run(train("train_mnist", folder / "out", options)));
  const auto model = load_npz(folder / "out/model.npz");
  const std::map<std::string, Shape> shapes{{"conv1/W", {20, 1, 5, 5}},
                                            {"conv2/W", {50, 20, 5, 5}},
                                            {"l1/W", {500, 800}},
                                            {"l2/W", {10, 500}},
                                            {"conv1/b", {20}},
                                            {"conv2/b", {50}},
                                            {"l1/b", {500}},
                                            {"l2/b", {10}}};
  EXPECT_EQ(model.size(), shapes.size());
  for (const auto& [name, shape] : shapes) EXPECT_EQ(model.at(name).shape(), shape) << name;
}

// The labels say which quarter of the image is bright: a network of the right shape finds that.
TEST_F(ExamplesTest, LeNetLearns) {
  const std::string data = folder / "data";
  std::filesystem::create_directory(data);
  write_quarters(data);
  const Finished result = run(
      train("train_mnist", folder / "out", {"--data", data, "--epoch", "3", "--model", "lenet"}));
  expect_trained(result);
  EXPECT_EQ(result.last_line(), "test accuracy 1.0000") << result.all();
}

TEST_F(ExamplesTest, UnitsAreTheHiddenSizeOfTheMlp) {
  expect_trained(run(train("train_mnist", folder / "a", {"--epoch", "1", "--unit", "30"})));
  const auto a = load_npz(folder / "a/model.npz");
  EXPECT_EQ(a.at("l1/W").shape(), (Shape{30, 784}));
  EXPECT_EQ(a.at("l2/W").shape(), (Shape{30, 30}));
  expect_trained(run(train("train_mnist_model_parallel", folder / "b",
                           {"--epoch", "1", "-u", "30", "-g", "-1,-1"})));
  EXPECT_EQ(load_npz(folder / "b/model.npz").at("second/l3/W").shape(), (Shape{60, 30}));
}

TEST_F(ExamplesTest, ResidualNetworkTrainsOnReplicas) {
  const SmallData few(50, 20);
  expect_trained(
      run({program("train_mnist_data_parallel"), "--data", few.path(), "--out", folder / "out",
           "--model", "resnet", "--schedule", "cosine", "--batchsize", "20", "--epoch", "1"}));
}

TEST_F(ExamplesTest, AnEarlierRunIsNotOverwrittenUnasked) {
  const SmallData few(50, 20);
  const Words words{
      program("train_mnist"), "--data", few.path(), "--out", folder / "out", "--epoch", "1",
      "--optimizer",          "sgd"};
  expect_trained(run(words));
  const std::string before = read_file(folder / "out/checkpoint.npz");
  const Finished refused = run(words);
  EXPECT_EQ(refused.status, 1) << refused.all();
  for (const char* text : {"out/checkpoint.npz' is of an earlier run", "--resume", "--overwrite"})
    EXPECT_NE(refused.err.find(text), std::string::npos) << refused.err;
  EXPECT_TRUE(read_file(folder / "out/checkpoint.npz") == before);
  Words again = words;
  again.push_back("--overwrite");
  expect_trained(run(again));
}

TEST_F(ExamplesTest, ResumeNeedsACheckpoint) {
  const Finished result = run(train("train_mnist", folder / "new", {"--resume"}));
  EXPECT_EQ(result.status, 1);
  for (const std::string& text : {"--resume: there is no '" + (folder / "new/checkpoint.npz"),
                                  std::string("start without --resume"), std::string("--out")})
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
}

// A checkpoint that is damaged, of another rule, or of another model is refused and left as it is.
TEST_F(ExamplesTest, ResumeNeedsItsOwnCheckpoint) {
  const std::string out = folder / "out", path = out + "/checkpoint.npz";
  const auto expect_refused = [&](const std::string& name, const Words& more, const Words& texts) {
    const std::string before = read_file(path);
    Words options{"--epoch", "2", "--resume"};
    options.insert(options.end(), more.begin(), more.end());
    const Finished result = run(train(name, out, options));
    EXPECT_EQ(result.status, 1) << result.all();
    for (const std::string& text : texts)
      EXPECT_NE(result.err.find(text), std::string::npos) << text << " is not in " << result.err;
    EXPECT_TRUE(read_file(path) == before) << "the checkpoint was changed";
  };
  expect_trained(run(train("train_mnist", out, {"--epoch", "1", "--optimizer", "sgd"})));
  expect_refused("train_mnist", {"--optimizer", "adam"},
                 {path, "optimizer", "is not the state of this optimizer", "missing: alpha"});
  expect_refused("train_mnist_model_parallel", {"--optimizer", "sgd", "--device", "cpu:0,cpu:1"},
                 {path, "the checkpoint does not fit the model", "missing: first/l1/W",
                  "unknown: l1/W (1000, 784)"});
  expect_refused("train_mnist", {"--optimizer", "sgd", "--batchsize", "50"},
                 {path, "--batchsize 100 --seed 1", "got --batchsize 50 --seed 1"});
  expect_refused("train_mnist", {"--optimizer", "sgd", "--seed", "2"},
                 {path, "--batchsize 100 --seed 1", "got --batchsize 100 --seed 2"});
  const Finished faster =
      run(train("train_mnist", out, {"--optimizer", "sgd", "--lr", "0.5", "--resume"}));
  EXPECT_NE(faster.out.find("--lr 0.5 replaces the 0.1 of the checkpoint"), std::string::npos)
      << faster.all();
  std::filesystem::resize_file(path, 3000);
  expect_refused("train_mnist", {"--optimizer", "sgd"}, {path, "it is cut"});
}

TEST_F(ExamplesTest, WritesModelCheckpointAndLog) {
  const std::string out = folder / "a/b";  // made with its parents
  expect_trained(run(train("train_mnist", out, {"--epoch", "2"})));
  EXPECT_EQ(load_npz(out + "/model.npz").at("l1/W").shape(), (Shape{1000, 784}));
  const std::string log = read_file(out + "/log.json");
  for (const char* key : {"\"epoch\": 2", "train_loss", "test_accuracy", "elapsed"})
    EXPECT_NE(log.find(key), std::string::npos) << key << "\n" << log;
}

TEST_F(ExamplesTest, ModelParallel) {
  expect_trained(run(train("train_mnist_model_parallel", folder / "out",
                           {"--epoch", "1", "--device", "cpu:0,cpu:1", "--dropout", "0.5"})));
}

TEST_F(ExamplesTest, DataParallel) {
  expect_trained(run(train("train_mnist_data_parallel", folder / "out",
                           {"--epoch", "1", "--device", "cpu:0,cpu:1,cpu:2"})));
}

TEST_F(ExamplesTest, DistributedWithoutALauncherIsOneRank) {
  const EnvironmentScope on_cpu("CATENA_DEVICE", "cpu");
  expect_trained(run(train("train_mnist_distributed", folder / "out", {"--epoch", "1"})));
}

// A file system of a few megabytes, where root may mount one.
class TinyDisk {
 public:
  explicit TinyDisk(const char* size)
      : mounted_(::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0,
                         (std::string("size=") + size).c_str()) == 0),
        reason_(mounted_ ? "" : std::strerror(errno)) {}
  ~TinyDisk() {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const char* reason() const { return reason_; }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  std::string path() const { return folder_.path(); }
  int entries() const { return folder_.entries(); }

 private:
  TempFolder folder_;
  bool mounted_;
  const char* reason_;
};

// Model and checkpoint take 7 MB each with SGD: both fit, a second checkpoint beside them does not.
TEST_F(ExamplesTest, AFullDiskLeavesTheOldCheckpoint) {
  const TinyDisk disk("18m");
  if (!disk.mounted())
    GTEST_SKIP() << "SKIPPED: cannot mount a small file system here: " << disk.reason();
  expect_trained(run(train("train_mnist", disk.path(), {"--epoch", "1", "--optimizer", "sgd"})));
  const std::string before = read_file(disk / "checkpoint.npz");
  const int entries = disk.entries();
  const Finished result =
      run(train("train_mnist", disk.path(), {"--epoch", "2", "--optimizer", "sgd", "--resume"}));
  EXPECT_EQ(result.status, 1) << result.all();
  EXPECT_NE(result.err.find("checkpoint.npz"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("No space left on device"), std::string::npos) << result.err;
  EXPECT_TRUE(read_file(disk / "checkpoint.npz") == before) << "the old checkpoint was changed";
  EXPECT_EQ(disk.entries(), entries) << "something was left behind";
}

}  // namespace
}  // namespace catena::test
