#include "catena/parallel/evaluate.h"

#include "catena/array/creation.h"
#include "catena/array/math.h"

namespace catena::parallel {
namespace {

using Totals = std::map<std::string, std::pair<double, double>>;

void add_totals(Totals& totals, const NamedArrays& more) {
  for (const auto& [name, array] : more) {
    auto& [sum, count] = totals[name];
    sum += array.data<double>()[0];
    count += array.data<double>()[1];
  }
}

std::map<std::string, double> means(const Totals& totals) {
  std::map<std::string, double> result;
  for (const auto& [name, total] : totals) result[name] = total.first / total.second;
  return result;
}

}  // namespace

void MeanOverSamples::add(const std::string& name, double mean, int64_t n) {
  CATENA_CHECK(ValueError, n >= 0, "MeanOverSamples: expected a count of at least 0, got ", n);
  Sum& sum = sums_[name];
  if (n > 0) sum.host += mean * static_cast<double>(n);
  sum.count += n;
}

void MeanOverSamples::add(const std::string& name, const Array& mean, int64_t n) {
  CATENA_CHECK(ShapeError, mean.size() == 1, "MeanOverSamples: expected one number for '", name,
               "', got shape ", mean.shape());
  add(name, 0.0, n);
  if (n == 0) return;
  const Array total =
      multiply(mean.astype(Dtype::kFloat64, false).reshape({}), static_cast<double>(n));
  Array& sum = sums_[name].device;
  if (sum.defined())
    catena::add(sum, total.to(sum.device()), sum);
  else
    sum = total;
}

NamedArrays MeanOverSamples::totals() const {
  NamedArrays result;
  for (const auto& [name, sum] : sums_) {
    const double device = sum.device.defined() ? sum.device.item<double>() : 0.0;
    result.emplace_back(name, array({sum.host + device, static_cast<double>(sum.count)}, cpu(0)));
  }
  return result;
}

std::map<std::string, double> MeanOverSamples::result() const {
  Totals all;
  add_totals(all, totals());
  return means(all);
}

std::map<std::string, double> MeanOverSamples::result(Communicator& comm) const {
  Totals all;
  for (const NamedArrays& one : comm.all_gather_object(totals())) add_totals(all, one);
  return means(all);
}

}  // namespace catena::parallel
