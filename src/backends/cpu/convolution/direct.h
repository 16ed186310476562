// Direct convolutions of few channels a group, depthwise ones above all: what their loops over rows
// need to know. A pass makes results (y, gx) of a source (x, gy), both (N, C, H, W), or the
// products gW of x and gy.
#pragma once

#include <cstdint>
#include <vector>

#include "catena/core/dtype.h"

namespace catena::host {

// What results see of a source along an axis: result first + q * step, for q < count, sees at t <
// taps the element q * stride + offset + t * jump, if it is there, with the weight number
// tap + t * tap_step of the window. The results of all `first` below `step` together are the axis.
struct AxisSums {
  int64_t first = 0, step = 1, count = 0;
  int64_t stride = 1, offset = 0, jump = 1;
  int64_t taps = 0, tap = 0, tap_step = 0;

  int64_t element(int64_t q, int64_t t) const { return q * stride + offset + t * jump; }
  // From the first to the last element that a result sees, both included.
  int64_t range() const { return taps == 0 ? 0 : (taps - 1) * jump + 1; }
};

struct DirectPass {
  Dtype dtype;
  int64_t batch, groups;
  int64_t sources, results;       // channels of a group
  int64_t in[2], out[2];          // extents of source and result
  int64_t kernel[2];              // of the window
  std::vector<AxisSums> axis[2];  // entry i has first = i
  const char* source;
  bool accumulate;
  int threads;

  int64_t source_channels() const { return groups * sources; }
  int64_t result_channels() const { return groups * results; }
  // Numbers of all weights: (sources, kernel[0], kernel[1], result channels). Number a is that of
  // source a of the result's group.
  int64_t weights() const { return sources * kernel[0] * kernel[1] * result_channels(); }
  const AxisSums& sums_of(int k, int64_t position) const {
    return axis[k][size_t(position % axis[k][0].step)];
  }
};

// result (+)= bias + the sums over windows. Weights and bias (of result channels, or null) are in
// C, float or double, in which sums are made.
template <class C>
struct DirectSums : DirectPass {
  char* result;
  const C* weights_of;
  const C* bias;
};
template <class C>
void direct_sums_last(const DirectSums<C>& s);
template <class C>
void direct_sums_first(const DirectSums<C>& s);

// The products of gy, the result, with what each weight multiplies, in `pieces` shares of the
// batch: share p adds to partials + p * weights(). The shares do not depend on the number of
// threads.
template <class C>
struct DirectProducts : DirectPass {
  const char* gy;
  int64_t pieces;
  C* partials;
};
template <class C>
void direct_products_last(const DirectProducts<C>& p);
template <class C>
void direct_products_first(const DirectProducts<C>& p);

}  // namespace catena::host
