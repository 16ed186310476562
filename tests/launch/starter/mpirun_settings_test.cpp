// What mpirun is told of networks, and what of Open MPI's own settings is respected.
#include "starter/mpirun_settings.h"

#include <gtest/gtest.h>

#include <sstream>

#include "../plan/interfaces.h"
#include "base/text.h"
#include "plan/network.h"

namespace catena::launch {
namespace {

McaParameters none() { return {{}, {}, "/nowhere/bin/mpirun"}; }

std::string text_of(const std::vector<McaSetting>& settings) {
  std::vector<std::string> words;
  for (const McaSetting& setting : settings)
    words.push_back((setting.runtime ? "R " : "") + setting.name + "=" + setting.value);
  return join(words, "; ");
}

TEST(MpirunSettings, SeveralHostsUseWhatTheyShare) {
  const std::vector<Host> hosts = {{"10.77.0.1", 2}, {"10.77.0.2", 2}};
  EXPECT_EQ(text_of(network_settings(choose_network(hosts, false, kHere), none(), 4)),
            "btl_tcp_if_include=10.77.0.0/24; R oob_tcp_if_include=10.77.0.0/24");
  EXPECT_EQ(text_of(network_settings(choose_network(hosts, false, kHere), none(), 5)),
            "btl_tcp_if_include=10.77.0.0/24; R prte_if_include=10.77.0.0/24");
}

TEST(MpirunSettings, WhatTheUserHasSetStays) {
  const std::vector<Host> hosts = {{"10.77.0.2", 2}};
  const McaParameters arguments({"--mca", "btl_tcp_if_include", "eth9"}, {}, "/nowhere/bin/mpirun");
  EXPECT_EQ(text_of(network_settings(choose_network(hosts, false, kHere), arguments, 4)),
            "R oob_tcp_if_include=10.77.0.0/24");
  const McaParameters environment({}, {"OMPI_MCA_oob_tcp_if_exclude=eth9", "PATH=/bin"},
                                  "/nowhere/bin/mpirun");
  EXPECT_EQ(text_of(network_settings(choose_network(hosts, false, kHere), environment, 4)),
            "btl_tcp_if_include=10.77.0.0/24");
  McaParameters site = none();
  std::istringstream file("# comment\n btl_tcp_if_include = ib0 # ours\noob_tcp_if_include=ib0\n");
  site.read_file(file);
  EXPECT_EQ(site.value("btl_tcp_if_include"), "ib0");
  EXPECT_FALSE(site.set_by_user("btl_tcp_if_include"));
  EXPECT_EQ(text_of(network_settings(choose_network(hosts, false, kHere), site, 4)), "");
}

TEST(MpirunSettings, BridgesAreLeftOutWhereNamesDoNotTell) {
  const std::string left_out = "127.0.0.1/8,sppp,docker0";
  const std::string expected =
      "btl_tcp_if_exclude=" + left_out + "; R oob_tcp_if_exclude=" + left_out;
  EXPECT_EQ(text_of(network_settings(choose_network({{"10.99.0.2", 2}}, false, kHere), none(), 4)),
            expected);
  EXPECT_EQ(text_of(network_settings(choose_network({}, true, kHere), none(), 4)), expected);
  EXPECT_EQ(text_of(network_settings(choose_network({}, true, {kHere[0], kHere[1]}), none(), 4)),
            "");
}

// Ranks of one host need no network, and those that listen can be spoken to by anybody.
TEST(MpirunSettings, OneHostUsesNone) {
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
      EXPECT_EQ(text_of(network_settings(choose_network(hosts, false, kHere), none(), 4)),
                "btl=^tcp");
    }
    EXPECT_EQ(text_of(network_settings(choose_network(hosts, false, kHere), debian, 4)),
              "btl=^uct,openib,tcp");
    EXPECT_EQ(text_of(network_settings(choose_network(hosts, false, kHere), chosen, 4)), "");
    const McaParameters mine({"-mca", "btl", "^openib"}, {}, "/nowhere/bin/mpirun");
    EXPECT_EQ(text_of(network_settings(choose_network(hosts, false, kHere), mine, 4)), "");
  }
}

TEST(MpirunSettings, WhatTheUserHasSetAboutTransportsIsKnown) {
  const std::vector<std::string> environment = {"OMPI_MCA_btl=self",
                                                "OMPI_MCA_pml=ucx",
                                                "OMPI_MCA_btl_tcp_if_include=eth9",
                                                "OMPI_MCA_orte_tmpdir_base=/t",
                                                "btl=self",
                                                "PATH"};
  EXPECT_EQ(join(chosen_transports({}, environment), "; "),
            "OMPI_MCA_btl=self; OMPI_MCA_pml=ucx; OMPI_MCA_btl_tcp_if_include=eth9");
  EXPECT_EQ(join(chosen_transports({"--bind-to", "none", "--mca", "btl", "tcp,self"}, {}), "; "),
            "--mca btl tcp,self");
  EXPECT_TRUE(chosen_transports({"--mca", "plm", "rsh"}, {}).empty());
}

TEST(MpirunSettings, NamesOfHostsKeepTheirDomains) {
  const std::vector<Host> named = {{"h1", 1}, {"h2.example.org", 1}};
  EXPECT_EQ(text_of(host_name_settings(named, none(), 4)), "R orte_keep_fqdn_hostnames=1");
  EXPECT_EQ(text_of(host_name_settings(named, none(), 5)), "R prte_keep_fqdn_hostnames=1");
  EXPECT_EQ(text_of(host_name_settings({{"h1", 1}, {"10.0.0.2", 1}}, none(), 4)), "");
  const McaParameters mine({"--mca", "orte_keep_fqdn_hostnames", "0"}, {}, "/nowhere/bin/mpirun");
  EXPECT_EQ(text_of(host_name_settings(named, mine, 4)), "");
}

TEST(MpirunSettings, NamesThatOpenMpiCannotUse) {
  const std::string letters(56, 'h');
  for (const std::string& name :
       {std::string("node-7.lab"), std::string("10.0.0.7"), letters, letters + "1" + letters})
    EXPECT_EQ(problem_of_host_name(name), "") << name;
  for (const char* name : {"my_host", "a b", "h\xc3\xa9"})
    EXPECT_NE(problem_of_host_name(name).find("letters, digits"), std::string::npos) << name;
  EXPECT_NE(problem_of_host_name(letters + ".d1").find("at most 56"), std::string::npos);
}

TEST(MpirunSettings, WordsThatMpirunWouldTakeForItsOwn) {
  for (const char* word : {"--mca", "-mca", "--gmca", "-gmca", "--omca", "--prtemca", "--am", "-am",
                           "--tune", "-tune", "--mca=x"})
    EXPECT_TRUE(looks_like_mca_option(word)) << word;
  for (const char* word : {"mca", "-m", "--amca2", "--epochs", "-", "--", "", "--mcas", "x--mca"})
    EXPECT_FALSE(looks_like_mca_option(word)) << word;
}

}  // namespace
}  // namespace catena::launch
