#include "plan/plan.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "plan/gpus.h"

namespace catena::launch {
namespace {

Machine with_gpus(int gpus) {
  Machine machine;
  machine.gpus = gpus;
  if (gpus == 0) machine.gpu_problem = "no NVIDIA driver";
  return machine;
}

std::string error_of(const Options& options, const Machine& machine) {
  try {
    make_plan(options, machine);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Plan, DefaultIsOneRankAGpuElseTwo) {
  EXPECT_EQ(make_plan({}, with_gpus(8)).ranks, 8);
  EXPECT_EQ(make_plan({}, with_gpus(8)).devices, "auto");
  EXPECT_EQ(make_plan({}, with_gpus(0)).ranks, 2);
  EXPECT_EQ(make_plan({}, with_gpus(0)).devices, "cpu");
}

TEST(Plan, CpuOnRequest) {
  Options options;
  options.cpu = true;
  options.ranks = 12;
  EXPECT_EQ(make_plan(options, with_gpus(8)).devices, "cpu");
  Machine machine = with_gpus(8);
  machine.device = "cpu";
  EXPECT_EQ(make_plan({}, machine).ranks, 2);
  EXPECT_EQ(make_plan({}, machine).devices, "cpu");
}

TEST(Plan, GpuList) {
  Options options;
  options.gpus = {0, 1, 3};
  EXPECT_EQ(make_plan(options, with_gpus(4)).ranks, 3);
  EXPECT_EQ(make_plan(options, with_gpus(4)).devices, "cuda:0,1,3");
  EXPECT_EQ(error_of(options, with_gpus(2)),
            "--gpus names GPU 3 but this machine has 2 GPUs, numbered from 0 to 1");
  EXPECT_EQ(error_of(options, with_gpus(0)),
            "--gpus was given but this machine has 0 GPUs: no NVIDIA driver; leave --gpus out to "
            "run on CPU devices");
  options.ranks = 2;
  EXPECT_EQ(error_of(options, with_gpus(4)),
            "--gpus names 3 GPUs but this machine runs 2 ranks; name one GPU a rank, or change -n "
            "(or the slots) to match");
}

TEST(Plan, Hosts) {
  Options options;
  options.hosts = {{"a", 4}, {"b", 2}};
  EXPECT_EQ(make_plan(options, with_gpus(0)).ranks, 6);
  EXPECT_EQ(make_plan(options, with_gpus(0)).devices, "auto");
  options.ranks = 7;
  EXPECT_EQ(error_of(options, with_gpus(0)),
            "7 ranks asked for but the hosts have 6 slots; raise the numbers in -H h1:4,h2:4 (or "
            "slots= in the hostfile), or use -n 6");
  options.ranks = 6;
  options.gpus = {0, 1};
  EXPECT_EQ(error_of(options, with_gpus(0)).find("--gpus names 2 GPUs but a runs 4 ranks"), 0u);
}

TEST(Plan, MoreRanksThanAHostTakesAreRefused) {
  Options options;
  options.ranks = 100000;
  EXPECT_EQ(
      error_of(options, with_gpus(0)),
      "100000 ranks asked for on this machine, but one host takes 4096 at most; use a smaller "
      "-n, or more hosts with -H h1:4,h2:4");
  options.hosts = {{"a", 4}, {"b", 200000}};
  EXPECT_EQ(error_of(options, with_gpus(0)).find("100000 ranks asked for on b, but one host takes"),
            0u);
  options.hosts.clear();
  options.ranks = 600;
  Machine machine = with_gpus(0);
  EXPECT_EQ(make_plan(options, machine).ranks, 600);
  machine.most_files = 1024;
  EXPECT_EQ(error_of(options, machine),
            "600 ranks asked for, for which mpirun needs about 2432 open files, but a process may "
            "have 1024 (ulimit -n); use -n 248 or fewer, or raise it with ulimit -n 2432");
  machine.most_processes = 1199;
  EXPECT_EQ(error_of(options, machine),
            "600 ranks asked for, which are 1200 processes, but there may be 1199 here (ulimit -u, "
            "kernel.pid_max, pids.max of the control group); use a smaller -n, or raise the limit");
  options.ranks = 248;
  EXPECT_EQ(make_plan(options, machine).ranks, 248);
}

TEST(Plan, DeviceOfTheEnvironmentThatIsNotThereIsRefused) {
  Machine machine = with_gpus(0);
  machine.gpu_problem = "no driver";
  for (const std::string device : {"cuda:0", "cuda", "gpu"}) {
    machine.device = device;
    EXPECT_EQ(error_of({}, machine), "CATENA_DEVICE=" + device +
                                         " but this machine has 0 GPUs: no driver; unset it, or "
                                         "use --cpu");
  }
  machine.device = "foo";
  EXPECT_EQ(error_of({}, machine), "CATENA_DEVICE=foo names no device; expected cpu or cuda");
  Options options;
  options.cpu = true;
  EXPECT_EQ(make_plan(options, machine).devices, "cpu") << "--cpu is the stronger";
  machine = with_gpus(2);
  machine.device = "cuda:0";
  EXPECT_EQ(make_plan({}, machine).ranks, 2);
}

TEST(Plan, BatchSystem) {
  Machine machine = with_gpus(0);
  machine.scheduled_tasks = 16;
  EXPECT_EQ(make_plan({}, machine).ranks, 16);
  EXPECT_EQ(make_plan({}, machine).devices, "auto");
}

// Their programs are compared.
TEST(Plan, SeveralHosts) {
  Options options;
  EXPECT_FALSE(make_plan(options, with_gpus(2)).several_hosts);
  options.hosts = {{"a", 4}};
  EXPECT_FALSE(make_plan(options, with_gpus(2)).several_hosts);
  options.hosts = {{"a", 4}, {"b", 2}};
  EXPECT_TRUE(make_plan(options, with_gpus(2)).several_hosts);
  Machine machine = with_gpus(0);
  machine.scheduled_tasks = 16;
  EXPECT_TRUE(make_plan({}, machine).several_hosts);
}

TEST(Plan, DeviceOfARank) {
  EXPECT_EQ(device_of_rank("cpu", 3, 4, 8, ""), "cpu:3");
  EXPECT_EQ(device_of_rank("cpu", 63, 130, 0, ""), "cpu:63");
  EXPECT_EQ(device_of_rank("cpu", 64, 130, 0, ""), "cpu:0") << "there is no cpu:64";
  EXPECT_EQ(device_of_rank("auto", 129, 130, 0, ""), "cpu:1");
  EXPECT_EQ(device_of_rank("auto", 3, 4, 8, ""), "cuda:3");
  EXPECT_EQ(device_of_rank("auto", 3, 4, 0, "no driver"), "cpu:3");
  EXPECT_EQ(device_of_rank("cuda:0,1,3", 2, 3, 4, ""), "cuda:3");
  EXPECT_THROW(device_of_rank("auto", 0, 4, 2, ""), UserError);
  EXPECT_THROW(device_of_rank("cuda:0,1", 2, 3, 4, ""), UserError);
  EXPECT_THROW(device_of_rank("cuda:0,5", 1, 2, 4, ""), UserError);
}

TEST(Gpus, VisibleDevices) {
  const std::vector<std::string> uuids = {"GPU-aa", "GPU-ab", "GPU-c"};
  EXPECT_EQ(visible_positions(nullptr, uuids), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(visible_positions("2,0", uuids), (std::vector<int>{2, 0}));
  EXPECT_EQ(visible_positions("", uuids), std::vector<int>{});
  EXPECT_EQ(visible_positions("1,7,0", uuids), std::vector<int>{1}) << "as CUDA: ends there";
  EXPECT_EQ(visible_positions("GPU-ab,GPU-c", uuids), (std::vector<int>{1, 2}));
  EXPECT_EQ(visible_positions("-1", uuids), std::vector<int>{});
}

}  // namespace
}  // namespace catena::launch
