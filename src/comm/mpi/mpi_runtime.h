// MPI itself: start, errors as exceptions, end.
#pragma once

#include <mpi.h>

#include <mutex>

#include "catena/comm/transport.h"
#include "comm/diagnosis/process_watchdog.h"
#include "status/process_board.h"

namespace catena::comm::mpi {

// Throws CommError with MPI's own text.
void check(int code, const char* call);
#define CATENA_MPI(function, ...) ::catena::comm::mpi::check(function(__VA_ARGS__), #function)

// Starts MPI (unless the program has done so) with errors returned, not fatal, and checks that as
// many ranks came as the launcher was asked for. MPI is ended at exit if it was started here.
void start(const CommunicatorOptions& options);
// MPI was ended; nothing of it may be called.
bool ended();

// MPI is started for one thread at a time; every call holds this. Meanwhile the status board says
// that the rank is inside the library: a call that does not return ends the rank, see
// watch_process.
class Lock {
 public:
  Lock();
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::lock_guard<std::mutex> lock_;
  StatusSlot slot_;
};

}  // namespace catena::comm::mpi
