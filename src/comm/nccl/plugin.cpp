// Entry of the nccl plug-in: create_communicator("nccl").
#include "catena/core/plugin_entry.h"

#include <cstdlib>

#include "nccl_transport.h"
#include "watchdog.h"

namespace catena::comm::nccl {
namespace {

CommunicatorPtr make(const CommunicatorOptions& options) {
  CommunicatorPtr control = options.bootstrap;
  if (!control) {
    // Host data has no use for a GPU.
    CommunicatorOptions host = options;
    host.device = cpu(0);
    control = create_communicator(launch_environment().launched ? "mpi" : "threads", host);
  }
  const Device device = default_device(options, control->intra_rank());
  auto transport = NcclTransport::create(std::move(control), device, options);
  return make_communicator(std::move(transport), device, options);
}

}  // namespace
}  // namespace catena::comm::nccl

CATENA_PLUGIN(nccl) {
  // Communicators of one GPU (a split and its parent) are launched in the order of the program, or
  // their kernels may wait for each other for ever.
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
  catena::comm::register_communicator("nccl", catena::comm::nccl::make);
  catena::comm::nccl::install_wait_hook();
}
