// The choice among measured algorithms of a library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace catena {

// The index of the shortest time, if it is shorter than the first by more than 2 %; else 0, so that
// noise does not decide. Infinite times are of algorithms that failed. At least one time.
inline size_t fastest(std::span<const double> times) {
  constexpr double kWorthwhile = 0.98;
  const auto best = std::min_element(times.begin(), times.end());
  return *best < kWorthwhile * times[0] ? static_cast<size_t>(best - times.begin()) : 0;
}

}  // namespace catena
