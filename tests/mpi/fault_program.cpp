// Started by faults_test under mpirun: rank 1 misbehaves as the first argument says.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "catena/array/creation.h"
#include "catena/comm/factory.h"

using namespace catena;
using catena::comm::Fault;

namespace {

int run(const std::string& fault) {
  const CommunicatorPtr comm = create_communicator("mpi");
  const Array x = zeros({4}, {Dtype::kFloat32, comm->device()});
  comm->all_reduce(x);
  if (comm->rank() == 1) {
    if (fault == "exit") comm->inject({.kind = Fault::Kind::kExit, .at_call = 2, .seconds = 3});
    if (fault == "kill") comm->inject({.kind = Fault::Kind::kKill, .at_call = 2});
    if (fault == "hang") comm->inject({.kind = Fault::Kind::kDelay, .at_call = 2, .seconds = 30});
    if (fault == "throw") throw std::runtime_error("rank 1 has no disk");
    if (fault == "abort") comm->abort("loss is NaN");
  }
  comm->all_reduce(x);
  comm->close();
  if (comm->rank() == 0) std::puts("all went well");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string fault = argc > 1 ? argv[1] : "";
  if (fault == "uncaught") {
    run("throw");
    return 0;
  }
  try {
    return run(fault);
  } catch (const std::exception& error) {
    std::printf("seen: %s\n", error.what());
    std::fflush(stdout);
    return 7;
  }
}
