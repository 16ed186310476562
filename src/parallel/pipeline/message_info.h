// What the messages between two stages hold: learnt once for each size of micro-batch, checked
// whenever one is sent.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catena/array/memory_order.h"
#include "catena/autograd/variable.h"

namespace catena::parallel::pipeline {

// One array that a stage gives to the next.
struct ArrayInfo {
  Dtype dtype{};
  Shape shape;
  bool wants_gradient = false;  // the stage has something to do with the gradient
  MemoryOrder order = {};       // of the array, and of the one that receives it
  int same_as = -1;  // the earlier one that is the same variable, whose gradient is of both
  bool has_form_of(const ArrayInfo& other) const {
    return dtype == other.dtype && shape == other.shape && same_as == other.same_as;
  }
  Array uninitialized(Device device) const {
    return Array::uninitialized(shape, dtype, device, order);
  }
};
using MessageInfo = std::vector<ArrayInfo>;

MessageInfo info_of(const Variables& outputs);
// "(2, 3) float32, (2) int32 without gradient", "nothing".
std::string text_of(const MessageInfo& message);
// The boundary behind a stage.
class Boundary {
 public:
  explicit Boundary(int stage) : stage_(stage) {}
  // Micro-batches of so many samples, in one way of running the model.
  enum class Mode : uint8_t { kTrain, kTrainInTestState, kPredict };
  using Key = std::pair<int64_t, Mode>;

  bool knows(const Key& key) const { return known_.count(key) > 0; }
  const MessageInfo& at(const Key& key) const { return known_.at(key); }
  void learn(const Key& key, MessageInfo message) { known_[key] = std::move(message); }
  void forget(const Key& key) { known_.erase(key); }
  // ShapeError unless the outputs have the shapes and dtypes that were learnt; what is not known
  // yet is learnt. Which gradients are wanted may change when layers are frozen: in one process it
  // is learnt anew. Over ranks the other one is not told: gradients that are no longer wanted come
  // all the same, and one that would not come is a GradientError.
  void check(const Key& key, const Variables& outputs, bool over_ranks);

 private:
  int stage_;
  std::map<Key, MessageInfo> known_;
};

// What a rank tells the next one about a boundary between them, and for which batch.
struct BoundaryHeader {
  int64_t calls = 0;    // of step and predict, this one included
  int64_t samples = 0;  // of the batch
  Boundary::Key key;
  MessageInfo message;
};
// "has a batch of 8 samples with a micro-batch of 4, to train".
std::string text_of(int64_t samples, const Boundary::Key& key);
// For the host, and back.
std::string pack(const BoundaryHeader& header);
BoundaryHeader unpack(std::string_view bytes);

}  // namespace catena::parallel::pipeline
