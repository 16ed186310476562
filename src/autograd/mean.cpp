#include "catena/autograd/mean.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "autograd/free_list.h"
#include "catena/autograd/function_node.h"

namespace catena {

void MeanRecord::destroy(MeanRecord* record) { FreeList<MeanRecord>::destroy(record); }

const Mean* mean_of(const Variable& variable) {
  const VariableNode* node = variable.defined() ? variable.body()->node.get() : nullptr;
  return detail::is_mean(node) ? &node->mean->mean : nullptr;
}

const std::vector<MeanTerm>& mean_terms_of(const Variable& variable) {
  static const std::vector<MeanTerm> none;
  const VariableNode* node = variable.defined() ? variable.body()->node.get() : nullptr;
  return node != nullptr && node->mean ? node->mean->terms : none;
}

void declare_mean(const Variable& variable, const Mean& mean) {
  CATENA_CHECK(ValueError,
               variable.size() == 1 && mean.counted.defined() && mean.counted.size() == 1 &&
                   is_float(mean.counted.dtype()),
               "declare_mean: expected a variable of one element and a count of one float, got ",
               variable.shape(), " and ",
               mean.counted.defined() ? message(mean.counted.shape(), " of ", mean.counted.dtype())
                                      : std::string("no array"));
  IntrusivePtr<MeanRecord> record(FreeList<MeanRecord>::create());
  record->mean = mean;
  // What divides a float64 loss is not to round it.
  if (variable.dtype() == Dtype::kFloat64)
    record->mean.counted = mean.counted.astype(Dtype::kFloat64, false);
  variable.node()->mean = std::move(record);
}

namespace {

// Of the graph behind it, each once whatever it went into.
std::vector<VariableNode*> means_behind(const Variable& variable) {
  std::vector<VariableNode*> means, pending{variable.node()};
  std::unordered_set<const FunctionNode*> seen;
  while (!pending.empty()) {
    VariableNode* v = pending.back();
    pending.pop_back();
    const auto same = [&](const VariableNode* other) { return other->mean == v->mean; };
    if (detail::is_mean(v) && std::none_of(means.begin(), means.end(), same)) means.push_back(v);
    if (!v->creator || !seen.insert(v->creator.get()).second) continue;
    for (const auto& input : v->creator->inputs()) pending.push_back(input.get());
  }
  return means;
}

}  // namespace

void require_countable(const char* who, const Variable& loss) {
  if (mean_of(loss) == nullptr) detail::require_all_counted(who, means_behind(loss));
}

void detail::require_all_counted(const char* who, const std::vector<VariableNode*>& means) {
  for (const VariableNode* v : means) {
    const double counted = v->mean->mean.counted.item<double>(), all = v->mean->mean.expected;
    CATENA_CHECK(GradientError, counted == all, who, ": the loss of a part of the batch is a sum ",
                 "that has a mean over ", counted, " of ", all,
                 " elements in it; what the mean over the whole batch divides by is known at its "
                 "end only. Let the loss be one mean (F::mean_over of the sums), or do not divide "
                 "the batch");
  }
}

namespace {

// Appends what the variable is made of.
void add_terms(std::vector<MeanTerm>& terms, const Variable& v, double factor, double offset = 0) {
  const std::vector<MeanTerm>& own = mean_terms_of(v);
  for (const MeanTerm& t : own)
    terms.push_back({t.value, factor * t.factor, factor * t.offset, t.counted});
  if (own.empty()) {
    const Mean* mean = mean_of(v);
    terms.push_back({v.data(), factor, 0, mean ? mean->counted : Array()});
  }
  terms.back().offset += offset;  // a number is its own mean, whatever it is weighed by
}

// A variable that a loop adds to would get more and more.
constexpr size_t kMostTerms = 16;

void set_terms(const Variable& sum, std::vector<MeanTerm> terms) {
  if (terms.size() > kMostTerms) return;
  IntrusivePtr<MeanRecord> record(FreeList<MeanRecord>::create());
  record->terms = std::move(terms);
  sum.node()->mean = std::move(record);
}

}  // namespace

void detail::note_sum_of_means(const Variable& a, const Variable& b, double sign,
                               const Variable& sum) {
  std::vector<MeanTerm> terms;
  add_terms(terms, a, 1);
  add_terms(terms, b, sign);
  set_terms(sum, std::move(terms));
}

void detail::hand_on_scaled_means(const Variable& from, double factor, double offset,
                                  const Variable& to) {
  if (mean_of(from) != nullptr) return hand_on_known_mean(from, to);
  std::vector<MeanTerm> terms;
  add_terms(terms, from, factor, offset);
  set_terms(to, std::move(terms));
}

void detail::hand_on_known_mean(const Variable& from, const Variable& to) {
  to.node()->mean = from.body()->node->mean;
}

}  // namespace catena
