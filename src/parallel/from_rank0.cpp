#include "catena/parallel/from_rank0.h"

#include <exception>
#include <string>

namespace catena::parallel {
namespace {

NamedArrays read_for_all(Communicator& comm, const std::function<NamedArrays()>& read) {
  NamedArrays arrays;
  std::string problem;
  std::exception_ptr error;
  if (comm.rank() == 0) {
    try {
      arrays = read();
    } catch (const std::exception& e) {
      problem = e.what();
      error = std::current_exception();
    }
  }
  // Of the error, too, all ranks hear before any of them leaves.
  const bool failed = comm.broadcast_object(error != nullptr ? 1 : 0) != 0;
  if (!failed) return comm.broadcast_object(arrays);
  problem = comm.broadcast_bytes(problem, 0);
  if (error) std::rethrow_exception(error);
  fail<IoError>("rank 0: ", problem);
}

}  // namespace

std::function<NamedArrays(const std::function<NamedArrays()>&)> from_rank_0(Communicator* comm) {
  if (comm == nullptr) return [](const std::function<NamedArrays()>& read) { return read(); };
  return [comm](const std::function<NamedArrays()>& read) { return read_for_all(*comm, read); };
}

}  // namespace catena::parallel
