#include "starter/mpirun_command.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "error_text.h"
#include "starter/session_folder.h"

namespace catena::launch {
namespace {

JobSpec example() {
  JobSpec job;
  job.ranks = 4;
  job.forward = {"PATH", "NCCL_DEBUG"};
  job.launcher = "/opt/catena/bin/catena-run";
  job.id = "0123abcd";
  job.program = {"./train", "--epochs", "5"};
  return job;
}

MpirunDialect dialect(int major) {
  MpirunDialect dialect;
  dialect.major = major;
  return dialect;
}

TEST(MpirunCommand, Version) {
  const auto four = parse_mpirun_version("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n");
  ASSERT_TRUE(four);
  EXPECT_EQ(four->major, 4);
  EXPECT_EQ(four->minor, 1);
  EXPECT_EQ(four->text, "4.1.4");
  EXPECT_EQ(parse_mpirun_version("mpirun (Open MPI) 5.0.3rc1\n")->major, 5);
  EXPECT_FALSE(parse_mpirun_version("HYDRA build details:\n    Version: 4.1\n"));
  EXPECT_FALSE(parse_mpirun_version(""));
}

TEST(MpirunCommand, OpenMpi4) {
  EXPECT_EQ(join(mpirun_command(example(), dialect(4)), " "),
            "mpirun --allow-run-as-root -n 4 --oversubscribe --map-by slot --bind-to none "
            "--mca odls_base_sigkill_timeout 1 -x PATH -x NCCL_DEBUG "
            "/opt/catena/bin/catena-run --rank-process job=0123abcd size=4 devices=auto "
            "timeout=300 start-timeout=60 -- ./train --epochs 5");
}

TEST(MpirunCommand, OpenMpi5) {
  EXPECT_EQ(join(mpirun_command(example(), dialect(5)), " "),
            "mpirun --allow-run-as-root -n 4 --map-by slot:OVERSUBSCRIBE --bind-to none "
            "--prtemca odls_base_sigkill_timeout 1 -x PATH -x NCCL_DEBUG "
            "/opt/catena/bin/catena-run --rank-process job=0123abcd size=4 devices=auto "
            "timeout=300 start-timeout=60 -- ./train --epochs 5");
}

TEST(MpirunCommand, HostsAndMoreArguments) {
  JobSpec job = example();
  job.grace = 2.5;
  job.hosts = {{"h1", 2}, {"h2", 2}};
  job.mpi_args = {"--mca", "btl_tcp_if_include", "eth0"};
  const std::string line = join(mpirun_command(job, dialect(4)), " ");
  expect_contains(line, {" --host h1:2,h2:2 "});
  EXPECT_NE(line.find(" odls_base_sigkill_timeout 4 "), std::string::npos) << "longer than .grace";
  expect_contains(line, {" --mca btl_tcp_if_include eth0 /opt/"});
}

TEST(MpirunCommand, SessionFolder) {
  for (const int major : {4, 5}) {
    MpirunDialect here = dialect(major);
    here.session_folder = "/tmp/catena-run-x";
    const std::string line = join(mpirun_command(example(), here), " ");
    const std::string expected = major == 4 ? " --mca orte_tmpdir_base /tmp/catena-run-x -x PATH "
                                            : " --prtemca prte_tmpdir_base /tmp/catena-run-x -x ";
    expect_contains(line, {expected});
  }
  EXPECT_FALSE(names_session_folder({"--mca", "btl", "tcp"}, {"TMPDIR=/x", "A=tmpdir_base"}));
  EXPECT_TRUE(names_session_folder({"--mca", "orte_tmpdir_base", "/x"}, {}));
  EXPECT_TRUE(names_session_folder({}, {"OMPI_MCA_orte_local_tmpdir_base=/x"}));
  EXPECT_TRUE(names_session_folder({}, {"PRTE_MCA_prte_tmpdir_base=/x"}));
}

TEST(MpirunCommand, ManyHostsAreReachedDirectly) {
  for (const int major : {4, 5}) {
    JobSpec job = example();
    for (int i = 0; i < 64; ++i)
      job.hosts.push_back({std::string("n").append(std::to_string(i)), 8});
    const std::string line = join(mpirun_command(job, dialect(major)), " ");
    const std::string expected = major == 4 ? " --mca plm_rsh_no_tree_spawn 1 "
                                              "--mca plm_rsh_num_concurrent 64 "
                                            : " --prtemca plm_ssh_no_tree_spawn 1 "
                                              "--prtemca plm_ssh_num_concurrent 64 ";
    expect_contains(line, {expected});
  }
}

TEST(MpirunCommand, LoneColonIsHiddenFromMpirun) {
  JobSpec job = example();
  job.program = {"prog", ":", "50%"};
  const std::vector<std::string> words = mpirun_command(job, dialect(4));
  EXPECT_EQ(words.back(), "50%25");
  EXPECT_EQ(words[words.size() - 2], "%3A");
  EXPECT_EQ(words[words.size() - 5], "escaped=1");
}

}  // namespace
}  // namespace catena::launch
