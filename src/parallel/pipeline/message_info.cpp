#include "parallel/pipeline/message_info.h"

#include <algorithm>
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

std::string text_of(const MessageInfo& message) {
  std::string text;
  for (const ArrayInfo& a : message) {
    if (!text.empty()) text += ", ";
    text += catena::message(a.shape, " ", a.dtype, a.wants_gradient ? "" : " without gradient");
  }
  return text.empty() ? "nothing" : text;
}

namespace {

void put(std::string& bytes, int64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

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

std::string text_of(int64_t samples, const Boundary::Key& key) {
  using Mode = Boundary::Mode;
  const char* way = key.second == Mode::kTrain     ? "to train"
                    : key.second == Mode::kPredict ? "to predict"
                                                   : "to train, with the model in test state";
  return message("has a batch of ", samples, " samples with a micro-batch of ", key.first, ", ",
                 way);
}

std::string pack(const BoundaryHeader& header) {
  std::string bytes;
  put(bytes, header.calls);
  put(bytes, header.samples);
  put(bytes, header.key.first);
  put(bytes, int64_t(header.key.second));
  put(bytes, int64_t(header.message.size()));
  for (const ArrayInfo& a : header.message) {
    put(bytes, int64_t(a.dtype));
    put(bytes, a.wants_gradient);
    put(bytes, a.same_as);
    put(bytes, int64_t(a.shape.size()));
    for (const int64_t extent : a.shape) put(bytes, extent);
    for (const int64_t axis : a.order.axes(int(a.shape.size()))) put(bytes, axis);
  }
  return bytes;
}

BoundaryHeader unpack(std::string_view bytes) {
  BoundaryHeader header;
  header.calls = take(bytes);
  header.samples = take(bytes);
  header.key.first = take(bytes);
  header.key.second = static_cast<Boundary::Mode>(take(bytes));
  header.message.resize(size_t(take(bytes)));
  for (ArrayInfo& a : header.message) {
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

void Boundary::check(const Key& key, const Variables& outputs, bool over_ranks) {
  const MessageInfo now = info_of(outputs);
  MessageInfo& known = known_.try_emplace(key, now).first->second;
  const bool has_form =
      std::equal(now.begin(), now.end(), known.begin(), known.end(),
                 [](const ArrayInfo& a, const ArrayInfo& b) { return a.has_form_of(b); });
  if (!has_form)
    fail<ShapeError>("Pipeline: stage ", stage_, " gave ", text_of(now), " for a micro-batch of ",
                     key.first, " samples, and ", text_of(known),
                     " in earlier ones; the results of a stage must depend on the size of the "
                     "micro-batch alone");
  for (size_t i = 0; i < now.size(); ++i) {
    CATENA_CHECK(GradientError, !over_ranks || known[i].wants_gradient || !now[i].wants_gradient,
                 "Pipeline: result ", i, " of stage ", stage_,
                 " wants a gradient now, and wanted none in the first step on such a batch, when "
                 "the next rank learnt what to send; were its layers frozen then? Freeze them "
                 "after that step, or make a new pipeline when they are to be trained");
    if (!over_ranks) known[i].wants_gradient = now[i].wants_gradient;
  }
}

}  // namespace catena::parallel::pipeline
