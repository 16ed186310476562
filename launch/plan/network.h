// Over which networks the processes of a job may talk to each other.
//
// Open MPI takes every network of every host for one that all hosts share. A bridge that docker has
// made is none: each host has its own, with the same addresses. So the starter gets them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/job_spec.h"

namespace catena::launch {

// One address of IPv4 of an interface, in host byte order.
struct Interface {
  std::string name;
  std::uint32_t address = 0;
  std::uint32_t mask = 0;
};
// "10.1.0.7", and "10.1.0.0/16" for the network of an interface.
std::string format_address(std::uint32_t address);
std::string format_network(const Interface& interface);

// Those of this machine that are up.
std::vector<Interface> interfaces_here();

// Whether the interface leads to no other host, as 127.0.0.1.
bool is_loopback(const Interface& interface);

// A bridge for containers or virtual machines of one host (docker0, br-..., virbr0 and the like).
bool is_bridge_of_one_host(const std::string& interface);

// The IPv4 addresses of a name; none when it has none.
std::vector<std::uint32_t> addresses_of(const std::string& host);

// Whether the host is this machine, by name or by one of its addresses.
bool is_this_machine(const std::string& host, const std::vector<Interface>& here);

// The networks of this machine in which each of the other hosts has an address, as "10.1.0.0/16".
std::vector<std::string> shared_networks(
    const std::vector<Interface>& here,
    const std::vector<std::vector<std::uint32_t>>& addresses_of_others);

// For a job on this machine alone (`hosts` is empty or names only it, `in_allocation` is false)
// there is none to choose. For several hosts it is those that they share; when the hosts' names do
// not tell which these are, bridges of this machine are known not to be.
Network choose_network(const std::vector<Host>& hosts, bool in_allocation,
                       const std::vector<Interface>& here);

}  // namespace catena::launch
