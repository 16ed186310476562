#include "parallel/pipeline/message_info.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "catena/core/error.h"

namespace catena::parallel::pipeline {

// What is one variable in this stage is one in the next, whose gradients meet there in the order of
// a stage that is not cut.
MessageInfo info_of(const Variables& outputs) {
  MessageInfo message;
  for (const Variable& y : outputs) {
    const auto first = std::find_if(outputs.begin(), outputs.end(),
                                    [&](const Variable& other) { return same_variable(other, y); });
    const bool is_again = &*first != &y;
    message.push_back({y.dtype(), y.shape(), y.requires_grad() && !is_again,
                       y.data().is_dense() ? y.data().order() : MemoryOrder(),
                       is_again ? int(first - outputs.begin()) : -1});
  }
  return message;
}

Variables variables_of(const Arrays& inputs, const MessageInfo* info) {
  Variables xs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool wanted = info != nullptr && (*info)[i].wants_gradient;
    if (info != nullptr && (*info)[i].same_as >= 0)
      xs.push_back(xs[size_t((*info)[i].same_as)]);
    else
      xs.push_back(wanted ? Variable(inputs[i]) : Variable::constant(inputs[i]));
  }
  return xs;
}

std::string text_of(const MessageInfo& message) {
  std::string text;
  for (const ArrayInfo& a : message) {
    if (!text.empty()) text += ", ";
    text += catena::message(a.shape, " ", a.dtype, a.wants_gradient ? "" : " without gradient");
  }
  return text.empty() ? "nothing" : text;
}

namespace {

int64_t take(std::string_view& bytes) {
  int64_t number = 0;
  CATENA_CHECK(CommError, bytes.size() >= sizeof number,
               "Pipeline: a header of a message between stages is too short; do all ranks run the "
               "same program?");
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

}  // namespace

std::string text_of(int64_t samples, const BatchForm& form) {
  const char* way = form.mode == RunMode::kTrain     ? "to train"
                    : form.mode == RunMode::kPredict ? "to predict"
                                                     : "to train, with the model in test state";
  return message("has a batch of ", samples, " samples with a micro-batch of ", form.samples, ", ",
                 way);
}

std::string pack(const BoundaryHeader& header) {
  std::vector<int64_t> numbers{header.call, header.samples, header.form.samples,
                               int64_t(header.form.mode)};
  const auto put = [&](const auto& more) {
    numbers.insert(numbers.end(), more.begin(), more.end());
  };
  for (const ArrayInfo& a : header.message) {
    put(std::array{int64_t(a.dtype), int64_t(a.wants_gradient), int64_t(a.same_as),
                   int64_t(a.shape.size())});
    put(a.shape);
    put(a.order.axes(int(a.shape.size())));
  }
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)};
}

BoundaryHeader unpack(std::string_view bytes) {
  BoundaryHeader header;
  header.call = take(bytes);
  header.samples = take(bytes);
  header.form.samples = take(bytes);
  header.form.mode = static_cast<RunMode>(take(bytes));
  while (!bytes.empty()) {
    ArrayInfo& a = header.message.emplace_back();
    a.dtype = static_cast<Dtype>(take(bytes));
    a.wants_gradient = take(bytes) != 0;
    a.same_as = int(take(bytes));
    a.shape.resize(size_t(take(bytes)));
    for (int64_t& extent : a.shape) extent = take(bytes);
    Axes order(a.shape.size(), int64_t{0});
    for (int64_t& axis : order) axis = take(bytes);
    a.order = MemoryOrder(order);
  }
  return header;
}

}  // namespace catena::parallel::pipeline
