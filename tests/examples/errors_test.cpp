// Wrong options and devices: a clear message that names the cause, and a non-zero exit.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "catena/core/device.h"
#include "examples.h"

namespace catena::test {
namespace {

void expect_refused(const Words& words, const Words& texts) {
  const Finished result = run(words);
  EXPECT_NE(result.status, 0) << result.all();
  EXPECT_LT(result.status, 128) << result.all();  // a message, not a crash
  for (const std::string& text : texts)
    EXPECT_NE(result.err.find(text), std::string::npos)
        << "expected '" << text << "' in: " << result.all();
}

TEST(ExampleErrorsTest, UnknownOption) {
  expect_refused({program("train_mnist"), "--epoch-count", "3"}, {"--epoch-count"});
}

TEST(ExampleErrorsTest, BadValues) {
  expect_refused({program("train_mnist"), "--epoch", "-1"}, {"--epoch"});
  expect_refused({program("train_mnist"), "--batchsize", "many"}, {"--batchsize", "many"});
  expect_refused({program("train_mnist"), "--batchsize", "0"},
                 {"'0' is not a whole number above 0"});
  expect_refused({program("train_mnist"), "--epoch", "99999999999999999999"}, {"--epoch"});
  expect_refused({program("train_mnist"), "--lr", "nan"},
                 {"--lr", "'nan' is not a number above 0"});
  expect_refused({program("train_mnist"), "--seed", "-1"}, {"--seed", "'-1'"});
  expect_refused({program("train_mnist"), "--model", "vgg"}, {"--model", "vgg", "lenet"});
  expect_refused({program("train_mnist"), "--schedule", "step"}, {"--schedule", "step"});
  expect_refused({program("train_mnist_data_parallel"), "--device", ",", "--out", "x"},
                 {"--device"});
  expect_refused({program("train_mnist"), "--optimizer", "sdg"},
                 {"--optimizer", "sdg", "momentum"});
  expect_refused({program("train_mnist"), "--device", "tpu:0"}, {"tpu:0"});
  expect_refused({program("train_mnist"), "-g", "-2"}, {"--gpu", "-2"});
  expect_refused({program("train_mnist"), "-g", "0", "-d", "cpu"}, {"--gpu", "--device"});
  expect_refused({program("train_mnist"), "--unit", "10", "--model", "lenet"},
                 {"--unit", "mlp", "got --model lenet"});
  expect_refused({program("train_mnist"), "--dropout", "0.5", "--model", "resnet"},
                 {"--dropout", "mlp and lenet", "got --model resnet"});
}

// No machine has as many.
TEST(ExampleErrorsTest, NoSuchGpu) {
  const int count = device_count(DeviceType::kCuda);
  const std::string why = count == 0
                              ? "cuda:63 cannot be used: "
                              : "this process sees " + std::to_string(count) + " cuda device";
  expect_refused({program("train_mnist"), "--device", "cuda:63"},
                 {"error", "cuda:63", why, "catena-run --check"});
  expect_refused({program("train_mnist_model_parallel"), "--device", "cpu:0,cuda:63"},
                 {"error", "cuda:63", why, "catena-run --check"});
}

// The plug-in is not built, or there is no driver, or the driver is not to show any GPU: each has
// its own words.
TEST(ExampleErrorsTest, NoGpu) {
#ifdef HAS_CUDA_PLUGIN
  const bool has_driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr;
  const std::string why =
      has_driver ? "CUDA_VISIBLE_DEVICES is ''" : "no CUDA driver is installed on this machine";
#else
  const std::string why = "plug-in 'cuda' is not built or not installed";
#endif
  const Words words{"/usr/bin/env", "CUDA_VISIBLE_DEVICES=", program("train_mnist"), "--device",
                    "cuda:0"};
  expect_refused(words, {"error: cuda:0 cannot be used: ", why, "catena-run --check"});
}

TEST(ExampleErrorsTest, PluginOfAnotherBuild) {
  const TempFolder plugins;
  std::filesystem::copy(TEST_PLUGINS "/libcatena_other_build.so", plugins / "libcatena_cuda.so");
  expect_refused({"/usr/bin/env", "CATENA_PLUGIN_PATH=" + plugins.path(), program("train_mnist"),
                  "--device", "cuda:0"},
                 {"error", "cuda:0 cannot be used", "'cuda' is of another build",
                  plugins / "libcatena_cuda.so", "0.0.9-0123456789abcdef", "rebuild the plug-in",
                  "catena-run --check"});
}

TEST(ExampleErrorsTest, DamagedPlugin) {
  const TempFolder plugins;
  write_file(plugins / "libcatena_cuda.so", "no library");
  expect_refused({"/usr/bin/env", "CATENA_PLUGIN_PATH=" + plugins.path(), program("train_mnist"),
                  "--device", "cuda:0"},
                 {"error", "'cuda' does not load", plugins / "libcatena_cuda.so"});
}

TEST(ExampleErrorsTest, GraphsNeedOneGpu) {
  const SmallData data;
  const TempFolder out;
  const Words common{"--data", data.path(), "--out", out.path(), "--graph"};
  const auto with_graph = [&](const std::string& name) { return with({program(name)}, common); };
  Words on_cpu = with_graph("train_mnist");
  on_cpu.insert(on_cpu.end(), {"--gpu", "-1"});
  expect_refused(on_cpu, {"--graph", "need a GPU", "cpu:0"});
  expect_refused(with_graph("train_mnist_model_parallel"), {"--graph", "one device"});
  expect_refused(with_graph("train_mnist_data_parallel"), {"--graph", "several"});
}

TEST(ExampleErrorsTest, ModelParallelTakesTwoDevices) {
  expect_refused({program("train_mnist_model_parallel"), "--device", "cpu:0,cpu:1,cpu:2"},
                 {"--device", "expected two", "3"});
}

TEST(ExampleErrorsTest, ModelParallelHasANetworkOfItsOwn) {
  expect_refused({program("train_mnist_model_parallel"), "--model", "resnet"},
                 {"--model", "use train_mnist", "resnet"});
}

TEST(ExampleErrorsTest, UnwritableOutputFolder) {
  const SmallData data;
  // Below a plain file, which no user can write to, root included.
  const std::string out = (data / "train-labels-idx1-ubyte") + "/out";
  expect_refused({program("train_mnist"), "--data", data.path(), "--out", out},
                 {"output folder", out, "Not a directory"});
}

}  // namespace
}  // namespace catena::test
