// Table of the inner loops of direct convolutions, compiled once for each x86-64 level. It is not
// part of tables.h, so that a change here does not recompile all other loops. See there for what it
// may include.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/levels.h"

namespace catena::host {

// Which columns of a source row the results of a row see: result q < count sees at tap t < taps the
// column q * stride + offset + t * jump, if that is in [0, width). stride and jump are positive.
struct ConvolutionColumns {
  int64_t count, stride, offset, taps, jump, width;
};

// In what follows C is float or double, in which everything is computed. All steps are in elements.
//
// Channels last. Result q has `channels` numbers side by side at to + q * to_step, and each column
// of the source rows likewise:
//   (+)= bias + the sum over i < rows and t of row[i][column] * (weights[i] + t * weight_step)
// channel by channel, with those columns that are there. bias may be null.
template <class C>
struct ChannelSums {
  ConvolutionColumns columns;
  int64_t channels, rows;
  const C* const* row;
  const C* const* weights;
  int64_t weight_step;
  const C* bias;
  C* to;
  int64_t to_step;
  bool accumulate;
};

// (sums[i] + t * sum_step) += the sum over q of gy[q] * row[i][column], channel by channel.
template <class C>
struct ChannelProducts {
  ConvolutionColumns columns;
  int64_t channels, rows;
  const C* const* row;
  C* const* sums;
  int64_t sum_step;
  const C* gy;
};

// Channels first, for r < rows and x < columns:
//   to[r * to_pitch + x] (+)= bias + the sum over t < taps of
//                             weights[t] * from[t][r * from_pitch + x]
// Behind the last row of each from[t] are as many readable elements as a vector has lanes.
template <class C>
struct PlaneSums {
  int64_t rows, columns, taps;
  const C* const* from;
  const C* weights;
  int64_t from_pitch;
  C bias;
  C* to;
  int64_t to_pitch;
  bool accumulate;
};

// sums[t * lanes + l] += a part of the sum over r < rows and x < columns of
//   gy[r * gy_pitch + x] * from[t][r * from_pitch + x].
// The lanes l together are the sum.
template <class C>
struct PlaneProducts {
  int64_t rows, columns, taps;
  const C* const* from;
  int64_t from_pitch;
  const C* gy;
  int64_t gy_pitch;
  C* sums;
};

template <class C>
struct DirectConvolutionLoops {
  void (*channel_sums)(const ChannelSums<C>& s);
  void (*channel_products)(const ChannelProducts<C>& p);
  void (*plane_sums)(const PlaneSums<C>& s);
  void (*plane_products)(const PlaneProducts<C>& p);
  // to[l * to_step + i] += from[l * from_step + i] for l < lines and i < n.
  void (*add_lines)(const C* from, int64_t from_step, C* to, int64_t to_step, int64_t lines,
                    int64_t n);
  // to[i * step] += from[i] for i < n.
  void (*add_apart)(const C* from, C* to, int64_t step, int64_t n);
  int64_t lanes;  // of a vector
};

using DirectConvolutionTables = LoopsByType<DirectConvolutionLoops>;
CATENA_DECLARE_LOOPS(DirectConvolutionTables)

}  // namespace catena::host
