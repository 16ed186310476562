// The cases that every communicator must pass; run over threads, mpi and nccl.
#pragma once

#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/comm/communicator.h"

namespace catena::comm_suite {

struct Case {
  const char* name;
  void (*body)(Communicator& comm);
};
// Inputs are small integers, so that every implementation must give exactly the expected bits.
std::vector<Case> collective_cases();
std::vector<Case> object_cases();
// Ranks that disagree: each ends in a CommError on all ranks, the communicator is dead after it.
struct MismatchCase {
  const char* name;
  // The last rank does something else.
  void (*body)(Communicator& comm, bool odd);
  std::vector<std::string> words;  // that the error must hold
};
std::vector<MismatchCase> mismatch_cases();
// Runs one and checks what happened on this rank.
void expect_mismatch(Communicator& comm, const MismatchCase& one);

// Element i of rank r's input.
inline double value(int rank, int64_t i) { return double((rank * 3 + i) % 5); }
// A contiguous array of value(rank, i) on the communicator's device.
Array make(Communicator& comm, const Shape& shape, Dtype dtype, int rank);
std::vector<double> to_doubles(const Array& a);

}  // namespace catena::comm_suite
