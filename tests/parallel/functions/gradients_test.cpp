// Differentiable communication over threads: every function against one process.
#include <gtest/gtest.h>

#include "catena/comm/factory.h"
#include "catena/testing_markers.h"
#include "parallel/suite_functions.h"

namespace catena {
namespace {

using parallel_suite::Communication;
using Check = void (*)(Communicator&, const Communication&);

class CommunicationFunctions : public ::testing::TestWithParam<Communication> {
 protected:
  void run(Check check) {
    for (const int ranks : {1, 2, 3, 4})
      comm::run_threads(ranks, [&](Communicator& comm) { check(comm, GetParam()); },
                        {.timeout = 30});
  }
};

TEST_P(CommunicationFunctions, HaveTheGradientsOfOneProcess) {
  run(parallel_suite::check_gradients);
}
TEST_P(CommunicationFunctions, TakeAllDtypes) { run(parallel_suite::check_dtypes); }
TEST_P(CommunicationFunctions, RecordNothingWhereNothingIsToBe) {
  run(parallel_suite::check_unrecorded);
}
// Ranks that share a GPU.
TEST_P(CommunicationFunctions, RunOnAGpu) {
  CATENA_NEEDS_GPU();
  comm::run_threads(2,
                    [&](Communicator& comm) {
                      parallel_suite::check_gradients(comm, GetParam());
                      parallel_suite::check_dtypes(comm, GetParam());
                    },
                    {.devices = {cuda_device(0), cuda_device(0)}, .timeout = 60});
}

INSTANTIATE_TEST_SUITE_P(All, CommunicationFunctions,
                         ::testing::ValuesIn(parallel_suite::communications()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace catena
