// What a job takes from its surroundings.
#include "plan/surroundings.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace catena::launch {
namespace {

TEST(Surroundings, ForwardedVariables) {
  const std::vector<std::string> environment = {"PATH=/bin",         "HOME=/root",
                                                "NCCL_DEBUG=INFO",   "CATENA_LOG=debug",
                                                "OMP_NUM_THREADS=2", "CUDA_VISIBLE_DEVICES=0",
                                                "LD_LIBRARY_PATH=",  "PATHS=x"};
  const std::vector<EnvSetting> settings = {{"HOME", std::nullopt}, {"SEED", "1"}, {"PATH", "/x"}};
  EXPECT_EQ(forwarded_names(environment, settings),
            (std::vector<std::string>{"CATENA_LOG", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH",
                                      "NCCL_DEBUG", "OMP_NUM_THREADS", "PATH", "HOME", "SEED"}));
}

TEST(Surroundings, VariablesToHandOnMustBeThere) {
  EXPECT_NO_THROW(check_env({{"PATH", std::nullopt}, {"SEED", "1"}}));
  EXPECT_THROW(check_env({{"CATENA_NOT_SET_ANYWHERE", std::nullopt}}), UserError);
}

// Only other machines need to be told the folder.
TEST(Surroundings, CompleteAJob) {
  JobSpec job;
  job.ranks = 2;
  EXPECT_EQ(add_surroundings(job).folder, "");
  job.remote = true;
  job = add_surroundings(job);
  EXPECT_EQ(job.id.size(), 8u);
  EXPECT_TRUE(job.folder.starts_with('/'));
  EXPECT_TRUE(job.launcher.ends_with("launch_test"));
  EXPECT_EQ(make_log_dir(""), "");
  EXPECT_THROW(make_log_dir("/proc/catena"), UserError);
}

}  // namespace
}  // namespace catena::launch
