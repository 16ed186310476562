// The order of the differentiable calls of a communicator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "catena/autograd/variable.h"
#include "catena/comm/communicator.h"

namespace catena::parallel {

// One recorded call: how often backward has come through it, and which call comes behind it.
struct Step {
  std::string what;     // "recv from rank 1"
  uint64_t number = 0;  // among the calls since the last pass, from 1
  int passes = 0;
  std::weak_ptr<Step> next;
  int passes_before_next = 0;  // that had come through when the next call was recorded

  // A pass comes. GradientError if it has left out the next call, which other ranks make.
  void pass();
};

// The calls of one communicator since the last pass through all of them. Holds the delegate
// variable of the last one, and with it the graph of all.
class Tape {
 public:
  // The delegate variable of the last call, undefined if there is none.
  const Variable& last() const { return last_; }
  // The last step; null if there is none.
  std::shared_ptr<Step> last_step() const;
  // A call, recorded with last() among its inputs, is the last one now.
  void append(const std::shared_ptr<Step>& step, const Variable& delegate);
  // Lets the graph go if `step` is the last one.
  void release(const Step& step);

 private:
  Variable last_;
  std::weak_ptr<Step> last_step_;
};

// The tape of a communicator, which is there until that closes.
std::shared_ptr<Tape> tape_of(Communicator& comm);

}  // namespace catena::parallel
