#include "training/number_sums.h"

#include "catena/array/creation.h"
#include "catena/array/math.h"

namespace catena::training {

void NumberSums::begin(const Numbers& like) {
  stays_ = true;
  for (const Array& number : like) {
    const bool counts = !like.counted.empty() && like.counted[sums_.size()].defined();
    const ArrayOptions options{counts ? dtype::float64 : dtype::float32, number.device()};
    sums_.push_back(zeros(number.shape(), options));
    sums_.counted.push_back(counts ? zeros(number.shape(), options) : Array());
  }
  terms_.resize(like.size());
  for (size_t k = 0; k < like.terms.size(); ++k)
    if (!like.terms[k].empty()) terms_[k].begin(like.terms[k]);
}

void NumberSums::add_to(Array& sum, const Array& part) const {
  if (stays_)
    sum += part;
  else
    sum = sum.defined() ? sum + part : part;
}

// Of a number whose parts have different terms these are dropped.
void NumberSums::add_terms(const Numbers& numbers, double share, bool is_first) {
  static const Numbers none;
  for (size_t k = 0; k < numbers.size(); ++k) {
    const Numbers& terms = numbers.terms.empty() ? none : numbers.terms[k];
    if (terms.empty() || (!is_first && terms_[k].sums_.size() != terms.size()))
      terms_[k] = NumberSums();
    else
      terms_[k].add(terms, share);
  }
}

void NumberSums::add(const Numbers& numbers, double share) {
  const bool is_first = empty();
  if (is_first) {
    sums_.resize(numbers.size());
    sums_.counted.resize(numbers.size());
    terms_.resize(numbers.size());
  }
  CATENA_CHECK(ValueError, numbers.size() == sums_.size(), "training: the score of a slice gave ",
               numbers.size(), " numbers, that of the slices before it ", sums_.size());
  add_terms(numbers, share, is_first);
  for (size_t k = 0; k < numbers.size(); ++k) {
    const Array counted = numbers.counted.empty() ? Array() : numbers.counted[k];
    if (!counted.defined()) {
      add_to(sums_[k], share == 1 ? numbers[k] : numbers[k] * share);
      continue;
    }
    const Array weights = counted.reshape(numbers[k].shape());
    add_to(sums_[k], numbers[k] * weights);
    add_to(sums_.counted[k], weights);
  }
}

Numbers NumberSums::means(double shares) const {
  constexpr double kNone = 1e-30;
  Numbers means = sums_;
  for (size_t k = 0; k < means.size(); ++k) {
    Array& counted = means.counted[k];
    if (!counted.defined()) {
      if (stays_ || shares != 1) means[k] = means[k] / shares;
      continue;
    }
    means[k] = means[k] / maximum(counted, kNone);
    if (stays_) counted = counted.copy();
  }
  means.terms.resize(means.size());
  for (size_t k = 0; k < means.size(); ++k)
    if (!terms_[k].empty()) means.terms[k] = terms_[k].means(shares);
  return means;
}

void NumberSums::clear() {
  for (const Array& sum : sums_) sum.fill(0);
  for (const Array& counted : sums_.counted)
    if (counted.defined()) counted.fill(0);
  for (NumberSums& terms : terms_) terms.clear();
}

}  // namespace catena::training
