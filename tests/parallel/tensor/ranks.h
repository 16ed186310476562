// Ranks as threads that share layers, and what they have together.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "catena/array/manipulation.h"
#include "catena/array/random.h"
#include "catena/comm/factory.h"
#include "parallel/network.h"

namespace catena::testing {

constexpr uint64_t kSeed = 7;
constexpr int kRankCounts[] = {1, 2, 3, 4};
constexpr int kWhole = -1;  // in place of the axis along which an array is cut

// Runs fn in so many ranks, whose generators begin alike.
inline void run_alike(int ranks, const std::function<void(Communicator&)>& fn) {
  comm::run_threads(ranks,
                    [&](Communicator& comm) {
                      random::default_state(comm.device()).seed(kSeed);
                      fn(comm);
                    },
                    {.timeout = 30});
}

// The rank's slice of x, on its device.
inline Array slice_on(const Communicator& comm, const Array& x, int axis) {
  return split(x, comm.size(), axis)[size_t(comm.rank())].copy().to(comm.device());
}

// All ranks' slices, on cpu:0.
inline Array whole_of(Communicator& comm, const Array& slice, int axis) {
  const Array front = moveaxis(slice, {axis}, {0}).copy();
  return moveaxis(comm.all_gather(front), {0}, {axis}).copy().to(cpu(0));
}

// Bits of an array that all ranks must have alike.
inline void expect_whole(Communicator& comm, const Array& x, const std::string& what = "") {
  for (const auto& other : comm.all_gather_object(x.to_vector<double>()))
    EXPECT_EQ(other, x.to_vector<double>()) << what << " differs between ranks";
}

inline void expect_close(const Array& got, const Array& expected, const std::string& what = "",
                         double tolerance = 1e-12) {
  ASSERT_EQ(got.shape(), expected.shape()) << what;
  const std::vector<double> a = got.to_vector<double>(), b = expected.to_vector<double>();
  for (size_t i = 0; i < b.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(b[i]))) << what << " at " << i;
}

}  // namespace catena::testing
