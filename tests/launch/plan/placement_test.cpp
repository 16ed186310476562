#include "plan/placement.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "temp_folder.h"

namespace catena::launch {
namespace {

TEST(Placement, CpuLists) {
  const cpu_set_t cpus = parse_cpu_list("0-3,8,10-11\n");
  EXPECT_EQ(CPU_COUNT(&cpus), 7);
  EXPECT_TRUE(CPU_ISSET(8, &cpus));
  EXPECT_FALSE(CPU_ISSET(9, &cpus));
  const cpu_set_t none = parse_cpu_list("");
  EXPECT_EQ(CPU_COUNT(&none), 0);
}

TEST(Placement, Threads) {
  EXPECT_EQ(threads_per_rank(16, 4), 4);
  EXPECT_EQ(threads_per_rank(16, 3), 5);
  EXPECT_EQ(threads_per_rank(2, 8), 1);
}

TEST(Placement, ThisMachine) {
  const cpu_set_t allowed = allowed_cpus();
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), CPU_COUNT(&allowed));
  const cpu_set_t near = cpus_near_gpu("ffff:ff:1f.0");
  EXPECT_TRUE(CPU_EQUAL(&near, &allowed)) << "an unknown GPU binds nothing";
  const cpu_set_t one = cpus_of_cpu_rank(0, 1);
  EXPECT_GE(CPU_COUNT(&one), 1);
}

// A machine whose GPU hangs on some of the processors only.
TEST(Placement, NearTheGpu) {
  const TempFolder sysfs;
  const std::string bus_id = "0000:1b:00.0", folder = sysfs / "bus/pci/devices/" + bus_id;
  std::filesystem::create_directories(folder);
  const auto near = [&](const std::string& list) {
    write_file(folder + "/local_cpulist", list + "\n");
    return cpus_near_gpu(bus_id, sysfs.path());
  };
  const cpu_set_t allowed = allowed_cpus();
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  const cpu_set_t one = near(std::to_string(first));
  EXPECT_EQ(CPU_COUNT(&one), 1);
  EXPECT_TRUE(CPU_ISSET(first, &one));
  const cpu_set_t all = near("0-" + std::to_string(CPU_SETSIZE - 1));
  EXPECT_TRUE(CPU_EQUAL(&all, &allowed)) << "never more than is allowed";
  const cpu_set_t forbidden = near("");
  EXPECT_TRUE(CPU_EQUAL(&forbidden, &allowed)) << "never nothing";
}

}  // namespace
}  // namespace catena::launch
