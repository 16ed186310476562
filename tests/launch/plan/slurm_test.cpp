#include "plan/slurm.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "error_text.h"
#include "launch/variables.h"

namespace catena::launch {
namespace {

VariableMap with(VariableMap map, const VariableMap& more) {
  for (const auto& [name, value] : more) map[name] = value;
  return map;
}

TEST(Slurm, Counts) {
  EXPECT_EQ(parse_slurm_counts("2(x3),1"), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(parse_slurm_counts("4"), (std::vector<int>{4}));
  for (const char* text : {"", "x", "2(x", "2(x3", "2(3)", "2,,3", "2(x99999999)", "-1"})
    EXPECT_TRUE(parse_slurm_counts(text).empty()) << text;
}

TEST(Slurm, NoAllocation) {
  const SlurmAllocation none = slurm_allocation(variables_of({{"SLURM_NTASKS", "4"}}));
  EXPECT_EQ(none.job, "");
  EXPECT_FALSE(none.reaches_out);
  EXPECT_EQ(none.tasks, 0);
}

TEST(Slurm, BatchScript) {
  const SlurmAllocation allocation = slurm_allocation(variables_of(batch_script()));
  EXPECT_EQ(allocation.job, "4711");
  EXPECT_EQ(allocation.nodes, 2);
  EXPECT_EQ(allocation.tasks, 4);
  EXPECT_EQ(allocation.processors, 4);
  EXPECT_TRUE(allocation.reaches_out);
  EXPECT_EQ(allocation.tasks_of_own_step, 0);
}

TEST(Slurm, TasksOfAnAllocation) {
  const auto tasks = [](VariableMap map) {
    map["SLURM_JOB_ID"] = "1";
    map["SLURM_JOB_NUM_NODES"] = "3";
    return slurm_allocation(variables_of(map)).tasks;
  };
  EXPECT_EQ(tasks({{"SLURM_NTASKS", "5"}, {"SLURM_NTASKS_PER_NODE", "2"}}), 5);
  EXPECT_EQ(tasks({{"SLURM_NTASKS_PER_NODE", "2"}}), 6);
  EXPECT_EQ(tasks({{"SLURM_GPUS", "7"}}), 7);
  EXPECT_EQ(tasks({{"SLURM_GPUS_PER_NODE", "h200:2"}}), 6);
  EXPECT_EQ(tasks({{"SLURM_GPUS_PER_NODE", "h200:2,a100:1"}}), 9);
  EXPECT_EQ(tasks({}), 0);
}

// salloc may leave its shell on the login node, which is not one of the allocation.
TEST(Slurm, WhetherOtherMachinesBelongToIt) {
  const VariableMap one = {{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NUM_NODES", "1"}};
  EXPECT_TRUE(slurm_allocation(variables_of(one)).reaches_out);
  EXPECT_FALSE(slurm_allocation(variables_of(with(one, {{"SLURMD_NODENAME", "n1"}}))).reaches_out);
}

TEST(Slurm, TaskOfAStep) {
  const auto own_step = [](const std::string& id, const std::string& tasks) {
    return slurm_allocation(variables_of(with(batch_script(), {{"SLURM_STEP_ID", id},
                                                               {"SLURM_STEP_NUM_TASKS", tasks}})))
        .tasks_of_own_step;
  };
  EXPECT_EQ(own_step("0", "4"), 4);
  EXPECT_EQ(own_step("3", "1"), 1);
  EXPECT_EQ(own_step("4294967290", "1"), 0) << "the shell of salloc";
  EXPECT_EQ(own_step("4294967291", "1"), 0) << "the batch script";
}

TEST(Slurm, PlaceOfATask) {
  const VariableMap map = {{"SLURM_JOB_ID", "7"},  {"SLURM_STEP_ID", "2"},
                           {"SLURM_PROCID", "4"},  {"SLURM_STEP_NUM_TASKS", "5"},
                           {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "2"},
                           {"SLURM_NTASKS", "8"},  {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"}};
  const SlurmTask task = slurm_task(variables_of(map));
  EXPECT_EQ(task.rank, 4);
  EXPECT_EQ(task.size, 5);
  EXPECT_EQ(task.local_rank, 0);
  EXPECT_EQ(task.local_size, 1);
  EXPECT_EQ(task.step, "7.2");
  for (const char* name : {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"})
    expect_contains(error_of<UserError>([&] {
                      slurm_task(variables_of(with(map, {{name, ""}})));
                    }),
                    {name});
}

TEST(Slurm, GpusOfATask) {
  const Variables two = variables_of({{"SLURM_GPUS_ON_NODE", "2"}});
  EXPECT_TRUE(slurm_binds_gpus(1, two));
  EXPECT_FALSE(slurm_binds_gpus(2, two));
  EXPECT_FALSE(slurm_binds_gpus(0, two));
  EXPECT_FALSE(slurm_binds_gpus(1, variables_of({})));
}

}  // namespace
}  // namespace catena::launch
