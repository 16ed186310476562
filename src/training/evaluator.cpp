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
#include "core/text_hash.h"

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

namespace {

// The names with a zero behind each.
std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + '\0';
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> names;
  for (size_t from = 0; from < text.size();) {
    const size_t end = text.find('\0', from);
    names.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return names;
}

// "'loss'", or "none" behind the last one: the name at a position.
std::string name_at(const std::vector<std::string>& names, size_t i) {
  return i < names.size() ? message("'", names[i], "'") : std::string("none");
}

// Collective: the ranks have found that their names differ. The same error on all of them.
[[noreturn]] void fail_names(const std::vector<std::string>& names, Communicator& comm) {
  const std::vector<std::string> texts = comm.all_gather_object(join(names));
  const std::vector<std::string> first = split(texts[0]);
  size_t rank = 1;
  while (rank + 1 < texts.size() && texts[rank] == texts[0]) ++rank;
  const std::vector<std::string> other = split(texts[rank]);
  size_t at = 0;
  while (at < first.size() && at < other.size() && first[at] == other[at]) ++at;
  fail<ValueError>("Means::reduce: the names differ between ranks: name ", at + 1, " is ",
                   name_at(first, at), " on rank 0, ", name_at(other, at), " on rank ", rank,
                   "; give the same names in the same order on all ranks, also on those without "
                   "samples");
}

// Adds up the numbers of all ranks, in their order, if all have the same names. The names go along
// as a hash, so that it is one exchange.
void sum_by_names(std::vector<double>& numbers, const std::vector<std::string>& names,
                  Communicator& comm) {
  numbers.push_back(double(text_hash(join(names)) >> 11));  // as many bits as a double holds
  const auto all = comm.all_gather_object(numbers);
  const auto has_other_names = [&](const std::vector<double>& one) {
    return one.size() != all[0].size() || one.back() != all[0].back();
  };
  if (std::any_of(all.begin(), all.end(), has_other_names)) fail_names(names, comm);
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
    Arrays numbers;
    for (const Variable& number : score(batch)) numbers.push_back(number.data());
    means.add(numbers, double(batch.size()));
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
  const auto measure = measure_of(score);
  const TestScope scope(model);
  return evaluate(batches, names, measure, comm);
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
