// Records of the slots of row normalization and of local response normalization.
#include <cmath>

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
constexpr int64_t kRow = 9;

int64_t row_of(int64_t i) { return i / 18 * 2 + i % 6 / 3; }

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

// The mean over the row of element i.
template <class F>
double row_mean(int64_t i, F f) {
  double sum = 0;
  for (int64_t j = 0; j < 36; ++j)
    if (row_of(j) == row_of(i)) sum += f(j);
  return sum / kRow;
}

Plains rows_reference() {
  const Plain x = plain_data(kBatch), gamma = plain_data(kChannels, 2),
              beta = plain_data(kChannels, 3), gy = plain_data(kBatch, 4);
  const auto mean = [&](int64_t i) { return row_mean(i, [&](int64_t j) { return x(j); }); };
  const auto inverse = [&](int64_t i) {
    const double m = mean(i);
    return 1 / std::sqrt(row_mean(i, [&](int64_t j) { return (x(j) - m) * (x(j) - m); }) + kEps);
  };
  const auto xhat = [&](int64_t i) { return (x(i) - mean(i)) * inverse(i); };
  const auto h = [&](int64_t i) { return gamma(i % 6) * gy(i); };
  const auto over_channel = [](int64_t c, auto f) {
    double sum = 0;
    for (int64_t i = c; i < 36; i += 6) sum += f(i);
    return sum;
  };
  return {
      plain(kBatch, [&](int64_t i) { return xhat(i) * gamma(i % 6) + beta(i % 6); }),
      plain(kBatch,
            [&](int64_t i) {
              return inverse(i) * (h(i) - row_mean(i, h) - xhat(i) * row_mean(i, [&](int64_t j) {
                                                             return h(j) * xhat(j);
                                                           }));
            }),
      plain(kChannels,
            [&](int64_t c) { return over_channel(c, [&](int64_t i) { return gy(i) * xhat(i); }); }),
      plain(kChannels,
            [&](int64_t c) { return over_channel(c, [&](int64_t i) { return gy(i); }); })};
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

// The sum of f over the window of element i.
template <class F>
double window_sum(int64_t i, F f) {
  const int64_t c = i / 3 % 7;
  double sum = 0;
  for (int64_t j = 0; j < 7; ++j)
    if (std::abs(j - c) <= 2) sum += f(i + (j - c) * 3);
  return sum;
}

Plains response_reference() {
  const Plain x = plain_data(kImages), gy = plain_data(kImages, 2);
  const auto scale = [&](int64_t i) {
    return kRule.k + kRule.alpha * window_sum(i, [&](int64_t j) { return x(j) * x(j); });
  };
  const auto term = [&](int64_t i) { return x(i) * gy(i) * std::pow(scale(i), -1.75); };
  return {plain(kImages, [&](int64_t i) { return x(i) * std::pow(scale(i), -0.75); }),
          plain(kImages, [&](int64_t i) {
            return gy(i) * std::pow(scale(i), -0.75) -
                   2 * kRule.alpha * kRule.beta * x(i) * window_sum(i, term);
          })};
}

}  // namespace

CATENA_SLOT_RECORDS(row_normalization) {
  return {{"row_normalization", rows, rows_reference},
          {"row_normalization_grad", rows, rows_reference},
          {"local_response", response, response_reference},
          {"local_response_grad", response, response_reference}};
}

}  // namespace catena
