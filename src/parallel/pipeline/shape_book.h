// Book of the shapes of messages.
#pragma once

#include <map>
#include <vector>

#include "parallel/pipeline/message_info.h"

namespace catena::parallel::pipeline {

// Contents of the messages between two stages: learnt once for each form of micro-batch, checked
// whenever one is sent. Boundaries have the number of the stage before them.
class ShapeBook {
 public:
  // What the batch needs and the book has not is new until the next batch.
  void begin_batch(const MicroBatches& batch);
  const std::vector<BatchForm>& new_forms() const { return new_; }
  // A step that fails may have learnt its own mistake.
  void forget_new();
  void forget_all() { pages_.clear(); }

  // Begins a page for a form; false if there is one.
  bool open(const BatchForm& form) { return pages_.try_emplace(form).second; }
  const MessageInfo& at(const BatchForm& form, int boundary) const {
    return pages_.at(form).at(boundary);
  }
  void learn(const BatchForm& form, int boundary, MessageInfo message) {
    pages_[form][boundary] = std::move(message);
  }
  // ShapeError unless the results have the shapes and dtypes that were learnt; what is not known
  // yet is learnt. Which gradients are wanted may change when layers are frozen: in one process it
  // is learnt anew. Over ranks the other one is not told: gradients that are no longer wanted come
  // all the same, and one that would not come is a GradientError.
  void check(const BatchForm& form, int boundary, const Variables& results, bool over_ranks);

 private:
  std::map<BatchForm, std::map<int, MessageInfo>> pages_;
  std::vector<BatchForm> new_;
};

}  // namespace catena::parallel::pipeline
