// Means over batches and ranks, and the test pass that makes them.
#include "catena/training/evaluator.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "catena/array/manipulation.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "catena/comm/internals.h"
#include "catena/parallel/sum_over_ranks.h"

namespace catena::training {

Means::Means(std::vector<std::string> names) : names_(std::move(names)), metrics_(names_.size()) {
  CATENA_CHECK(ValueError,
               std::set<std::string>(names_.begin(), names_.end()).size() == names_.size(),
               "Means: a name is given twice");
}

const Means::Metric& Means::metric(const std::string& name) const {
  const auto at = std::find(names_.begin(), names_.end(), name);
  CATENA_CHECK(ValueError, at != names_.end(), "Means: '", name,
               "' is not among the names given at the start");
  return metrics_[static_cast<size_t>(at - names_.begin())];
}

Means::Metric& Means::metric(const std::string& name) {
  return const_cast<Metric&>(static_cast<const Means*>(this)->metric(name));
}

void Means::check_not_reduced(const char* who, const std::string& name) const {
  CATENA_CHECK(ValueError, !reduced_, who, ": '", name, "' after reduce(); call clear() first");
}

void Means::add(const std::string& name, double mean, double count) {
  check_not_reduced("Means::add", name);
  CATENA_CHECK(ValueError, count >= 0, "Means::add: '", name, "' with count ", count);
  Metric& m = metric(name);
  if (count == 0) return;
  m.sum += mean * count;
  m.count += count;
}

void Means::add(const std::string& name, const Array& mean, double count) {
  CATENA_CHECK(ShapeError, mean.size() == 1, "Means::add: '", name, "' has shape ", mean.shape(),
               ", expected one element");
  if (mean.device().is_cpu()) return add(name, mean.item<double>(), count);
  add(name, 0.0, 0);  // the checks
  if (count > 0) metric(name).pending.push_back({mean.reshape({1}), count});
}

// One transfer to the host for all results that wait on devices, added in the order in which they
// came.
void Means::add_pending(Metric& m) {
  if (m.pending.empty()) return;
  std::vector<Array> arrays;
  const Device first = m.pending.front().mean.device();
  for (const Pending& pending : m.pending) arrays.push_back(pending.mean.to(first));
  const std::vector<double> values = concatenate(arrays).to_cpu().to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    m.sum += values[i] * m.pending[i].count;
    m.count += m.pending[i].count;
  }
  m.pending.clear();
}

void Means::add(const Arrays& means, double count) {
  CATENA_CHECK(ValueError, means.size() == names_.size(), "Means::add: got ", means.size(),
               " numbers for ", names_.size(), " names, the first of which is '",
               names_.empty() ? std::string() : names_[0], "'");
  for (size_t i = 0; i < means.size(); ++i) add(names_[i], means[i], count);
}

Means::Sum Means::sum(const std::string& name) {
  check_not_reduced("Means::sum", name);
  Metric& m = metric(name);
  add_pending(m);
  return m;
}

void Means::add(const std::string& name, const Sum& sum) {
  check_not_reduced("Means::add", name);
  Metric& m = metric(name);
  m.sum += sum.sum;
  m.count += sum.count;
}

void Means::reduce(Communicator* comm) {
  CATENA_CHECK(ValueError, !reduced_, "Means::reduce: called twice without clear()");
  std::vector<double> numbers;
  for (Metric& m : metrics_) {
    add_pending(m);
    numbers.push_back(m.sum);
    numbers.push_back(m.count);
  }
  reduced_ = true;
  if (comm == nullptr) return;
  parallel::sum_over_ranks(numbers, comm);
  for (size_t i = 0; i < metrics_.size(); ++i) {
    metrics_[i].sum = numbers[2 * i];
    metrics_[i].count = numbers[2 * i + 1];
  }
}

double Means::value(const std::string& name) {
  Metric& m = metric(name);
  add_pending(m);
  return m.count > 0 ? m.sum / m.count : std::nan("");
}

std::map<std::string, double> Means::values() {
  std::map<std::string, double> result;
  for (const std::string& name : names_) result[name] = value(name);
  return result;
}

double Means::count(const std::string& name) const {
  const Metric& m = metric(name);
  double count = m.count;
  for (const Pending& pending : m.pending) count += pending.count;
  return count;
}

void Means::clear() {
  for (Metric& m : metrics_) m = Metric();
  reduced_ = false;
}

void check_test_batches(const char* who, const datasets::BatchIterator& batches) {
  CATENA_CHECK(
      ValueError, !batches.repeats(), who,
      ": the batches repeat without end, as those of training do; give other ones, with an "
      "order that ends, such as SerialIterator(size, batch)");
}

std::map<std::string, double> evaluate(
    datasets::BatchIterator& batches, const std::vector<std::string>& names,
    const std::function<void(const datasets::Batch&, Means&)>& measure, Communicator* comm) {
  CATENA_CHECK(ValueError, measure != nullptr, "evaluate: the measure is an empty function");
  check_test_batches("evaluate", batches);
  const NoBackprop no_graph;
  datasets::IteratorState start = batches.state();
  start.epoch = 0;
  start.position = 0;
  batches.set_state(start);
  Means means(names);
  for (int64_t i = 0; i < batches.batches_per_epoch(); ++i) {
    const auto batch = batches.next();
    if (batch && batch->size() > 0) measure(*batch, means);
  }
  const comm::PurposeScope purpose(comm, "evaluate");
  means.reduce(comm);
  return means.values();
}

std::map<std::string, double> evaluate(
    Parameterized& model, datasets::BatchIterator& batches, const std::vector<std::string>& names,
    const std::function<void(const datasets::Batch&, Means&)>& measure, Communicator* comm) {
  const TestScope scope(model);
  return evaluate(batches, names, measure, comm);
}

std::map<std::string, double> evaluate(Parameterized& model, datasets::BatchIterator& batches,
                                       const std::vector<std::string>& names, const Score& score,
                                       Communicator* comm) {
  CATENA_CHECK(ValueError, score != nullptr, "evaluate: the score is an empty function");
  const auto measure = [&](const datasets::Batch& batch, Means& means) {
    Arrays numbers;
    for (const Variable& number : score(batch)) numbers.push_back(number.data());
    means.add(numbers, double(batch.size()));
  };
  const TestScope scope(model);
  return evaluate(batches, names, measure, comm);
}

}  // namespace catena::training
