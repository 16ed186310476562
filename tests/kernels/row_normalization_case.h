// The results of row normalization by their definitions, in double.
#pragma once

#include <cmath>
#include <vector>

#include "catena/kernels/row_normalization.h"

namespace catena::testing {

// Elements are in the order (samples, positions, channels, inner); gamma and beta have a number for
// each channel.
struct RowReference {
  std::vector<double> y, gx, g_gamma, g_beta, means, inverse;

  RowReference(const RowLayout& l, bool centred, double eps, const std::vector<double>& x,
               const std::vector<double>& gy, const std::vector<double>& gamma,
               const std::vector<double>& beta)
      : y(x.size()),
        gx(x.size()),
        g_gamma(gamma.size()),
        g_beta(gamma.size()),
        means(size_t(l.rows())),
        inverse(means.size()) {
    const double m = double(l.size());
    std::vector<double> h(means.size()), hx(means.size()), xhat(x.size());
    const auto each = [&](auto f) {  // f(element, row, channel)
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t channel = i / size_t(l.inner) % size_t(l.channels);
        const size_t sample = i / size_t(l.channels * l.inner * l.positions);
        f(i, sample * size_t(l.groups) + channel / size_t(l.channels / l.groups), channel);
      }
    };
    if (centred) each([&](size_t i, size_t r, size_t) { means[r] += x[i] / m; });
    each([&](size_t i, size_t r, size_t) {
      inverse[r] += (x[i] - means[r]) * (x[i] - means[r]) / m;
    });
    for (double& v : inverse) v = 1 / std::sqrt(v + eps);
    each([&](size_t i, size_t r, size_t k) {
      xhat[i] = (x[i] - means[r]) * inverse[r];
      y[i] = xhat[i] * gamma[k] + beta[k];
      h[r] += gamma[k] * gy[i] / m;
      hx[r] += gamma[k] * gy[i] * xhat[i] / m;
      g_gamma[k] += gy[i] * xhat[i];
      g_beta[k] += gy[i];
    });
    each([&](size_t i, size_t r, size_t k) {
      gx[i] = inverse[r] * (gamma[k] * gy[i] - (centred ? h[r] : 0) - xhat[i] * hx[r]);
    });
  }
};

}  // namespace catena::testing
