// Last step of the loops over moments; internal linkage (see loop.h).
#pragma once

#include <cstdint>

namespace catena::host {
namespace {

// Mean and squared deviations of n numbers from the sums of d = x - shift and of d * d. If `shift`
// is near the mean, the first sum corrects the mean, and the second one stays accurate for a mean
// far from zero (corrected two-pass algorithm: T. Chan, G. Golub, R. LeVeque, Algorithms for
// computing the sample variance, 1983).
template <class T, class Moments>
inline __attribute__((always_inline)) void finish_moments(T shift, T d, T dd, int64_t n,
                                                          const Moments& to, int64_t at) {
  const double start = double(shift), step = double(d) / double(n);
  const double left = double(dd) - double(d) * step;
  // start + step, and what its rounding lost (D. Knuth's sum of two numbers).
  const double mean = start + step, added = mean - start;
  to.mean[at] = mean;
  to.rest[at] = (start - (mean - added)) + (step - added);
  to.squares[at] = left < 0 ? 0 : left;  // NaN stays
}

}  // namespace
}  // namespace catena::host
