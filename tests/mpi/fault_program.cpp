// Started by faults_test under mpirun or catena-run: rank 1 misbehaves as the first argument says.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "catena/array/creation.h"
#include "catena/comm/factory.h"
#include "catena/comm/run_main.h"

using namespace catena;
using catena::comm::Fault;

namespace {

// Before the ranks have met.
void misbehave_early(const std::string& fault) {
  if (comm::launch_environment().rank != 1) return;
  if (fault == "late") std::this_thread::sleep_for(std::chrono::seconds(30));
  if (fault == "absent") std::exit(0);
}

int run(const std::string& fault) {
  misbehave_early(fault);
  const CommunicatorPtr comm = create_communicator("mpi");
  const Array x = zeros({4}, {Dtype::kFloat32, comm->device()});
  comm->all_reduce(x);
  if (comm->rank() == 1) {
    if (fault == "exit") comm->inject({.kind = Fault::Kind::kExit, .at_call = 2, .seconds = 3});
    if (fault == "kill") comm->inject({.kind = Fault::Kind::kKill, .at_call = 2});
    if (fault == "hang") comm->inject({.kind = Fault::Kind::kDelay, .at_call = 2, .seconds = 30});
    if (fault == "throw") throw std::runtime_error("rank 1 has no disk");
    if (fault == "abort") comm->abort("loss is NaN");
    if (fault == "leave") _exit(0);
    if (fault == "return") return 0;
    if (fault == "max") comm->all_reduce(x, comm::Reduction::kMax);
  }
  if (fault == "types" && comm->rank() == 1)
    comm->broadcast_object(1.0f);
  else if (fault == "types")
    comm->broadcast_object(5);
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
    report_failure(error);
    return 7;
  }
}
