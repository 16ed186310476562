// The cases that every communicator must pass; run over threads, mpi and nccl.
#pragma once

#include <functional>
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
std::vector<Case> collective_cases();  // and message_cases
std::vector<Case> message_cases();
std::vector<Case> object_cases();
// Ranks that disagree: each ends in a CommError on all ranks, the communicator is dead after it.
struct MismatchCase {
  const char* name;
  // The last rank does something else.
  void (*body)(Communicator& comm, bool odd);
  std::vector<std::string> words;  // that the error must hold
};
std::vector<MismatchCase> mismatch_cases();
// Those of calls that NCCL makes itself; host objects are its control communicator's.
std::vector<MismatchCase> device_mismatch_cases();
// Runs one and checks what happened on this rank.
void expect_mismatch(Communicator& comm, const MismatchCase& one);

// Steps that ranks capture differently: refused at the end of the capture on all ranks.
struct CaptureCase {
  const char* name;
  // What is captured; the last rank is odd. x, float32[8], is there before.
  void (*step)(Communicator& comm, const Array& x, bool odd);
  std::vector<std::string> words;  // that the error must hold when the capture begins with call #5
};
std::vector<CaptureCase> capture_cases();
// Reduces x in place on the side stream, as data-parallel training does with its buckets.
void bucket(Communicator& comm, const Array& x, const comm::Reduce& how);
// Makes one call, then captures the step; throws the CommError that refuses it.
void capture_differently(Communicator& comm, const CaptureCase& one);

// Element i of rank r's input.
inline double value(int rank, int64_t i) { return double((rank * 3 + i) % 5); }
// A contiguous array of value(rank, i) on the communicator's device.
Array make(Communicator& comm, const Shape& shape, Dtype dtype, int rank);
std::vector<double> to_doubles(const Array& a);

inline bool holds(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}
// Texts of the CommErrors that the ranks saw, "" of those that saw none; what run_threads throws is
// swallowed.
std::vector<std::string> texts_of(int ranks, const std::function<void(Communicator&)>& body,
                                  double timeout = 30);

}  // namespace catena::comm_suite
