// Digests of programs.
#include "base/program_digest.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace catena::launch {
namespace {

class DigestsTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  std::string folder_ = ::testing::TempDir() + "catena-digests-" + std::to_string(getpid());
};

TEST_F(DigestsTest, ScriptsCountAndNotOnlyTheirInterpreter) {
  const std::string one = write("one.sh", "echo one\n");
  const auto of = [](const std::string& script) {
    return program_digests({"bash", "-u", script, "x"});
  };
  const Digests before = of(one);
  EXPECT_TRUE(before.at("one.sh").starts_with("9-"));
  EXPECT_TRUE(before.contains("bash"));
  EXPECT_FALSE(program_digests({"bash", "-c", one}).contains("one.sh"));
  write("one.sh", "echo ONE\n");
  EXPECT_NE(of(one), before);
  EXPECT_EQ(find_difference("a", before, "b", of(one))->file, "one.sh");
}

TEST_F(DigestsTest, DifferencesNameTheFile) {
  const Digests digests = {{"bash", "5-5"}, {"one.sh", "9-1"}};
  EXPECT_FALSE(find_difference("a", digests, "b", digests));
  const auto difference = find_difference("a", digests, "b", {{"bash", "5-5"}, {"one.sh", "9-2"}});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->file, "one.sh");
  EXPECT_EQ(difference->host + difference->digest, "a9-1");
  EXPECT_EQ(difference->other_host + difference->other_digest, "b9-2");
  EXPECT_EQ(find_difference("a", {}, "b", {{"libcatena_mpi.so", "3-3"}})->digest, "none");
}

#ifdef STEPS_PROGRAM
TEST_F(DigestsTest, LibcatenaAndItsPluginsCount) {
  const Digests digests = program_digests({STEPS_PROGRAM});
  EXPECT_TRUE(digests.contains("steps_program") && digests.contains("libcatena_mpi.so"));
  EXPECT_TRUE(std::any_of(digests.begin(), digests.end(),
                          [](const auto& one) { return one.first.starts_with("libcatena.so"); }));
}
#endif

}  // namespace
}  // namespace catena::launch
