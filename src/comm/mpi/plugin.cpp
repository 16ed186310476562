// Entry of the mpi plug-in: create_communicator("mpi").
#include "catena/core/plugin_entry.h"
#include "comm/diagnosis/startup_watchdog.h"
#include "mpi_transport.h"

namespace catena::comm::mpi {
namespace {

CommunicatorPtr make(const CommunicatorOptions& options) {
  std::unique_ptr<MpiTransport> transport;
  const double timeout = start_timeout_of(options);
  const StartupWatchdog watchdog(timeout);
  MPI_Comm world;
  {
    const Lock lock;
    start(options);
    CATENA_MPI(MPI_Comm_dup, MPI_COMM_WORLD, &world);
  }
  transport = std::make_unique<MpiTransport>(world, timeout_of(options));
  transport->meet("create_communicator", timeout);
  const int local_rank = make_topology(transport->rank(), transport->hosts()).intra_rank;
  const Device device = default_device(options, local_rank);
  require_device(device);
  CommunicatorPtr comm = make_communicator(std::move(transport), device, options);
  watch_process(timeout_of(options));
  return comm;
}

}  // namespace
}  // namespace catena::comm::mpi

CATENA_PLUGIN(mpi) { catena::comm::register_communicator("mpi", catena::comm::mpi::make); }
