#include "starter/mpirun_command.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "starter/session_folder.h"

namespace catena::launch {
namespace {

MpirunRequest example(int major) {
  MpirunRequest request;
  request.version = {major, 0, std::to_string(major) + ".0"};
  request.plan.ranks = 4;
  request.forward = {"PATH", "NCCL_DEBUG"};
  request.launcher = "/opt/catena/bin/catena-run";
  request.settings.job = "0123abcd";
  request.settings.size = 4;
  request.settings.devices = "auto";
  request.program = {"./train", "--epochs", "5"};
  return request;
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
  EXPECT_EQ(join(mpirun_command(example(4)), " "),
            "mpirun --allow-run-as-root -n 4 --oversubscribe --map-by slot --bind-to none "
            "--mca odls_base_sigkill_timeout 1 -x PATH -x NCCL_DEBUG "
            "/opt/catena/bin/catena-run --rank-process job=0123abcd size=4 devices=auto "
            "timeout=300 start-timeout=60 -- ./train --epochs 5");
}

TEST(MpirunCommand, OpenMpi5) {
  EXPECT_EQ(join(mpirun_command(example(5)), " "),
            "mpirun --allow-run-as-root -n 4 --map-by slot:OVERSUBSCRIBE --bind-to none "
            "--prtemca odls_base_sigkill_timeout 1 -x PATH -x NCCL_DEBUG "
            "/opt/catena/bin/catena-run --rank-process job=0123abcd size=4 devices=auto "
            "timeout=300 start-timeout=60 -- ./train --epochs 5");
}

TEST(MpirunCommand, HostsAndMoreArguments) {
  MpirunRequest request = example(4);
  request.plan.hosts = {{"h1", 2}, {"h2", 2}};
  request.mpi_args = {"--mca", "btl_tcp_if_include", "eth0"};
  const std::string line = join(mpirun_command(request), " ");
  EXPECT_NE(line.find(" --host h1:2,h2:2 "), std::string::npos) << line;
  EXPECT_NE(line.find(" --mca btl_tcp_if_include eth0 /opt/"), std::string::npos) << line;
}

TEST(MpirunCommand, SessionFolder) {
  for (const int major : {4, 5}) {
    MpirunRequest request = example(major);
    request.session_folder = "/tmp/catena-run-x";
    const std::string line = join(mpirun_command(request), " ");
    const std::string expected = major == 4 ? " --mca orte_tmpdir_base /tmp/catena-run-x -x PATH "
                                            : " --prtemca prte_tmpdir_base /tmp/catena-run-x -x ";
    EXPECT_NE(line.find(expected), std::string::npos) << line;
  }
  EXPECT_FALSE(names_session_folder({"--mca", "btl", "tcp"}, {"TMPDIR=/x", "A=tmpdir_base"}));
  EXPECT_TRUE(names_session_folder({"--mca", "orte_tmpdir_base", "/x"}, {}));
  EXPECT_TRUE(names_session_folder({}, {"OMPI_MCA_orte_local_tmpdir_base=/x"}));
  EXPECT_TRUE(names_session_folder({}, {"PRTE_MCA_prte_tmpdir_base=/x"}));
}

TEST(MpirunCommand, ManyHostsAreReachedDirectly) {
  for (const int major : {4, 5}) {
    MpirunRequest request = example(major);
    for (int i = 0; i < 64; ++i)
      request.plan.hosts.push_back({std::string("n").append(std::to_string(i)), 8});
    const std::string line = join(mpirun_command(request), " ");
    const std::string expected = major == 4 ? " --mca plm_rsh_no_tree_spawn 1 "
                                              "--mca plm_rsh_num_concurrent 64 "
                                            : " --prtemca plm_ssh_no_tree_spawn 1 "
                                              "--prtemca plm_ssh_num_concurrent 64 ";
    EXPECT_NE(line.find(expected), std::string::npos) << line;
  }
}

TEST(MpirunCommand, LoneColonIsHiddenFromMpirun) {
  MpirunRequest request = example(4);
  request.program = {"prog", ":", "50%"};
  const std::vector<std::string> words = mpirun_command(request);
  EXPECT_EQ(words.back(), "50%25");
  EXPECT_EQ(words[words.size() - 2], "%3A");
  EXPECT_EQ(words[words.size() - 5], "escaped=1");
  EXPECT_EQ(percent_decode("%3A"), ":");
  EXPECT_EQ(percent_decode("50%25"), "50%");
}

TEST(MpirunCommand, SettingsComeBack) {
  RankSettings settings;
  settings.job = "deadbeef";
  settings.size = 16;
  settings.devices = "cuda:0,1,3";
  settings.timeout = 2.5;
  settings.start_timeout = 10;
  settings.log_dir = "/tmp/a b=c";
  settings.terminal = "120x40";
  settings.bind = false;
  settings.several_hosts = true;
  settings.escaped = true;
  const RankSettings again = parse_rank_settings(to_words(settings));
  EXPECT_EQ(to_words(again), to_words(settings));
  EXPECT_EQ(again.log_dir, settings.log_dir);
  EXPECT_FALSE(again.bind);
  EXPECT_THROW(parse_rank_settings({"colour=blue"}), UserError);
}

TEST(MpirunCommand, ForwardedVariables) {
  const std::vector<std::string> environment = {"PATH=/bin",         "HOME=/root",
                                                "NCCL_DEBUG=INFO",   "CATENA_LOG=debug",
                                                "OMP_NUM_THREADS=2", "CUDA_VISIBLE_DEVICES=0",
                                                "LD_LIBRARY_PATH=",  "PATHS=x"};
  const std::vector<EnvSetting> settings = {{"HOME", std::nullopt}, {"SEED", "1"}, {"PATH", "/x"}};
  EXPECT_EQ(forwarded_names(environment, settings),
            (std::vector<std::string>{"CATENA_LOG", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH",
                                      "NCCL_DEBUG", "OMP_NUM_THREADS", "PATH", "HOME", "SEED"}));
}

}  // namespace
}  // namespace catena::launch
