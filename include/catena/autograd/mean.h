// Divisor of a mean: what a loss or a measure divided by, declared by the function that made it.
#pragma once

#include <vector>

#include "catena/autograd/variable.h"

namespace catena {

// A mean over something else than the samples: labels that are not ignored, their class weights,
// the tokens of a batch. Whoever divides a batch (over ranks, passes, micro-batches) weighs the
// means of its parts by what they counted, so that together they are the mean of the whole. A mean
// over all elements declares nothing: it counts by samples.
struct Mean {
  // The sum that was divided by, a float of one element, on any device; 0: nothing counted.
  Array counted;
  // What it would be if everything counted, known to the host; 0: not known.
  double expected = 0;
};

// A term of a sum in which means are: factor * value + offset.
struct MeanTerm {
  Array value;  // of one element
  double factor = 1, offset = 0;
  Array counted;  // what it divided by; undefined: it declares nothing
};

// What vertices of the graph share of one mean, or of a sum of several, which is no mean itself:
// each of its terms divides by something else.
struct MeanRecord : RefCounted {
  Mean mean;
  std::vector<MeanTerm> terms;  // of a sum; it has two at least
  bool is_mean() const { return terms.empty(); }
  static void destroy(MeanRecord* record);
};

// The mean that the variable is, through casts, reshapes and factors; null if none is declared.
const Mean* mean_of(const Variable& variable);
// The terms of the variable, if it is a sum or difference in which means are, through casts,
// reshapes and factors; else empty, as it is for sums of more than 16.
const std::vector<MeanTerm>& mean_terms_of(const Variable& variable);
// Declares that the variable, of one element, is this mean. Constants too: a measure. ValueError
// unless both have one element.
void declare_mean(const Variable& variable, const Mean& mean);

// GradientError, for a part of a batch whose loss is a sum that has means in it which left elements
// out: what the mean over the whole batch divides by is not known yet. Waits for their counts.
// Nothing for a variable that is a mean itself. `who` begins the text.
void require_countable(const char* who, const Variable& loss);

namespace detail {
// Whether the vertex is a mean that was declared; null is none.
inline bool is_mean(const VariableNode* v) { return v != nullptr && v->mean && v->mean->is_mean(); }
// `sum` is a + sign * b, of one element.
void note_sum_of_means(const Variable& a, const Variable& b, double sign, const Variable& sum);
// `to` is factor * from + offset.
void hand_on_scaled_means(const Variable& from, double factor, double offset, const Variable& to);
void require_all_counted(const char* who, const std::vector<VariableNode*>& means);
void hand_on_known_mean(const Variable& from, const Variable& to);
// `to` is `from` in another form: it is the same mean, or the same sum of them.
inline void hand_on_mean(const Variable& from, const Variable& to) {
  const VariableNode* node = from.body()->node.get();
  if (node != nullptr && node->mean && to.size() == 1) [[unlikely]]
    hand_on_known_mean(from, to);
}
}  // namespace detail

}  // namespace catena
