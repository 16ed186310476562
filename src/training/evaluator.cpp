// Means over batches and ranks, and the test pass that makes them.
#include "catena/training/evaluator.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/autograd/grad_mode.h"
#include "catena/autograd/test_scope.h"
#include "catena/comm/internals.h"
#include "catena/parallel/persistents.h"
#include "comm/agreement.h"

namespace catena::training {

namespace {

// A term may be an element of something large, which is not to be kept until somebody asks.
Array own(const Array& value) {
  constexpr size_t kMuch = 4096;
  return value.storage()->bytes > kMuch ? value.copy() : value;
}

Numbers numbers_of(const std::vector<MeanTerm>& terms) {
  Numbers numbers;
  for (const MeanTerm& term : terms) {
    Array value = own(term.value);
    if (term.factor != 1) value = value * term.factor;
    if (term.offset != 0) value = value + term.offset;
    numbers.push_back(value);
    numbers.counted.push_back(term.counted);
  }
  return numbers;
}

}  // namespace

Numbers::Numbers(const Variables& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    push_back(values[i].data());
    if (const Mean* mean = mean_of(values[i])) {
      counted.resize(values.size());
      counted[i] = mean->counted;
    }
    const std::vector<MeanTerm>& added = mean_terms_of(values[i]);
    if (added.empty()) continue;
    terms.resize(values.size());
    terms[i] = numbers_of(added);
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

double Means::Sum::mean() const {
  if (terms.empty()) return count > 0 ? sum / count : std::nan("");
  double total = 0;
  bool counts = false;
  for (const Sum& term : terms) {
    if (!(term.count > 0)) continue;
    total += term.sum / term.count;
    counts = true;
  }
  return counts ? total : std::nan("");
}

void Means::Sum::add(const Sum& other) {
  if (other.count == 0) return;
  if (count == 0) terms.assign(other.terms.size(), {});
  sum += other.sum;
  count += other.count;
  if (terms.size() != other.terms.size()) return terms.clear();
  for (size_t i = 0; i < terms.size(); ++i) {
    terms[i].sum += other.terms[i].sum;
    terms[i].count += other.terms[i].count;
  }
}

void Means::add(const std::string& name, double mean, double count) {
  check_not_reduced("Means::add", name);
  CATENA_CHECK(ValueError, count >= 0, "Means::add: '", name, "' with count ", count);
  Metric& m = metric(name);
  if (count == 0) return;
  takes_terms(m, 0);
  m.sum += mean * count;
  m.count += count;
}

void Means::add(const std::string& name, const Array& mean, double count) {
  add(name, mean, Array(), count);
}

void Means::add(const std::string& name, const Variable& mean, double count) {
  add_number(name, Numbers(Variables{mean}), 0, count);
}

namespace {

// The count, where the host knows it.
std::optional<double> known_count(const Array& counted, double count) {
  if (!counted.defined()) return count;
  if (counted.device().is_cpu()) return counted.item<double>();
  return {};
}

}  // namespace

void Means::add(const std::string& name, const Array& mean, const Array& counted, double count) {
  CATENA_CHECK(ShapeError, mean.size() == 1, "Means::add: '", name, "' has shape ", mean.shape(),
               ", expected one element");
  const std::optional<double> known = known_count(counted, count);
  if (known && mean.device().is_cpu()) return add(name, mean.item<double>(), *known);
  add(name, 0.0, 0);  // the checks
  if (known && !(*known > 0)) return;
  takes_terms(metric(name), 0);
  add_to(metric(name), 0, mean, counted, count);
}

// A number, or a term of it: 0 is the number.
void Means::add_to(Metric& m, size_t term, const Array& mean, const Array& counted, double count) {
  const std::optional<double> known = known_count(counted, count);
  if (known && !(*known > 0)) return;
  if (!known || !mean.device().is_cpu()) {
    m.pending.push_back({mean.reshape({1}), known.value_or(0), known ? Array() : counted, term});
    return;
  }
  Sum& to = term == 0 ? m : m.terms[term - 1];
  to.sum += mean.item<double>() * *known;
  to.count += *known;
}

// Whether all that was added had as many terms (0: it was no sum). If not, the terms are dropped,
// and the whole counts by samples.
bool Means::takes_terms(Metric& m, size_t terms) {
  if (m.count == 0 && m.pending.empty()) m.terms.assign(terms, {});
  if (m.terms.size() == terms) return true;
  m.terms.clear();
  return false;
}

// The whole as well, for the case that others have other terms.
void Means::add_number(const std::string& name, const Numbers& numbers, size_t i, double samples) {
  if (numbers.terms.empty() || numbers.terms[i].empty())
    return add(name, numbers[i], numbers.counted.empty() ? Array() : numbers.counted[i], samples);
  add(name, 0.0, 0);  // the checks
  if (!(samples > 0)) return;
  Metric& m = metric(name);
  const Numbers& terms = numbers.terms[i];
  const bool takes = takes_terms(m, terms.size());
  add_to(m, 0, numbers[i], Array(), samples);
  for (size_t t = 0; t < terms.size() && takes; ++t)
    add_to(m, t + 1, terms[t], terms.counted[t], samples);
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
    const size_t term = m.pending[i].term;
    if (term > m.terms.size()) continue;  // dropped since
    Sum& to = term == 0 ? m : m.terms[term - 1];
    if (count > 0) to.sum += values[i] * count;
    to.count += count;
  }
  m.pending.clear();
}

void Means::add(const Arrays& means, double count) { add_counted(Numbers(means), count); }

void Means::add_counted(const Numbers& numbers, double samples) {
  CATENA_CHECK(ValueError, numbers.size() == names_.size(), "Means::add: got ", numbers.size(),
               " numbers for ", names_.size(), " names, the first of which is '",
               names_.empty() ? std::string() : names_[0], "'");
  for (size_t i = 0; i < numbers.size(); ++i) add_number(names_[i], numbers, i, samples);
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
  add_pending(m);
  m.Sum::add(sum);
}

namespace {

void pack(const Means::Sum& sum, std::vector<double>& numbers) {
  numbers.insert(numbers.end(), {sum.sum, sum.count, double(sum.terms.size())});
  for (const Means::Sum& term : sum.terms) numbers.insert(numbers.end(), {term.sum, term.count});
}

// Moves on behind it.
Means::Sum unpack(std::vector<double>::const_iterator& at) {
  Means::Sum sum{at[0], at[1]};
  sum.terms.resize(size_t(at[2]));
  at += 3;
  for (Means::Sum& term : sum.terms) {
    term = {at[0], at[1]};
    at += 2;
  }
  return sum;
}

// The numbers of all ranks, if all have the same names. These go along as a hash, so that it is one
// exchange.
std::vector<std::vector<double>> gather_by_names(std::vector<double> numbers,
                                                 const std::vector<std::string>& names,
                                                 Communicator& comm) {
  comm::Agreement agreement;
  for (size_t i = 0; i < names.size(); ++i)
    agreement.add(message("name ", i + 1), "'" + names[i] + "'");
  numbers.push_back(double(agreement.hash() >> 11));  // as many bits as a double holds
  auto all = comm.all_gather_object(numbers);
  const auto has_other_names = [&](const std::vector<double>& one) {
    return one.back() != all[0].back();
  };
  if (std::any_of(all.begin(), all.end(), has_other_names))
    if (const auto difference = agreement.exchange(comm))
      fail<ValueError>("Means::reduce: the names differ between ranks: ", difference->text(),
                       "; give the same names in the same order on all ranks, also on those "
                       "without samples");
  return all;
}

}  // namespace

void Means::reduce(Communicator* comm) {
  CATENA_CHECK(ValueError, !reduced_, "Means::reduce: called twice without clear()");
  std::vector<double> numbers;
  for (Metric& m : metrics_) {
    add_pending(m);
    pack(m, numbers);
  }
  reduced_ = true;
  if (comm == nullptr) return;
  const auto all = gather_by_names(std::move(numbers), names_, *comm);
  metrics_.assign(names_.size(), {});
  for (const std::vector<double>& one : all) {
    auto at = one.begin();
    for (Metric& m : metrics_) m.Sum::add(unpack(at));
  }
}

double Means::value(const std::string& name) {
  Metric& m = metric(name);
  add_pending(m);
  return m.mean();
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
    if (pending.term == 0)
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
    if (comm == nullptr) return own.mean();
    std::vector<double> numbers;
    pack(own, numbers);
    const comm::PurposeScope purpose(comm.get(), "mean_over_ranks");
    Means::Sum of_all;
    for (const std::vector<double>& one : comm->all_gather_object(numbers)) {
      auto at = one.begin();
      of_all.add(unpack(at));
    }
    return of_all.mean();
  };
}

}  // namespace catena::training
