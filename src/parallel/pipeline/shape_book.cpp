#include "parallel/pipeline/shape_book.h"

#include <algorithm>

#include "catena/core/error.h"

namespace catena::parallel::pipeline {

void ShapeBook::begin_batch(const MicroBatches& batch) {
  new_.clear();
  for (int m = 0; m < batch.size; ++m)
    if (const BatchForm form = batch.form_of(m); !pages_.contains(form)) new_.push_back(form);
}

void ShapeBook::forget_new() {
  for (const BatchForm& form : new_) pages_.erase(form);
}

void ShapeBook::check(const BatchForm& form, int boundary, const Variables& results,
                      bool over_ranks) {
  const MessageInfo now = info_of(results);
  MessageInfo& known = pages_[form].try_emplace(boundary, now).first->second;
  const bool has_form =
      std::equal(now.begin(), now.end(), known.begin(), known.end(),
                 [](const ArrayInfo& a, const ArrayInfo& b) { return a.has_form_of(b); });
  if (!has_form)
    fail<ShapeError>("Pipeline: stage ", boundary, " gave ", text_of(now), " for a micro-batch of ",
                     form.samples, " samples, and ", text_of(known),
                     " in earlier ones; the results of a stage must depend on the size of the "
                     "micro-batch alone");
  for (size_t i = 0; i < now.size(); ++i) {
    CATENA_CHECK(GradientError, !over_ranks || known[i].wants_gradient || !now[i].wants_gradient,
                 "Pipeline: result ", i, " of stage ", boundary,
                 " wants a gradient now, and wanted none in the first step on such a batch, when "
                 "the next rank learnt what to send; were its layers frozen then? Freeze them "
                 "after that step, or make a new pipeline when they are to be trained");
    if (!over_ranks) known[i].wants_gradient = now[i].wants_gradient;
  }
}

}  // namespace catena::parallel::pipeline
