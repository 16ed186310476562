// Differentiable communication against one process that holds the data of all ranks; run over
// threads, mpi and nccl.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "catena/autograd/variable.h"
#include "catena/comm/communicator.h"

namespace catena::parallel_suite {

// One communication, as a rank makes it and as a function of what all ranks have.
struct Communication {
  std::string name;
  Shape shape;  // of x, with -1 for a first axis of 2 * size()
  // What this rank gets; undefined if nothing.
  std::function<Variable(const Variable& x, Communicator& comm)> apply;
  // What every rank gets.
  std::function<Variables(const Variables& xs)> reference;
};
std::vector<Communication> communications();
inline std::ostream& operator<<(std::ostream& os, const Communication& one) {
  return os << one.name;
}

// Values, gradients and gradients of gradients, in float64 and float32, of x and of a strided and
// an empty one. All ranks call it.
void check_gradients(Communicator& comm, const Communication& one);
// Values and gradients in 16 bits, values in integers and bool, which are never recorded.
void check_dtypes(Communicator& comm, const Communication& one);
// Nothing is recorded under NoBackprop and on volatile variables.
void check_unrecorded(Communicator& comm, const Communication& one);

}  // namespace catena::parallel_suite
