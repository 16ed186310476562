#include "catena/optimizers/step_numbers.h"

#include <algorithm>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/core/graph.h"

namespace catena::optimizers {

// The arenas of a device read one rate, so that a new one is one write however many there are.
StepNumbers::OfArena StepNumbers::made(Device device, int64_t t, double rate) const {
  OfArena own;
  own.block = zeros({3}, {Dtype::kFloat64, device});
  own.counter = own.block(Slice(0, 2));
  own.step = own.block[0];
  own.step.fill(static_cast<double>(t));
  const auto other = std::find_if(arenas_.begin(), arenas_.end(), [&](const OfArena& each) {
    return each.is_here() && each.block.device() == device;
  });
  own.learning_rate = other == arenas_.end() ? own.block[2] : other->learning_rate;
  if (other == arenas_.end()) own.learning_rate.fill(rate);
  return own;
}

void StepNumbers::append(Device device, bool on_device, double rate) {
  arenas_.push_back(on_device ? made(device, t_, rate) : OfArena());
}

void StepNumbers::bring(size_t arena, Device device, double rate) {
  if (!arenas_[arena].is_here()) arenas_[arena] = made(device, t(), rate);
}

int64_t StepNumbers::t() const {
  for (const OfArena& own : arenas_)
    if (own.is_here()) return static_cast<int64_t>(own.step.item<double>());
  return t_;
}

Array StepNumbers::on_device(size_t arena, Device device) const {
  const OfArena& own = arenas_.at(arena);
  return own.is_here() ? own.step : full({}, static_cast<double>(t_), {Dtype::kFloat64, device});
}

void StepNumbers::set(int64_t t) {
  t_ = t;
  for (const OfArena& own : arenas_)
    if (own.is_here()) own.step.fill(static_cast<double>(t));
}

void StepNumbers::set_rate(double rate) {
  const void* written = nullptr;
  for (const OfArena& own : arenas_) {
    if (!own.is_here() || own.learning_rate.raw_data() == written) continue;
    own.learning_rate.fill(rate);
    written = own.learning_rate.raw_data();
  }
}

void StepNumbers::count(size_t arena, const Array* skip) const {
  const Array& step = of(arena).step;
  skip != nullptr ? add(step, equal(*skip, 0.0), step) : add(step, 1.0, step);
}

bool StepNumbers::is_capturing() const {
  return std::any_of(arenas_.begin(), arenas_.end(), [](const OfArena& own) {
    return own.is_here() && cuda::is_capturing(own.block.device());
  });
}

}  // namespace catena::optimizers
