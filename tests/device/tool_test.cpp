// catena-kernels as the build and users call it. The kernels come from the cache of the build tree,
// where the build of the bundle has left them, so that little is compiled.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "backends/cuda/jit/compile/bundle.h"
#include "backends/cuda/jit/compile/nvrtc.h"
#include "backends/cuda/jit/tool/bundle_list.h"
#include "temp_folder.h"

namespace catena::jit {
namespace {

struct Result {
  int status;
  std::string text;
};
Result run(const std::string& words) {
  Result result{-1, ""};
  FILE* pipe = popen((words + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer;
  while (size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    result.text.append(buffer.data(), count);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

const std::string kTool = CATENA_KERNELS " --nvrtc " CATENA_TEST_NVRTC;
const std::string kCache = " --cache " CATENA_KERNEL_CACHE;

TEST(KernelsTool, WritesTheCoreAndKeepsWhatABundleHas) {
  const TempFolder folder;
  const std::string file = folder.path() + "/kernels.bundle";
  const Result first = run(kTool + " --arch 90 --programs core --out " + file + kCache);
  ASSERT_EQ(first.status, 0) << first.text;
  {
    const auto bundle = Bundle::open(file);
    ASSERT_TRUE(bundle);
    for (const BundleItem& item : core_programs())
      EXPECT_TRUE(bundle->find(kernel_key(item.source, 90))) << item.what;
  }
  // What is there is not compiled again, also where there is neither cache nor compiler.
  const Result second =
      run(CATENA_KERNELS " --nvrtc /nowhere --arch 90 --programs core --out " + file);
  EXPECT_EQ(second.status, 0) << second.text;
  EXPECT_NE(second.text.find(" 0 compiled"), std::string::npos) << second.text;
}

TEST(KernelsTool, PreparesTheCache) {
  const Result result = run(kTool + " --prepare --arch 90 --programs core" + kCache);
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_NE(result.text.find("kernels for sm_90: "), std::string::npos) << result.text;
}

TEST(KernelsTool, SaysWhatIsMissing) {
  const TempFolder folder;
  const std::string cache = " --cache " + folder.path();
  const Result no_gpu = run("CUDA_VISIBLE_DEVICES= " CATENA_KERNELS " --prepare" + cache);
  EXPECT_EQ(no_gpu.status, 1);
  EXPECT_NE(no_gpu.text.find("no GPU to prepare kernels for: "), std::string::npos) << no_gpu.text;
  const Result no_compiler = run(CATENA_KERNELS " --nvrtc /nowhere --prepare --arch 90" + cache);
  EXPECT_EQ(no_compiler.status, 1);
  EXPECT_NE(no_compiler.text.find("NVRTC cannot be used: /nowhere"), std::string::npos)
      << no_compiler.text;
  const Result no_folder = run(kTool + " --prepare --arch 90 --cache /proc/nowhere");
  EXPECT_EQ(no_folder.status, 1);
  EXPECT_NE(no_folder.text.find("'/proc/nowhere' cannot be written"), std::string::npos)
      << no_folder.text;
}

TEST(KernelsTool, RefusesWrongOptions) {
  for (const auto& [words, expected] :
       {std::pair{"--out x", "--out needs --arch"},
        {"--arch many --out x", "--arch 'many': expected a number above 0"},
        {"--arch 90 --programs some --out x", "'some': expected core or full"},
        {"--arch 90", "expected either --prepare or --out"},
        {"--colour red", "unknown option '--colour'"},
        {"--prepare --arch", "'--arch' is not an option, or its value is missing"}}) {
    const Result result = run(CATENA_KERNELS " " + std::string(words));
    EXPECT_EQ(result.status, 1) << words;
    EXPECT_NE(result.text.find(expected), std::string::npos) << result.text;
  }
}

}  // namespace
}  // namespace catena::jit
