#include "plan/plan.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "error_text.h"

namespace catena::launch {
namespace {

Machine with_gpus(int gpus) {
  Machine machine;
  machine.gpus = gpus;
  if (gpus == 0) machine.gpu_problem = "no NVIDIA driver";
  return machine;
}

JobSpec plan(const JobSpec& job, const Machine& machine) {
  return make_plan(job, machine, {"mpirun", 32, 4});
}

std::string refusal(const JobSpec& job, const Machine& machine) {
  return error_of<UserError>([&] { plan(job, machine); });
}

TEST(Plan, DefaultIsOneRankAGpuElseTwo) {
  EXPECT_EQ(plan({}, with_gpus(8)).ranks, 8);
  EXPECT_EQ(to_text(plan({}, with_gpus(8)).devices), "auto");
  EXPECT_EQ(plan({}, with_gpus(0)).ranks, 2);
  EXPECT_EQ(to_text(plan({}, with_gpus(0)).devices), "cpu");
  JobSpec job;
  job.ranks = 3;
  EXPECT_EQ(refusal(job, with_gpus(2)),
            "3 ranks asked for but this machine has 2 GPUs, and every rank needs its own; use -n 2 "
            "or fewer, choose devices with --gpus, or run on CPU devices with --cpu (or "
            "CATENA_DEVICE=cpu)");
}

TEST(Plan, CpuOnRequest) {
  JobSpec job;
  job.devices.kind = Devices::Kind::cpu;
  job.ranks = 12;
  EXPECT_EQ(to_text(plan(job, with_gpus(8)).devices), "cpu");
  Machine machine = with_gpus(8);
  machine.device = "cpu";
  EXPECT_EQ(plan({}, machine).ranks, 2);
  EXPECT_EQ(to_text(plan({}, machine).devices), "cpu");
}

TEST(Plan, GpuList) {
  JobSpec job;
  job.devices = {Devices::Kind::listed, {0, 1, 3}};
  EXPECT_EQ(plan(job, with_gpus(4)).ranks, 3);
  EXPECT_EQ(to_text(plan(job, with_gpus(4)).devices), "cuda:0,1,3");
  EXPECT_EQ(refusal(job, with_gpus(2)),
            "--gpus names GPU 3 but this machine has 2 GPUs, numbered from 0 to 1");
  EXPECT_EQ(refusal(job, with_gpus(0)),
            "--gpus was given but this machine has 0 GPUs: no NVIDIA driver; leave --gpus out to "
            "run on CPU devices");
  job.ranks = 2;
  EXPECT_EQ(refusal(job, with_gpus(4)),
            "--gpus names 3 GPUs but this machine runs 2 ranks; name one GPU a rank, or change -n "
            "(or the slots) to match");
}

TEST(Plan, Hosts) {
  JobSpec job;
  job.hosts = {{"a", 4}, {"b", 2}};
  EXPECT_EQ(plan(job, with_gpus(0)).ranks, 6);
  EXPECT_EQ(to_text(plan(job, with_gpus(0)).devices), "auto");
  job.ranks = 7;
  EXPECT_EQ(refusal(job, with_gpus(0)),
            "7 ranks asked for but the hosts have 6 slots; raise the numbers in -H h1:4,h2:4 (or "
            "slots= in the hostfile), or use -n 6");
  job.ranks = 6;
  job.devices = {Devices::Kind::listed, {0, 1}};
  EXPECT_EQ(refusal(job, with_gpus(0)).find("--gpus names 2 GPUs but a runs 4 ranks"), 0u);
}

TEST(Plan, MoreRanksThanAHostTakesAreRefused) {
  JobSpec job;
  job.ranks = 100000;
  EXPECT_EQ(
      refusal(job, with_gpus(0)),
      "100000 ranks asked for on this machine, but one host takes 4096 at most; use a smaller "
      "-n, or more hosts with -H h1:4,h2:4");
  job.hosts = {{"a", 4}, {"b", 200000}};
  EXPECT_EQ(refusal(job, with_gpus(0)).find("100000 ranks asked for on b, but one host takes"), 0u);
  job.hosts.clear();
  job.ranks = 600;
  Machine machine = with_gpus(0);
  EXPECT_EQ(plan(job, machine).ranks, 600);
  machine.most_files = 1024;
  EXPECT_EQ(refusal(job, machine),
            "600 ranks asked for, for which mpirun needs about 2432 open files, but a process may "
            "have 1024 (ulimit -n); use -n 248 or fewer, or raise it with ulimit -n 2432");
  machine.most_processes = 1199;
  EXPECT_EQ(refusal(job, machine),
            "600 ranks asked for, which are 1200 processes, but there may be 1199 here (ulimit -u, "
            "kernel.pid_max, pids.max of the control group); use a smaller -n, or raise the limit");
  job.ranks = 248;
  EXPECT_EQ(plan(job, machine).ranks, 248);
}

TEST(Plan, DeviceOfTheEnvironmentThatIsNotThereIsRefused) {
  Machine machine = with_gpus(0);
  machine.gpu_problem = "no driver";
  for (const std::string device : {"cuda:0", "cuda", "gpu"}) {
    machine.device = device;
    EXPECT_EQ(refusal({}, machine), "CATENA_DEVICE=" + device +
                                        " but this machine has 0 GPUs: no driver; unset it, or "
                                        "use --cpu");
  }
  for (const std::string device : {"foo", "gpu:x", "cpu:", "cuda:-1", ":"}) {
    machine.device = device;
    EXPECT_EQ(refusal({}, machine),
              "CATENA_DEVICE=" + device +
                  " is not the name of a device; expected cpu, cuda or one with its number, such "
                  "as cuda:1");
  }
  JobSpec job;
  job.devices.kind = Devices::Kind::cpu;
  EXPECT_EQ(to_text(plan(job, machine).devices), "cpu") << "--cpu is the stronger";
  machine = with_gpus(2);
  machine.device = "cuda:0";
  EXPECT_EQ(plan({}, machine).ranks, 2);
}

TEST(Plan, BatchSystem) {
  Machine machine = with_gpus(0);
  machine.scheduled_tasks = 16;
  EXPECT_EQ(plan({}, machine).ranks, 16);
  EXPECT_EQ(to_text(plan({}, machine).devices), "auto");
}

// srun's ranks on this machine alone need nothing of what other machines do.
TEST(Plan, AllocationOfThisMachine) {
  Machine machine = with_gpus(0);
  machine.scheduled_tasks = 16;
  machine.allocation_is_here = true;
  const JobSpec job = make_plan({}, machine, {"srun", 64, 0, true});
  EXPECT_EQ(job.ranks, 16);
  EXPECT_TRUE(job.by_srun);
  EXPECT_FALSE(job.remote);
  EXPECT_FALSE(job.in_allocation);
  machine = with_gpus(4);
  machine.scheduled_tasks = 1;
  machine.allocation_is_here = true;
  EXPECT_EQ(make_plan({}, machine, {"srun", 64, 0, true}).ranks, 4) << "nobody asked for tasks";
  machine.allocation_is_here = false;
  EXPECT_EQ(make_plan({}, machine, {"srun", 64, 0, true}).ranks, 1);
  EXPECT_TRUE(make_plan({}, machine, {"srun", 64, 0, true}).remote);
}

// Their programs are compared.
TEST(Plan, SeveralHosts) {
  JobSpec job;
  EXPECT_FALSE(plan(job, with_gpus(2)).several_hosts());
  job.hosts = {{"a", 4}};
  EXPECT_FALSE(plan(job, with_gpus(2)).several_hosts());
  job.hosts = {{"a", 4}, {"b", 2}};
  EXPECT_TRUE(plan(job, with_gpus(2)).several_hosts());
  Machine machine = with_gpus(0);
  machine.scheduled_tasks = 16;
  EXPECT_TRUE(plan({}, machine).several_hosts());
}

TEST(Plan, DeviceOfARank) {
  EXPECT_EQ(device_of_rank(parse_devices("cpu"), 3, 4, 8, ""), "cpu:3");
  EXPECT_EQ(device_of_rank(parse_devices("cpu"), 63, 130, 0, ""), "cpu:63");
  EXPECT_EQ(device_of_rank(parse_devices("cpu"), 64, 130, 0, ""), "cpu:0") << "there is no cpu:64";
  EXPECT_EQ(device_of_rank(parse_devices("auto"), 129, 130, 0, ""), "cpu:1");
  EXPECT_EQ(device_of_rank(parse_devices("auto"), 3, 4, 8, ""), "cuda:3");
  EXPECT_EQ(device_of_rank(parse_devices("auto"), 3, 4, 0, "no driver"), "cpu:3");
  EXPECT_EQ(device_of_rank(parse_devices("cuda:0,1,3"), 2, 3, 4, ""), "cuda:3");
  EXPECT_THROW(device_of_rank(parse_devices("auto"), 0, 4, 2, ""), UserError);
  EXPECT_EQ(device_of_rank(parse_devices("auto"), 3, 4, 1, "", true), "cuda:0");
  EXPECT_EQ(device_of_rank(parse_devices("cpu"), 3, 4, 1, "", true), "cpu:3");
  EXPECT_THROW(device_of_rank(parse_devices("cuda:0,1"), 2, 3, 4, ""), UserError);
  EXPECT_THROW(device_of_rank(parse_devices("cuda:0,5"), 1, 2, 4, ""), UserError);
}

TEST(Plan, DevicesAsText) {
  for (const std::string text : {"auto", "cpu", "cuda:0,1,3"})
    EXPECT_EQ(to_text(parse_devices(text)), text);
}

}  // namespace
}  // namespace catena::launch
