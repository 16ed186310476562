#include "spec/hosts.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"
#include "error_text.h"

namespace catena::launch {
namespace {

std::vector<Host> parse_file(const std::string& text) {
  std::istringstream lines(text);
  return parse_hostfile(lines, "hosts.txt");
}

TEST(Hosts, List) {
  EXPECT_EQ(parse_host_list("h1:4,h2:2"), (std::vector<Host>{{"h1", 4}, {"h2", 2}}));
  EXPECT_EQ(parse_host_list("h1"), (std::vector<Host>{{"h1", 1}}));
  EXPECT_EQ(parse_host_list("a:1, b:2,a:3"), (std::vector<Host>{{"a", 4}, {"b", 2}}));
}

TEST(Hosts, BadList) {
  EXPECT_EQ(error_of<UserError>([] { parse_host_list("h1:x"); }),
            "-H h1:x: 'x' is not a number of slots; expected 1 or more");
  EXPECT_EQ(error_of<UserError>([] { parse_host_list("h1:0"); }),
            "-H h1:0: '0' is not a number of slots; expected 1 or more");
  // A hostfile's names come to mpirun, to reports and to --dry-run's output.
  for (const char* name : {"h\x1b[31m", "h\x7f", "h\xc2\xa0"})
    EXPECT_NE(error_of<UserError>([&] { parse_host_list(name); }).find("is not the name of a host"),
              std::string::npos);
  EXPECT_EQ(error_of<UserError>([] { parse_host_list("h1,,h2"); }),
            "-H h1,,h2: '' has no host name; expected NAME or NAME:SLOTS");
}

TEST(Hosts, File) {
  const auto hosts = parse_file(
      "# the cluster\n"
      "node1 slots=8   # fast\n"
      "\n"
      "\tnode2 slots = 4 max-slots=8\r\n"
      "node3\n"
      "node4:2\n"
      "node5 count=3\n");
  EXPECT_EQ(hosts, (std::vector<Host>{
                       {"node1", 8}, {"node2", 4}, {"node3", 1}, {"node4", 2}, {"node5", 3}}));
}

TEST(Hosts, SlotsOfAHostNamedTwiceInAFileAddUp) {
  const auto hosts = parse_file("a slots=2\nb slots=1\na slots=3\na\n");
  EXPECT_EQ(hosts, (std::vector<Host>{{"a", 6}, {"b", 1}}));
  EXPECT_EQ(host_of_each_rank(hosts, 7),
            (std::vector<std::string>{"a", "a", "a", "a", "a", "a", "b"}));
}

TEST(Hosts, BadFileNamesTheLine) {
  EXPECT_EQ(error_of<UserError>([] { parse_file("a slots=2\n\nb slots=many\n"); }),
            "hosts.txt:3: 'many' is not a number of slots; expected 1 or more");
  EXPECT_EQ(error_of<UserError>([] { parse_file("a solts=2\n"); }),
            "hosts.txt:1: unknown setting 'solts'; expected slots=N");
  EXPECT_EQ(error_of<UserError>([] { parse_file("# x\na b\n"); }),
            "hosts.txt:2: unexpected 'b'; expected slots=N");
  EXPECT_EQ(error_of<UserError>([] { parse_file("# nothing\n"); }),
            "hosts.txt: no host in this hostfile; expected lines such as 'name slots=4'");
  EXPECT_EQ(error_of<UserError>([] { read_hostfile("/no/such/file"); }),
            "cannot read hostfile '/no/such/file': No such file or directory");
}

TEST(Hosts, AddressesOfIpv6AndTooManySlots) {
  for (const char* list : {"::1", "a:2:3", "fe80::1:4"})
    EXPECT_NE(error_of<UserError>([&] { parse_host_list(list); }).find("has more than one colon"),
              std::string::npos)
        << list;
  const auto hosts = parse_host_list("a:2000000000,b:2000000000,a:2000000000");
  EXPECT_GT(total_slots(hosts), 0) << "no overflow";
}

TEST(Hosts, SlotsAreFilledInOrder) {
  const std::vector<Host> hosts{{"a", 4}, {"b", 4}, {"c", 2}};
  EXPECT_EQ(total_slots(hosts), 10);
  EXPECT_EQ(ranks_per_host(hosts, 6), (std::vector<int>{4, 2, 0}));
}

TEST(Hosts, FilesWithoutEndAreNoHostfiles) {
  EXPECT_TRUE(error_of<UserError>([] {
                read_hostfile("/dev/zero");
              }).starts_with("'/dev/zero' is not a hostfile"));
}

}  // namespace
}  // namespace catena::launch
