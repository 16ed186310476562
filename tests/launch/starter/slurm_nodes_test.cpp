#include "starter/slurm_nodes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "environment_scope.h"
#include "temp_folder.h"

namespace catena::launch {
namespace {

using Names = std::vector<std::string>;

// As Slurm 22.05 says it.
constexpr const char* kJob =
    "JobId=1 JobName=interactive\n"
    "   JobState=RUNNING Reason=None Dependency=(null)\n"
    "   ReqNodeList=(null) ExcNodeList=n9\n"
    "   NodeList=n[1-2]\n"
    "   BatchHost=n1\n"
    "   NumNodes=2 NumCPUs=6 NumTasks=6 CPUs/Task=1 ReqB:S:C:T=0:0:*:*\n";

std::string node(const std::string& name, const std::string& state) {
  return "NodeName=" + name + " Arch=x86_64 CoresPerSocket=1  CPUAlloc=2 OS=Linux 6.1 #1 SMP " +
         "State=" + state + " ThreadsPerCore=1 Partitions=main\n";
}

TEST(SlurmNodes, OfAJob) {
  EXPECT_EQ(parse_job_nodes(kJob), "n[1-2]");
  EXPECT_EQ(parse_job_nodes("   NodeList=(null)\n"), "");
  EXPECT_EQ(parse_job_nodes("slurm_load_jobs error: Invalid job id specified"), "");
}

TEST(SlurmNodes, OnesThatWork) {
  EXPECT_EQ(parse_usable_nodes(node("n1", "MIXED") + node("n2", "ALLOCATED+DRAIN")),
            (Names{"n1", "n2"}));
  for (const char* state : {"DOWN", "DOWN*", "MIXED*", "ALLOCATED+NOT_RESPONDING", "DOWN+DRAIN",
                            "IDLE+POWERED_DOWN", "FAILING", "UNKNOWN"})
    EXPECT_EQ(parse_usable_nodes(node("n1", state) + node("n2", "MIXED")), Names{"n2"}) << state;
  EXPECT_TRUE(
      parse_usable_nodes("slurm_load_node error: Unable to contact slurm controller").empty());
}

// A scontrol that answers as Slurm does.
TEST(SlurmNodes, AreAskedFor) {
  const TempFolder folder;
  const std::string path = folder / "scontrol";
  std::ofstream(path) << "#!/bin/sh\nif [ \"$*\" = 'show job 77' ]; then printf '" << kJob
                      << "'; fi\nif [ \"$*\" = '-o show node n[1-2]' ]; then printf '"
                      << node("n1", "MIXED") << node("n2", "DOWN*") << "'; fi\n";
  chmod(path.c_str(), 0755);
  const EnvironmentScope environment("PATH", folder.path() + ":" + getenv("PATH"));
  EXPECT_EQ(usable_nodes_of("77"), Names{"n1"});
  EXPECT_TRUE(usable_nodes_of("78").empty());
}

}  // namespace
}  // namespace catena::launch
