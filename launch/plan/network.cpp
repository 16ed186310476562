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

std::string format_network(const Interface& interface) {
  const std::uint32_t network = interface.address & interface.mask;
  std::array<std::string, 4> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = std::to_string(network >> (24 - 8 * i) & 255);
  return join({bytes.begin(), bytes.end()}, ".") + "/" +
         std::to_string(std::popcount(interface.mask));
}

bool is_in(std::uint32_t address, const Interface& interface) {
  return ((address ^ interface.address) & interface.mask) == 0;
}

// Ranks of one host reach each other through shared memory. Without this they and Open MPI's own
// protocol would listen on all networks, for anybody.
void leave_tcp_out(std::vector<McaSetting>& settings, const McaParameters& set) {
  if (set.set_by_user("btl")) return;
  const std::string site = set.value("btl").value_or("");
  if (site.empty())
    settings.push_back({false, "btl", "^tcp"});
  else if (site.starts_with('^') && site.find("tcp") == std::string::npos)
    settings.push_back({false, "btl", site + ",tcp"});
}

void add_unless_set(std::vector<McaSetting>& settings, const McaParameters& set, bool runtime,
                    const std::string& family, const std::string& kind, const std::string& value) {
  // The two exclude each other.
  if (set.has(family + "include") || set.has(family + "exclude")) return;
  settings.push_back({runtime, family + kind, value});
}

void add_to_both(std::vector<McaSetting>& settings, const McaParameters& set, int major,
                 const std::string& kind, const std::string& value) {
  add_unless_set(settings, set, false, "btl_tcp_if_", kind, value);
  add_unless_set(settings, set, true, major >= 5 ? "prte_if_" : "oob_tcp_if_", kind, value);
}

}  // namespace

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
                       const std::vector<Interface>& here, const McaParameters& set, int major) {
  Network network;
  std::vector<std::vector<std::uint32_t>> others;
  for (const Host& host : hosts)
    if (!is_this_machine(host.name, here)) others.push_back(addresses_of(host.name));
  if (others.empty() && !in_allocation) {
    leave_tcp_out(network.settings, set);
    return network;
  }
  if (!others.empty()) network.shared = shared_networks(here, others);
  if (!network.shared.empty()) {
    add_to_both(network.settings, set, major, "include", join(network.shared, ","));
    return network;
  }
  // The first two are Open MPI's own.
  std::vector<std::string> left_out = {"127.0.0.1/8", "sppp"};
  for (const Interface& interface : here)
    if (is_bridge_of_one_host(interface.name)) left_out.push_back(interface.name);
  if (left_out.size() > 2)
    add_to_both(network.settings, set, major, "exclude", join(left_out, ","));
  return network;
}

}  // namespace catena::launch
