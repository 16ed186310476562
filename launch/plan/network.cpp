#include "plan/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "base/text.h"

namespace catena::launch {
namespace {

constexpr std::uint32_t kLoopback = 127u << 24, kLoopbackMask = 255u << 24;

std::uint32_t address_of(const sockaddr* address) {
  return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
}

bool is_loopback(std::uint32_t address) { return (address & kLoopbackMask) == kLoopback; }

bool is_in(std::uint32_t address, const Interface& interface) {
  return ((address ^ interface.address) & interface.mask) == 0;
}

}  // namespace

std::string format_address(std::uint32_t address) {
  std::array<std::string, 4> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = std::to_string(address >> (24 - 8 * i) & 255);
  return join({bytes.begin(), bytes.end()}, ".");
}

std::string format_network(const Interface& interface) {
  return format_address(interface.address & interface.mask) + "/" +
         std::to_string(std::popcount(interface.mask));
}

bool is_loopback(const Interface& interface) { return is_loopback(interface.address); }

std::vector<Interface> interfaces_here() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next)
    if (entry->ifa_addr && entry->ifa_netmask && entry->ifa_addr->sa_family == AF_INET &&
        (entry->ifa_flags & IFF_UP) != 0)
      found.push_back(
          {entry->ifa_name, address_of(entry->ifa_addr), address_of(entry->ifa_netmask)});
  return found;
}

bool is_bridge_of_one_host(const std::string& interface) {
  constexpr std::array kPrefixes = {"docker", "br-", "virbr", "veth",  "lxcbr", "lxdbr",
                                    "podman", "cni", "vnet",  "vmnet", "vbox"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](const char* prefix) { return interface.starts_with(prefix); });
}

std::vector<std::uint32_t> addresses_of(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &wanted, &list) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, freeaddrinfo);
  std::vector<std::uint32_t> addresses;
  for (const addrinfo* entry = list; entry; entry = entry->ai_next)
    addresses.push_back(address_of(entry->ai_addr));
  return addresses;
}

bool is_this_machine(const std::string& host, const std::vector<Interface>& here) {
  if (host == "localhost" || host == host_name()) return true;
  const std::vector<std::uint32_t> addresses = addresses_of(host);
  return std::any_of(addresses.begin(), addresses.end(), [&](std::uint32_t address) {
    return is_loopback(address) ||
           std::any_of(here.begin(), here.end(),
                       [&](const Interface& interface) { return interface.address == address; });
  });
}

std::vector<std::string> shared_networks(
    const std::vector<Interface>& here,
    const std::vector<std::vector<std::uint32_t>>& addresses_of_others) {
  std::vector<std::string> networks;
  for (const Interface& interface : here) {
    if (is_loopback(interface.address) || is_bridge_of_one_host(interface.name)) continue;
    const bool shared = std::all_of(
        addresses_of_others.begin(), addresses_of_others.end(), [&](const auto& addresses) {
          return std::any_of(addresses.begin(), addresses.end(),
                             [&](std::uint32_t address) { return is_in(address, interface); });
        });
    const std::string network = format_network(interface);
    if (shared && std::find(networks.begin(), networks.end(), network) == networks.end())
      networks.push_back(network);
  }
  return networks;
}

Network choose_network(const std::vector<Host>& hosts, bool in_allocation,
                       const std::vector<Interface>& here) {
  Network network;
  std::vector<std::vector<std::uint32_t>> others;
  for (const Host& host : hosts)
    if (!is_this_machine(host.name, here)) others.push_back(addresses_of(host.name));
  network.leaves_host = !others.empty() || in_allocation;
  if (!others.empty()) network.shared = shared_networks(here, others);
  for (const Interface& interface : here)
    if (is_bridge_of_one_host(interface.name)) network.bridges.push_back(interface.name);
  return network;
}

}  // namespace catena::launch
