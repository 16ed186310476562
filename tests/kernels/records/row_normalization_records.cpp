// Records of the slots of row normalization and of local response normalization.
#include "catena/array/creation.h"
#include "catena/kernels/local_response.h"
#include "catena/kernels/row_normalization.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

constexpr double kEps = 1e-2;

// Two samples of three positions, six channels in two groups; the channels are last.
constexpr RowLayout kLayout{2, 3, 6, 1, 2};
const Shape kBatch{2, 3, 6}, kChannels{6};
// y, gx and the gradients of gamma and beta.
Results rows(Device device) {
  const Array x = data(device, kBatch), gamma = data(device, kChannels, 2),
              beta = data(device, kChannels, 3), gy = data(device, kBatch, 4);
  const Array y = zeros_like(x), gx = zeros_like(x), g_gamma = zeros_like(gamma),
              g_beta = zeros_like(beta),
              statistics = zeros({3 * kLayout.rows()}, {Dtype::kFloat32, device});
  kernels::row_normalization(device, {kLayout, &x, &gamma, &beta, kEps, true, &y, &statistics});
  kernels::row_normalization_grad(
      device, {kLayout, &x, &gy, &gamma, &statistics, true, &gx, &g_gamma, &g_beta});
  return {y, gx, g_gamma, g_beta};
}

// A residual, in rows of packs and in others.
Results sums(Device device) {
  Results results;
  for (const int64_t size : {16, 21, 5000})
    for (const bool centred : {true, false}) {
      const RowLayout layout{3, 1, size, 1, 1};
      const Shape batch{3, size};
      const Array x = data(device, batch), residual = data(device, batch, 2),
                  gamma = data(device, {size}, 3), beta = data(device, {size}, 4),
                  gy = data(device, batch, 5), gsum = data(device, batch, 6);
      const Array y = zeros_like(x), sum = zeros_like(x), gx = zeros_like(x),
                  g_gamma = zeros_like(gamma), g_beta = zeros_like(beta),
                  statistics = zeros({3 * layout.rows()}, {Dtype::kFloat32, device});
      kernels::row_normalization(
          device, {layout, &x, &gamma, &beta, kEps, centred, &y, &statistics, &residual, &sum});
      kernels::row_normalization_grad(device, {layout, &sum, &gy, &gamma, &statistics, centred, &gx,
                                               &g_gamma, &g_beta, false, false, &gsum});
      results.insert(results.end(), {y, sum, gx, g_gamma, g_beta});
    }
  return results;
}

Results rows_and_sums(Device device) {
  Results results = rows(device);
  const Results more = sums(device);
  results.insert(results.end(), more.begin(), more.end());
  return results;
}

// Local response ---------------------------------------------------------------------------------

const Shape kImages{2, 7, 3};
constexpr LocalResponse kRule{4, 1.5, 0.25, 0.75};

Results response(Device device) {
  const Array x = data(device, kImages), gy = data(device, kImages, 2), y = zeros_like(x),
              gx = zeros_like(x);
  kernels::local_response(device, {{2, 7, 3}, &x, &y, kRule});
  kernels::local_response_grad(device, {{2, 7, 3}, &x, &gy, &gx, kRule});
  return {y, gx};
}

}  // namespace

CATENA_SLOT_RECORDS(row_normalization) {
  return {{"row_normalization", rows_and_sums},
          {"row_normalization_grad", rows_and_sums},
          {"local_response", response},
          {"local_response_grad", response}};
}

}  // namespace catena
