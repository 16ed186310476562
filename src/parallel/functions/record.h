// Making an exchange as a function of variables.
#pragma once

#include "exchange.h"

namespace catena::parallel {

// What a call gives.
struct Exchanged {
  Variable y;         // undefined where this rank gets nothing
  Variable delegate;  // a constant if nothing was recorded
  // What the functions return.
  const Variable& result() const { return y.defined() ? y : delegate; }
};

// Whether a call with x, which may be undefined, is recorded.
bool is_recorded(const Variable& x, Dtype dtype);

// ValueError in a Communicator::group; before anything is sent.
void check_outside_group(const Communicator& comm, const std::string& who);

// Makes the call and records it if `recorded` is set: behind the calls of the communicator before
// it, and behind `delegate` if that is defined. x is undefined where this rank gives nothing.
Exchanged exchange(Communicator& comm, Exchange how, const Variable& x, bool recorded,
                   const Variable& delegate = {});

}  // namespace catena::parallel
