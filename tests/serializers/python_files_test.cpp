// Files that PyTorch and the safetensors package write and read, where a Python has both:
// CATENA_TEST_TORCH_PYTHON, or python3.
#include <gtest/gtest.h>

#include <cstdlib>

#include "catena/array/io.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/serializers/pytorch.h"
#include "catena/serializers/safetensors.h"
#include "temp_folder.h"

namespace catena::serializers {
namespace {

std::string torch_python() {
  const char* named = std::getenv("CATENA_TEST_TORCH_PYTHON");
  return named ? named : "python3";
}

int run_python(const std::string& arguments) {
  return std::system((torch_python() + " " + CATENA_TENSOR_FILES + " " + arguments).c_str());
}

void expect_equal(const Array& ours, const Array& expected) {
  EXPECT_EQ(ours.shape(), expected.shape());
  if (ours.dtype() != dtype::bfloat16) {
    EXPECT_EQ(ours.dtype(), expected.dtype());
  }
  EXPECT_TRUE(equal(ours.astype(expected.dtype()), expected).all().truth());
}

TEST(PythonFiles, AreReadAndWritten) {
  if (run_python("--check 2>/dev/null") != 0)
    GTEST_SKIP() << torch_python() << " has no PyTorch with safetensors: their files are NOT "
                 << "compared; name another in CATENA_TEST_TORCH_PYTHON";
  const TempFolder folder;
  ASSERT_EQ(run_python("write " + folder.path()), 0);
  size_t tensors = 0;
  for (int n = 0; n < 20; ++n) {
    const std::string name = folder / std::to_string(n);
    const LoadedArrays expected = load_npz(name + ".npz");
    const PytorchFile pytorch(name + ".pt");
    const SafetensorsFile safetensors(name + ".safetensors");
    std::vector<std::string> skipped{"epoch (int)"};
    if (n % 3 == 0) skipped.push_back("others (list)");
    EXPECT_EQ(pytorch.skipped(), skipped);
    EXPECT_EQ(safetensors.metadata(), (Metadata{{"format", "pt"}, {"n", std::to_string(n)}}));
    EXPECT_EQ(safetensors.size(), expected.size());
    ASSERT_EQ(pytorch.size(), expected.size());
    for (const auto& [key, array] : expected) {
      SCOPED_TRACE(name + ": " + key);
      expect_equal(pytorch["model." + key], array);
      expect_equal(safetensors[key], array);
      ++tensors;
    }
    const NamedArrays together = pytorch.read_all();
    for (const auto& [key, array] : together) {
      SCOPED_TRACE(name + ": " + key + ", read with all others");
      expect_equal(array, expected.at(key.substr(6)));
    }
    save_safetensors(folder / ("ours-" + std::to_string(n) + ".safetensors"),
                     NameMap().prefix("model.", "")(together), {{"format", "pt"}});
  }
  EXPECT_GT(tensors, 100u);
  EXPECT_EQ(run_python("check " + folder.path() + " >" + folder / "log"), 0);
  const std::string log = read_file(folder / "log");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 20);
}

}  // namespace
}  // namespace catena::serializers
