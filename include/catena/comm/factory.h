// Creation of communicators: from a launcher's processes, or from threads of this process.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "catena/comm/communicator.h"

namespace catena::comm {

// Settings of create_communicator; every field may be left out.
struct CommunicatorOptions {
  // Default: CATENA_DEVICE when set ("cuda" gets the host-local rank as index); else the GPU with
  // the number of the rank on its host, modulo their number; without GPUs cpu:0.
  std::optional<Device> device = {};
  // Longest wait for another rank, in seconds; default CATENA_TIMEOUT, else 600.
  std::optional<double> timeout = {};
  // Longest wait for all ranks to join; default CATENA_START_TIMEOUT, else 120.
  std::optional<double> start_timeout = {};
  // nccl: the communicator over which ranks find each other and send host data; default mpi.
  CommunicatorPtr bootstrap = {};
};

// The communicator of all ranks of the job.
//
// clang-format off
// name          implementation (ChainerMN's names are accepted)
// auto          nccl if the job has several ranks with GPUs (DeviceError where two share one), else
//               mpi; one rank: threads
// nccl          device arrays by NCCL, bootstrap and host data by MPI.  Also: pure_nccl,
//               hierarchical, two_dimensional, single_node (refused on several hosts)
// mpi           everything through host memory by MPI.  Also: flat, non_cuda_aware; naive (CPU only)
// threads       this process alone: one rank.  run_threads makes several.  Also: dummy
// clang-format on
//
// A program that no launcher started gets a communicator of one rank that works. Throws CommError
// when the plug-in or the launcher is missing and when fewer ranks came than CATENA_SIZE says.
// Ranks that do not come within the start timeout cannot be waited for inside MPI: the process then
// says who is missing and ends with exit code 1, without exit handlers. All ranks must create their
// communicators in the same order.
CommunicatorPtr create_communicator(const std::string& name = "auto",
                                    const CommunicatorOptions& options = {});

// What a launcher passed to this process (catena-run; Open MPI, Slurm, PMI, MPICH, MVAPICH
// variables).
struct LaunchEnvironment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  bool launched = false;
  std::string source;  // the variable that gave the size, "" when not launched
};
// Read from the environment at each call.
LaunchEnvironment launch_environment();

// Settings of run_threads.
struct ThreadsOptions {
  // Of rank r: devices[r]; default cpu:r.
  std::vector<Device> devices = {};
  std::optional<double> timeout = {};
  // Tests: pretend that rank r is on host hosts[r]; default all on one.
  std::vector<int> hosts = {};
  // Moves data by array operations as between GPUs, also on the CPU.
  bool generic = false;
  // "threads", or "nccl" to give each rank an NCCL communicator for its GPU.
  std::string implementation = "threads";
};

// Runs fn in n threads, one rank each, with the rank's device as the thread's current device, and
// waits for all. When ranks throw, the others are ended in their next call of the communicator, and
// the exception of the first that failed is rethrown once all have returned. A rank that does not
// return is reported after 10 s (the timeout, if that is shorter), with the text of that exception,
// and waited for.
void run_threads(int n, const std::function<void(Communicator&)>& fn,
                 const ThreadsOptions& options = {});

}  // namespace catena::comm

namespace catena {
using comm::create_communicator;
}  // namespace catena
