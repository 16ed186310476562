// WalkerAlias: the tables, and draws from them.
#include "catena/functions/noise/walker_alias.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catena/array/random.h"
#include "catena/kernels/sampling.h"

namespace catena::functions {
namespace {

void check_probabilities(const std::vector<double>& probs) {
  constexpr size_t kMost = std::numeric_limits<int32_t>::max();
  CATENA_CHECK(ValueError, !probs.empty() && probs.size() <= kMost,
               "WalkerAlias: expected from 1 to ", kMost, " probabilities, got ", probs.size());
  for (size_t i = 0; i < probs.size(); ++i) {
    CATENA_CHECK(ValueError, std::isfinite(probs[i]) && probs[i] >= 0, "WalkerAlias: probability ",
                 probs[i], " at position ", i, " is negative or not finite");
  }
  CATENA_CHECK(ValueError, std::ranges::any_of(probs, [](double p) { return p > 0; }),
               "WalkerAlias: all ", probs.size(), " probabilities are 0; one must be above 0");
}

// Probabilities scaled so that their mean is 1. Scaled by the largest first, whatever their sum.
std::vector<double> shares_of(std::vector<double> probs) {
  const double largest = std::ranges::max(probs);
  double sum = 0;
  for (double& p : probs) sum += p /= largest;
  for (double& p : probs) p *= double(probs.size()) / sum;
  return probs;
}

struct Tables {
  std::vector<float> threshold;
  std::vector<int32_t> values;
};

// Each index has a slot, whose rest goes to an index that has more than its slot. What rounding
// leaves over has a slot for itself. While an index of share 0 is left, others have at least 1 more
// than their slots, so that it finds one of them.
Tables tables_of(const std::vector<double>& probs) {
  check_probabilities(probs);
  std::vector<double> share = shares_of(probs);
  const size_t n = share.size();
  Tables tables{std::vector<float>(n, 1.0f), std::vector<int32_t>(2 * n)};
  std::vector<int32_t> below, above;
  for (size_t i = 0; i < n; ++i) {
    tables.values[2 * i] = tables.values[2 * i + 1] = int32_t(i);
    if (share[i] < 1) below.push_back(int32_t(i));
    if (share[i] > 1) above.push_back(int32_t(i));
  }
  while (!below.empty() && !above.empty()) {
    const auto slot = size_t(below.back()), giver = size_t(above.back());
    below.pop_back();
    tables.threshold[slot] = float(share[slot]);
    tables.values[2 * slot + 1] = int32_t(giver);
    share[giver] = (share[giver] - 1) + share[slot];
    if (share[giver] > 1) continue;
    above.pop_back();
    if (share[giver] < 1) below.push_back(int32_t(giver));
  }
  return tables;
}

std::vector<double> numbers_of(const Array& probs) {
  CATENA_CHECK(ShapeError, probs.ndim() == 1, "WalkerAlias: expected probabilities with one axis, ",
               "got shape ", probs.shape());
  return probs.to_cpu().astype(Dtype::kFloat64).to_vector<double>();
}

}  // namespace

WalkerAlias::WalkerAlias(const std::vector<double>& probs) {
  const Tables tables = tables_of(probs);
  const Device device = current_device();
  threshold = OwnedPersistent(array(tables.threshold).to(device));
  values = OwnedPersistent(array(tables.values).to(device));
}

WalkerAlias::WalkerAlias(const Array& probs) : WalkerAlias(numbers_of(probs)) {}

Array WalkerAlias::sample(const Shape& shape) const {
  CATENA_CHECK(ValueError, threshold.defined(),
               "WalkerAlias: this sampler has no tables; it was moved from");
  const Device device = threshold.device();
  const Array output = Array::uninitialized(shape, Dtype::kInt32, device);
  if (output.size() == 0) return output;
  const auto blocks = static_cast<uint64_t>(output.size() + 1) / 2;
  const RandomBits bits = random::default_state(device).reserve(blocks, device);
  kernels::alias_sample(device, {bits, threshold.data(), values.data(), output});
  return output;
}

}  // namespace catena::functions
