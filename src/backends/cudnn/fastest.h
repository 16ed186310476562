// The choice among measured plans.
#pragma once

#include <cstddef>
#include <span>

namespace catena::cudnn {

// The index of the shortest time, if it is shorter than the first by more than 2 %; else 0, so that
// noise does not decide. Infinite times are of plans that failed. At least one time.
size_t fastest(std::span<const double> times);

}  // namespace catena::cudnn
