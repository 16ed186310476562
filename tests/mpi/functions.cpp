// Differentiable communication over processes, in the job of suite_main.cpp.
#include <gtest/gtest.h>

#include "catena/array/math.h"
#include "catena/comm/factory.h"
#include "catena/core/graph.h"
#include "catena/functions/math.h"
#include "catena/parallel/functions.h"
#include "parallel/suite_functions.h"

namespace catena {
namespace {

namespace F = catena::functions;

TEST(ProcessFunctions, HaveTheGradientsOfOneProcess) {
  const CommunicatorPtr comm = create_communicator();
  for (const auto& one : parallel_suite::communications()) {
    parallel_suite::check_gradients(*comm, one);
    parallel_suite::check_dtypes(*comm, one);
    parallel_suite::check_unrecorded(*comm, one);
  }
}

// With known types a step has nothing for the host to do.
TEST(ProcessFunctions, AreCapturedWithKnownTypes) {
  const CommunicatorPtr comm = create_communicator();
  if (comm->name() != "nccl") GTEST_SKIP() << "SKIPPED over " << comm->name() << ": no graphs";
  if (comm->rank() < 2) {
    const parallel::ArrayType type{{64, 3}, Dtype::kFloat32};
    const Array x = full(type.shape, 0.5f, {type.dtype, comm->device()}), gx = zeros_like(x);
    const auto step = [&] {
      if (comm->rank() == 0) {
        const Variable v(x);
        F::send(v * v, *comm, 1, parallel::Header::kNone).backward();
        gx.assign(v.grad());
        x.assign(x + 1.f);
      } else {
        const Variable h = F::recv(*comm, 0, type);
        F::sum(h * h).backward();
        gx.assign(h.data());
      }
    };
    step();  // compiles the kernels
    x.fill(0.5f);
    cuda::Graph graph = cuda::Graph::capture(comm->device(), step);
    for (int replay = 0; replay < 3; ++replay) {
      graph.launch();
      const float now = 0.5f + float(replay);
      const float want = comm->rank() == 0 ? 4 * now * now * now : now * now;
      EXPECT_EQ(gx.to_vector<float>(), std::vector<float>(size_t(gx.size()), want)) << replay;
    }
  }
  comm->barrier();
}

}  // namespace
}  // namespace catena
