// The loss of connectionist temporal classification by its definition: the sum over all sequences
// of classes, in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace catena {

// Joins equal neighbours and leaves out blanks.
inline std::vector<int64_t> collapse(const std::vector<int64_t>& path, int64_t blank) {
  std::vector<int64_t> labels;
  for (size_t k = 0; k < path.size(); ++k)
    if (path[k] != blank && (k == 0 || path[k] != path[k - 1])) labels.push_back(path[k]);
  return labels;
}

// -log of the probability of the labels. scores: `steps` rows of the classes.
inline double ctc_by_enumeration(const std::vector<std::vector<double>>& scores,
                                 const std::vector<int64_t>& labels, int64_t blank) {
  const size_t steps = scores.size(), classes = steps == 0 ? 1 : scores[0].size();
  std::vector<std::vector<double>> p = scores;
  for (std::vector<double>& row : p) {
    double sum = 0;
    for (double& v : row) sum += v = std::exp(v);
    for (double& v : row) v /= sum;
  }
  std::vector<int64_t> path(steps, 0);
  double total = 0;
  while (true) {
    if (collapse(path, blank) == labels) {
      double product = 1;
      for (size_t k = 0; k < steps; ++k) product *= p[k][size_t(path[k])];
      total += product;
    }
    size_t k = 0;
    while (k < steps && ++path[k] == int64_t(classes)) path[k++] = 0;
    if (k == steps) break;
  }
  return -std::log(total);
}

}  // namespace catena
