// Means over batches and ranks, and the test pass that makes them.
#include "catena/training/evaluator.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "catena/array/manipulation.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "catena/comm/internals.h"
#include "catena/parallel/persistents.h"
#include "catena/parallel/sum_over_ranks.h"
#include "comm/agreement.h"

namespace catena::training {

Numbers::Numbers(const Variables& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    push_back(values[i].data());
    const Mean* mean = mean_of(values[i]);
    if (mean == nullptr) continue;
    counted.resize(values.size());
    counted[i] = mean->counted;
  }
}

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
  add(name, mean, Array(), count);
}

void Means::add(const std::string& name, const Variable& mean, double count) {
  const Mean* known = mean_of(mean);
  add(name, mean.data(), known ? known->counted : Array(), count);
}

void Means::add(const std::string& name, const Array& mean, const Array& counted, double count) {
  CATENA_CHECK(ShapeError, mean.size() == 1, "Means::add: '", name, "' has shape ", mean.shape(),
               ", expected one element");
  const bool counts_here = !counted.defined() || counted.device().is_cpu();
  if (counts_here && counted.defined()) count = counted.item<double>();
  if (mean.device().is_cpu() && counts_here) return add(name, mean.item<double>(), count);
  add(name, 0.0, 0);  // the checks
  if (count > 0 || !counts_here)
    metric(name).pending.push_back({mean.reshape({1}), count, counts_here ? Array() : counted});
}

// One transfer to the host for all results that wait on devices, added in the order in which they
// came.
void Means::add_pending(Metric& m) {
  if (m.pending.empty()) return;
  std::vector<Array> arrays;
  const Device first = m.pending.front().mean.device();
  const auto there = [&](const Array& a) {
    return a.reshape({1}).to(first).astype(Dtype::kFloat64, false);
  };
  for (const Pending& pending : m.pending) arrays.push_back(there(pending.mean));
  for (const Pending& pending : m.pending)
    if (pending.counted.defined()) arrays.push_back(there(pending.counted));
  const std::vector<double> values = concatenate(arrays).to_cpu().to_vector<double>();
  size_t next = m.pending.size();
  for (size_t i = 0; i < m.pending.size(); ++i) {
    const bool counts = m.pending[i].counted.defined();
    const double count = counts ? values[next++] : m.pending[i].count;
    if (count > 0) m.sum += values[i] * count;
    m.count += count;
  }
  m.pending.clear();
}

void Means::add(const Arrays& means, double count) { add_counted(Numbers(means), count); }

void Means::add_counted(const Numbers& numbers, double samples) {
  CATENA_CHECK(ValueError, numbers.size() == names_.size(), "Means::add: got ", numbers.size(),
               " numbers for ", names_.size(), " names, the first of which is '",
               names_.empty() ? std::string() : names_[0], "'");
  for (size_t i = 0; i < numbers.size(); ++i)
    add(names_[i], numbers[i], numbers.counted.empty() ? Array() : numbers.counted[i], samples);
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

namespace {

// Adds up the numbers of all ranks, in their order, if all have the same names. The names go along
// as a hash, so that it is one exchange.
void sum_by_names(std::vector<double>& numbers, const std::vector<std::string>& names,
                  Communicator& comm) {
  comm::Agreement agreement;
  for (size_t i = 0; i < names.size(); ++i)
    agreement.add(message("name ", i + 1), "'" + names[i] + "'");
  numbers.push_back(double(agreement.hash() >> 11));  // as many bits as a double holds
  const auto all = comm.all_gather_object(numbers);
  const auto has_other_names = [&](const std::vector<double>& one) {
    return one.size() != all[0].size() || one.back() != all[0].back();
  };
  if (std::any_of(all.begin(), all.end(), has_other_names))
    if (const auto difference = agreement.exchange(comm))
      fail<ValueError>("Means::reduce: the names differ between ranks: ", difference->text(),
                       "; give the same names in the same order on all ranks, also on those "
                       "without samples");
  numbers.assign(2 * names.size(), 0.0);
  for (const std::vector<double>& one : all)
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] += one[i];
}

}  // namespace

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
  sum_by_names(numbers, names_, *comm);
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
  for (const Pending& pending : m.pending)
    count += pending.counted.defined() ? pending.counted.item<double>() : pending.count;
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

namespace {

// The means of one pass, not reduced.
Means measured(datasets::BatchIterator& batches, const std::vector<std::string>& names,
               const std::function<void(const datasets::Batch&, Means&)>& measure) {
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
  return means;
}

std::map<std::string, double> reduced(Means means, Communicator* comm) {
  const comm::PurposeScope purpose(comm, "evaluate");
  means.reduce(comm);
  return means.values();
}

// Adds the numbers of a score.
std::function<void(const datasets::Batch&, Means&)> measure_of(const Score& score) {
  CATENA_CHECK(ValueError, score != nullptr, "evaluate: the score is an empty function");
  return [&score](const datasets::Batch& batch, Means& means) {
    means.add_counted(Numbers(score(batch)), double(batch.size()));
  };
}

}  // namespace

std::map<std::string, double> evaluate(
    datasets::BatchIterator& batches, const std::vector<std::string>& names,
    const std::function<void(const datasets::Batch&, Means&)>& measure, Communicator* comm) {
  return reduced(measured(batches, names, measure), comm);
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
  return evaluate(model, batches, names, measure_of(score), comm);
}

Evaluator::Evaluator(Parameterized& model, datasets::BatchIterator& batches,
                     std::vector<std::string> names, Score score)
    : model_(&model), batches_(&batches), names_(std::move(names)), score_(std::move(score)) {
  CATENA_CHECK(ValueError, score_ != nullptr, "Evaluator: the score is an empty function");
  check_test_batches("Evaluator", batches);
}

Means Evaluator::measure() {
  CATENA_CHECK(ValueError, batches_ != nullptr,
               "Evaluator: this class has no batches; override measure()");
  const TestScope scope(*model_);
  return measured(*batches_, names_, measure_of(score_));
}

MultiNodeEvaluator::MultiNodeEvaluator(Evaluator& evaluator, CommunicatorPtr comm)
    : evaluator_(evaluator), comm_(std::move(comm)) {}

std::map<std::string, double> MultiNodeEvaluator::evaluate() {
  if (evaluator_.model()) parallel::average_persistents(*evaluator_.model(), comm_.get());
  return reduced(evaluator_.measure(), comm_.get());
}

namespace {

double combined(const std::vector<double>& all, comm::Reduction how) {
  using comm::Reduction;
  // Comparisons would leave out a NaN.
  for (const double one : all)
    if (std::isnan(one)) return one;
  if (how == Reduction::kMin) return *std::min_element(all.begin(), all.end());
  if (how == Reduction::kMax) return *std::max_element(all.begin(), all.end());
  double sum = 0;
  for (const double one : all) sum += one;
  return how == Reduction::kSum ? sum : sum / double(all.size());
}

}  // namespace

std::function<double()> over_ranks(std::function<double()> value, CommunicatorPtr comm,
                                   comm::Reduction how) {
  using comm::Reduction;
  CATENA_CHECK(ValueError, value != nullptr, "over_ranks: the value is an empty function");
  CATENA_CHECK(ValueError,
               how == Reduction::kMean || how == Reduction::kSum || how == Reduction::kMin ||
                   how == Reduction::kMax,
               "over_ranks: expected the mean, sum, min or max of the ranks, got ", how);
  return [value = std::move(value), comm = std::move(comm), how] {
    if (comm == nullptr) return value();
    const comm::PurposeScope purpose(comm.get(), "over_ranks");
    return combined(comm->all_gather_object(value()), how);
  };
}

std::function<double()> mean_over_ranks(std::function<Means::Sum()> value, CommunicatorPtr comm) {
  CATENA_CHECK(ValueError, value != nullptr, "mean_over_ranks: the value is an empty function");
  return [value = std::move(value), comm = std::move(comm)] {
    const Means::Sum own = value();
    double numbers[] = {own.sum, own.count};
    const comm::PurposeScope purpose(comm.get(), "mean_over_ranks");
    parallel::sum_over_ranks(numbers, comm.get());
    return numbers[1] > 0 ? numbers[0] / numbers[1] : std::nan("");
  };
}

}  // namespace catena::training
