#include "cli/network_check.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include "base/answer.h"
#include "base/text.h"
#include "error_text.h"

namespace catena::launch {
namespace {

std::vector<Interface> interfaces(const std::string& text) { return parse_interfaces(text); }

TEST(NetworkCheck, InterfacesAreReadAsTheyAreWritten) {
  const std::string text = "lo 127.0.0.1/8\neth0 10.1.0.7/16\nib0 192.168.4.255/31\n";
  const auto read = parse_interfaces(text);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[1].name, "eth0");
  EXPECT_EQ(format_network(read[1]), "10.1.0.0/16");
  EXPECT_EQ(format_interfaces(read), text);
}

TEST(NetworkCheck, LinesThatAreNoInterfacesAreLeftOut) {
  EXPECT_TRUE(parse_interfaces("ssh: connect to host nodeb port 22: Connection refused\n").empty());
  EXPECT_TRUE(
      parse_interfaces("eth0 10.1.0.300/16\neth0 10.1.0.3/33\neth0 10.1.0.3/16 up\n").empty());
}

TEST(NetworkCheck, AWholeNetworkIsACandidate) {
  const auto found =
      network_candidates({{"a", interfaces("lo 127.0.0.1/8\neth0 10.1.0.1/16\n"), ""},
                          {"b", interfaces("lo 127.0.0.1/8\nens3 10.1.0.2/16\n"), ""}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].network, "10.1.0.0/16");
  EXPECT_EQ(found[0].interfaces, (std::vector<std::string>{"eth0", "ens3"}));
  EXPECT_EQ(found[0].obstacle, "");
}

TEST(NetworkCheck, BridgesAndNetworksOfOneHostHaveAnObstacle) {
  const auto found =
      network_candidates({{"a", interfaces("docker0 172.17.0.1/16\neth1 10.2.0.1/24\n"), ""},
                          {"b", interfaces("docker0 172.17.0.1/16\neth1 10.3.0.1/24\n"), ""}});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].obstacle, "a and b both have 172.17.0.1 in it: a network inside each host");
  EXPECT_EQ(found[1].obstacle, "b has no address in it");
  EXPECT_EQ(found[2].network, "10.3.0.0/24");
  EXPECT_EQ(found[2].obstacle, "a has no address in it");
}

TEST(NetworkCheck, TheTrialsLineIsFoundAmongOthers) {
  const auto trial = parse_trial("warning\nnetwork-trial 5e-05 1000000 0.001\n", 2);
  ASSERT_TRUE(trial.has_value());
  EXPECT_TRUE(trial->works);
  EXPECT_DOUBLE_EQ(trial->latency, 5e-5);
  EXPECT_DOUBLE_EQ(trial->bandwidth, 1e9);
  EXPECT_FALSE(parse_trial("catena-run: host b could not be reached: ssh\n", 2).has_value());
}

TEST(NetworkCheck, TheReasonIsWhatTheLauncherSaysFirst) {
  EXPECT_EQ(reason_of_failure("noise\ncatena-run: host b does not answer\n  more\n"),
            "host b does not answer");
  EXPECT_EQ(reason_of_failure("catena-run: host b has started no rank; see the messages of mpirun "
                              "above\n"),
            "host b has started no rank");
  EXPECT_EQ(reason_of_failure("noise\nlast words\n\n"), "last words");
  EXPECT_EQ(reason_of_failure(""), "no rank answered");
}

TEST(NetworkCheck, TheTableRecommendsTheFastestNetwork) {
  NetworkTrial slow{{"10.1.0.0/16", {"eth0"}, ""}, true, 1e-4, 1e8, ""};
  NetworkTrial fast{{"10.9.0.0/16", {"ib0", "ib1"}, ""}, true, 2e-5, 3e9, ""};
  NetworkTrial none{{"172.17.0.0/16", {"docker0"}, "inside"}, false, 0, 0, "inside each host"};
  const std::string text = format_network_check({slow, fast, none}, {{"a", 8}, {"b", 8}});
  for (const char* part :
       {"10.1.0.0/16    eth0        works: 100 us a small all-reduce, 100 MB/s a large one\n",
        "172.17.0.0/16  docker0     no: inside each host\n",
        "NCCL_SOCKET_IFNAME='=ib0,ib1' catena-run --mpi-args '--mca btl_tcp_if_include "
        "10.9.0.0/16' "
        "-H a:8,b:8 PROGRAM\n",
        "OMPI_MCA_oob_tcp_if_include=10.9.0.0/16"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  expect_contains(format_network_check({none}, {{"a", 1}, {"b", 1}}),
                  {"No network joins these hosts"});
}

std::string output_of(const std::string& words) {
  return answer_of({"/bin/sh", "-c", std::string(CATENA_RUN) + " " + words + "; echo exit $?"}, 50);
}

TEST(NetworkCheck, NeedsTwoHosts) {
  const std::string text = output_of("--check localhost");
  expect_contains(text, {"one host was named; expected two or more"});
  expect_contains(output_of("--check ./train"), {"expected hosts, such as node1,node2"});
  expect_contains(output_of("--check a,b --timeout 5"), {"options go before the hosts"});
}

TEST(NetworkCheck, ANetworkThatIsChosenAlreadyIsRefused) {
  JobSpec job;
  job.hosts = {{"h1", 1}, {"h2", 1}};
  job.mpi_args = {"--mca", "oob_tcp_if_exclude", "docker0"};
  EXPECT_EQ(error_of<UserError>([&] { run_network_check(job); }),
            "--check of hosts with --mpi-args '--mca oob_tcp_if_exclude docker0': "
            "oob_tcp_if_exclude chooses a network, but the check tries each one; leave it out");
}

TEST(NetworkCheck, AHostThatCannotBeAskedIsNamed) {
  if (access("/usr/bin/ssh", X_OK) != 0) GTEST_SKIP() << "SKIPPED: there is no ssh here";
  const std::string text = output_of("--check localhost,no-such-host.invalid");
  expect_contains(text, {"host no-such-host.invalid could not be asked: ", "exit 1"});
}

}  // namespace
}  // namespace catena::launch
