// Contents of the messages between two stages, and how a rank tells the next one of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catena/array/memory_order.h"
#include "catena/autograd/variable.h"
#include "parallel/pipeline/micro_batches.h"

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
// Variables where gradients are wanted; a null `info` wants none.
Variables variables_of(const Arrays& inputs, const MessageInfo* info);
// "(2, 3) float32, (2) int32 without gradient", "nothing".
std::string text_of(const MessageInfo& message);

// What a rank tells the next one about a boundary between them, and for which batch.
struct BoundaryHeader {
  int64_t call = 0;     // its number among those of step and predict
  int64_t samples = 0;  // of the batch
  BatchForm form;
  MessageInfo message;
};
// "has a batch of 8 samples with a micro-batch of 4, to train".
std::string text_of(int64_t samples, const BatchForm& form);
// For the host, and back.
std::string pack(const BoundaryHeader& header);
BoundaryHeader unpack(std::string_view bytes);

}  // namespace catena::parallel::pipeline
