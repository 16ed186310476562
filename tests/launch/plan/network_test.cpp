// Which networks the hosts of a job share.
#include "plan/network.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "interfaces.h"

namespace catena::launch {
namespace {

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

}  // namespace
}  // namespace catena::launch
