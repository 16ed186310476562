// The network interfaces of a machine that tests pretend to be on.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/network.h"

namespace catena::launch {

constexpr std::uint32_t ip(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}
constexpr std::uint32_t kMask24 = ip(255, 255, 255, 0), kMask16 = ip(255, 255, 0, 0);

inline const std::vector<Interface> kHere = {{"lo", ip(127, 0, 0, 1), ip(255, 0, 0, 0)},
                                             {"eth0", ip(10, 77, 0, 1), kMask24},
                                             {"ib0", ip(10, 88, 3, 1), kMask16},
                                             {"docker0", ip(172, 17, 0, 1), kMask16}};

}  // namespace catena::launch
