// The choices of cuDNN's engines that are kept on disk: their bytes, and on a GPU that a second
// process takes them from there and computes the same bits.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cudnn/plan_entry.h"
#include "catena/testing_markers.h"
#include "kernels/second_process.h"
#include "temp_folder.h"

namespace catena {
namespace {

namespace fs = std::filesystem;
using cudnn::EngineChoice;
using cudnn::plan_entry_from;
using cudnn::PlanEntry;
using cudnn::to_bytes;

constexpr const char* kProblem = "cudnn 91900 NVIDIA H200 90 132 convolution forward 1 2 3 ";

PlanEntry entry_with(const std::string& compiled) {
  return {EngineChoice{38, {{2, 13}, {24, -1}, {13, 0}}}, compiled};
}

TEST(PlanEntry, RoundTrips) {
  const std::string compiled = std::string("{\"a\": \n1}") + '\0' + "\xff\n";
  for (const std::string& text : {std::string(), compiled}) {
    const auto read = plan_entry_from(to_bytes(entry_with(text), kProblem), kProblem);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->choice, entry_with("").choice);
    EXPECT_EQ(read->compiled, text);
  }
  const auto without_knobs =
      plan_entry_from(to_bytes({EngineChoice{0, {}}, ""}, kProblem), kProblem);
  ASSERT_TRUE(without_knobs.has_value());
  EXPECT_EQ(without_knobs->choice, EngineChoice{});
  const auto none = plan_entry_from(to_bytes({}, kProblem), kProblem);
  ASSERT_TRUE(none.has_value());
  EXPECT_FALSE(none->choice.has_value());
}

TEST(PlanEntry, IsForOneProblem) {
  for (const PlanEntry& entry : {entry_with("x"), PlanEntry{}}) {
    const std::string bytes = to_bytes(entry, kProblem);
    EXPECT_FALSE(plan_entry_from(bytes, "another").has_value());
    EXPECT_FALSE(plan_entry_from(bytes, "").has_value());
    EXPECT_FALSE(plan_entry_from(bytes, std::string(kProblem) + "4 ").has_value());
    EXPECT_FALSE(plan_entry_from(bytes, std::string_view(kProblem).substr(0, 10)).has_value());
  }
}

TEST(PlanEntry, RefusesOtherForms) {
  const std::string head = std::string("plan 1\n") + kProblem + "\n";
  for (const char* rest :
       {"", "none", "nothing\n", "none\n ", "engine 1\n", "engine x knobs 0 compiled 0\n",
        "engine 1 knobs 2 3 4 compiled 0\n", "engine 1 knobs -1 compiled 0\n",
        "engine 1 knobs 99999999999 compiled 0\n", "engine 1 knobs 0 compiled 3\nxx",
        "engine 1 knobs 0 compiled 1\nxx", "engine 1 knobs 0 compiled -1\n",
        "engine 99999999999999999999 knobs 0 compiled 0\n"})
    EXPECT_FALSE(plan_entry_from(head + rest, kProblem).has_value()) << rest;
  const std::string whole = to_bytes(entry_with("abc"), kProblem);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(plan_entry_from(whole.substr(0, size), kProblem).has_value()) << size;
  EXPECT_FALSE(plan_entry_from("plan 2" + whole.substr(6), kProblem).has_value());
}

std::string lines_of_process(const std::string& folder) {
  return testing::lines_of_plans_program(folder);
}

// The paths of the files of plans.
std::vector<std::string> plan_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string& name : testing::plan_files(folder))
    files.push_back(folder + "/plans/" + name);
  return files;
}

class CudnnPlansOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    CATENA_NEEDS_CUDNN();
    first_ = lines_of_process(folder_.path());
    ASSERT_EQ(first_.find("the process failed"), std::string::npos) << first_;
    ASSERT_NE(first_.find(" taken "), std::string::npos) << first_;
    files_ = plan_files(folder_.path());
    std::cout << files_.size() << " of " << uses().misses << " plans are kept\n";
    ASSERT_GT(files_.size(), 0u);
    EXPECT_EQ(uses().hits, 0u);
    EXPECT_LE(files_.size(), uses().misses);
  }
  CacheUses uses() const { return read_cache_uses(folder_.path(), kPlanCache); }
  // Runs the process again; the plans found on disk and those made.
  CacheUses again() {
    const CacheUses before = uses();
    EXPECT_EQ(lines_of_process(folder_.path()), first_);
    const CacheUses now = uses();
    return {now.hits - before.hits, now.misses - before.misses};
  }
  uint64_t kept() const { return files_.size(); }

  const TempFolder folder_;
  std::string first_;
  std::vector<std::string> files_;
};

TEST_F(CudnnPlansOnDisk, ServeTheNextProcessWithEqualBits) {
  const uint64_t made = uses().misses;
  const CacheUses second = again();
  EXPECT_EQ(second.hits, kept());
  EXPECT_EQ(second.misses, made - kept());
}

TEST_F(CudnnPlansOnDisk, AreChosenAnewWhereTheyAreDamagedOrOfOtherProblems) {
  const uint64_t made = uses().misses;
  for (size_t i = 0; i < files_.size(); ++i) {
    if (i % 3 == 0)
      fs::resize_file(files_[i], fs::file_size(files_[i]) / 2);
    else if (i % 3 == 1 || i + 1 == files_.size())
      write_file(files_[i], "something else");
    else  // whole, but the last file's
      fs::copy_file(files_.back(), files_[i], fs::copy_options::overwrite_existing);
  }
  EXPECT_EQ(again().misses, made);
  EXPECT_EQ(again().hits, kept());  // all of them were replaced
}

TEST_F(CudnnPlansOnDisk, AFolderThatCannotBeWrittenCostsTimeOnly) {
  EXPECT_EQ(lines_of_process("/proc/no/such/place"), first_);
  EXPECT_EQ(lines_of_process("''"), first_);
}

TEST_F(CudnnPlansOnDisk, EightProcessesShareAFolder) {
  const TempFolder shared;
  std::vector<std::string> lines(8);
  std::vector<std::thread> threads;
  for (std::string& one : lines)
    threads.emplace_back([&] { one = lines_of_process(shared.path()); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : lines) EXPECT_EQ(one, first_);
  EXPECT_EQ(plan_files(shared.path()).size(), kept());
}

}  // namespace
}  // namespace catena
