// Which networks a job is told to use, and what of Open MPI's own settings is respected.
#include "plan/network.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"

namespace catena::launch {
namespace {

constexpr std::uint32_t ip(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}
constexpr std::uint32_t kMask24 = ip(255, 255, 255, 0), kMask16 = ip(255, 255, 0, 0);

const std::vector<Interface> kHere = {{"lo", ip(127, 0, 0, 1), ip(255, 0, 0, 0)},
                                      {"eth0", ip(10, 77, 0, 1), kMask24},
                                      {"ib0", ip(10, 88, 3, 1), kMask16},
                                      {"docker0", ip(172, 17, 0, 1), kMask16}};

McaParameters none() { return {{}, {}, "/nowhere/bin/mpirun"}; }

std::string text_of(const Network& network) {
  std::vector<std::string> words;
  for (const McaSetting& setting : network.settings)
    words.push_back((setting.runtime ? "R " : "") + setting.name + "=" + setting.value);
  return join(words, "; ");
}

TEST(Network, NetworksThatAllOtherHostsAreIn) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(shared_networks(kHere, {{ip(10, 77, 0, 2)}}), (Names{"10.77.0.0/24"}));
  EXPECT_EQ(shared_networks(kHere, {{ip(10, 77, 0, 2), ip(10, 88, 0, 9)}, {ip(10, 88, 1, 1)}}),
            (Names{"10.88.0.0/16"}));
  EXPECT_EQ(shared_networks(kHere, {{ip(10, 77, 0, 2)}, {ip(10, 78, 0, 2)}}), Names{});
  EXPECT_EQ(shared_networks(kHere, {{ip(172, 17, 0, 2)}}), Names{}) << "of docker";
  EXPECT_EQ(shared_networks(kHere, {{ip(127, 0, 1, 1)}}), Names{});
  EXPECT_EQ(shared_networks(kHere, {{}}), Names{}) << "a name that stands for nothing";
}

TEST(Network, BridgesOfOneHost) {
  for (const char* name : {"docker0", "br-1a2b3c", "virbr0", "veth12ab", "cni0"})
    EXPECT_TRUE(is_bridge_of_one_host(name)) << name;
  for (const char* name : {"eth0", "ib0", "bond0", "br0", "enp3s0", "tun0"})
    EXPECT_FALSE(is_bridge_of_one_host(name)) << name;
}

TEST(Network, ThisMachine) {
  EXPECT_TRUE(is_this_machine("localhost", kHere));
  EXPECT_TRUE(is_this_machine(host_name(), kHere));
  EXPECT_TRUE(is_this_machine("10.77.0.1", kHere));
  EXPECT_TRUE(is_this_machine("127.0.1.1", kHere));
  EXPECT_FALSE(is_this_machine("10.77.0.2", kHere));
  EXPECT_EQ(addresses_of("10.77.0.2"), std::vector<std::uint32_t>{ip(10, 77, 0, 2)});
  EXPECT_FALSE(interfaces_here().empty());
}

TEST(Network, SeveralHostsUseWhatTheyShare) {
  const std::vector<Host> hosts = {{"10.77.0.1", 2}, {"10.77.0.2", 2}};
  const Network four = choose_network(hosts, false, kHere, none(), 4);
  EXPECT_EQ(text_of(four), "btl_tcp_if_include=10.77.0.0/24; R oob_tcp_if_include=10.77.0.0/24");
  EXPECT_EQ(four.shared, std::vector<std::string>{"10.77.0.0/24"});
  EXPECT_EQ(text_of(choose_network(hosts, false, kHere, none(), 5)),
            "btl_tcp_if_include=10.77.0.0/24; R prte_if_include=10.77.0.0/24");
}

TEST(Network, WhatTheUserHasSetStays) {
  const std::vector<Host> hosts = {{"10.77.0.2", 2}};
  const McaParameters arguments({"--mca", "btl_tcp_if_include", "eth9"}, {}, "/nowhere/bin/mpirun");
  EXPECT_EQ(text_of(choose_network(hosts, false, kHere, arguments, 4)),
            "R oob_tcp_if_include=10.77.0.0/24");
  const McaParameters environment({}, {"OMPI_MCA_oob_tcp_if_exclude=eth9", "PATH=/bin"},
                                  "/nowhere/bin/mpirun");
  EXPECT_EQ(text_of(choose_network(hosts, false, kHere, environment, 4)),
            "btl_tcp_if_include=10.77.0.0/24");
  McaParameters site = none();
  std::istringstream file("# comment\n btl_tcp_if_include = ib0 # ours\noob_tcp_if_include=ib0\n");
  site.read_file(file);
  EXPECT_EQ(site.value("btl_tcp_if_include"), "ib0");
  EXPECT_FALSE(site.set_by_user("btl_tcp_if_include"));
  EXPECT_EQ(text_of(choose_network(hosts, false, kHere, site, 4)), "");
}

TEST(Network, BridgesAreLeftOutWhereNamesDoNotTell) {
  const std::string left_out = "127.0.0.1/8,sppp,docker0";
  const std::string expected =
      "btl_tcp_if_exclude=" + left_out + "; R oob_tcp_if_exclude=" + left_out;
  EXPECT_EQ(text_of(choose_network({{"10.99.0.2", 2}}, false, kHere, none(), 4)), expected);
  EXPECT_EQ(text_of(choose_network({}, true, kHere, none(), 4)), expected);
  EXPECT_EQ(text_of(choose_network({}, true, {kHere[0], kHere[1]}, none(), 4)), "");
}

// Ranks of one host need no network, and those that listen can be spoken to by anybody.
TEST(Network, OneHostUsesNone) {
  McaParameters debian = none();
  std::istringstream file("btl = ^uct,openib\n");
  debian.read_file(file);
  McaParameters chosen = none();
  std::istringstream list("btl = self,vader\n");
  chosen.read_file(list);
  for (const std::vector<Host>& hosts : {std::vector<Host>{}, {{"localhost", 4}}}) {
    // The file of the installation that runs the tests may say something, too.
    const std::string here = none().value("btl").value_or("");
    if (here.empty()) {
      EXPECT_EQ(text_of(choose_network(hosts, false, kHere, none(), 4)), "btl=^tcp");
    }
    EXPECT_EQ(text_of(choose_network(hosts, false, kHere, debian, 4)), "btl=^uct,openib,tcp");
    EXPECT_EQ(text_of(choose_network(hosts, false, kHere, chosen, 4)), "");
    const McaParameters mine({"-mca", "btl", "^openib"}, {}, "/nowhere/bin/mpirun");
    EXPECT_EQ(text_of(choose_network(hosts, false, kHere, mine, 4)), "");
  }
}

TEST(Network, WordsThatMpirunWouldTakeForItsOwn) {
  for (const char* word : {"--mca", "-mca", "--gmca", "-gmca", "--omca", "--prtemca", "--am", "-am",
                           "--tune", "-tune", "--mca=x"})
    EXPECT_TRUE(looks_like_mca_option(word)) << word;
  for (const char* word : {"mca", "-m", "--amca2", "--epochs", "-", "--", "", "--mcas", "x--mca"})
    EXPECT_FALSE(looks_like_mca_option(word)) << word;
}

}  // namespace
}  // namespace catena::launch
