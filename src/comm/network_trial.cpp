// The collectives by which `catena-run --check hostA,hostB` tries a network: every rank of a small
// job calls this in the libcatena that it has opened.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "catena/array/creation.h"
#include "catena/comm/factory.h"
#include "catena/comm/run_main.h"
#include "installation.h"

static_assert(std::is_same_v<decltype(&catena_check_network), catena::comm::CheckNetwork>);

namespace catena::comm {
namespace {

constexpr int kSmallCalls = 20;
constexpr int64_t kSmallest = 1 << 14, kLargest = 1 << 22;  // elements of the long arrays

// One all-reduce; its seconds. Throws CommError where the sum is wrong.
double reduce_once(Communicator& comm, int64_t elements) {
  const Array x = ones({elements}, {Dtype::kFloat32, comm.device()});
  comm.barrier();
  const auto start = std::chrono::steady_clock::now();
  const Array sum = comm.all_reduce(x);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const std::vector<float> values = sum.to_vector<float>();
  const bool right = std::all_of(values.begin(), values.end(),
                                 [&](float v) { return v == static_cast<float>(comm.size()); });
  CATENA_CHECK(CommError, right, "all_reduce of ones over ", comm.size(),
               " ranks gave another sum than ", comm.size());
  return seconds.count();
}

double small_call(Communicator& comm) {
  std::vector<double> seconds;
  for (int i = 0; i < kSmallCalls; ++i) seconds.push_back(reduce_once(comm, 1));
  std::nth_element(seconds.begin(), seconds.begin() + kSmallCalls / 2, seconds.end());
  return seconds[kSmallCalls / 2];
}

// catena-run SECONDS. Rank 0 prints "network-trial LATENCY BYTES SECONDS": of a small call, and of
// one with the longest arrays that fit the time given.
int try_network(int argc, char** argv) {
  const double budget = argc > 1 ? std::atof(argv[1]) : 1;
  const CommunicatorPtr comm = create_communicator("mpi", {.device = cpu(0)});
  const double latency = small_call(*comm);
  int64_t elements = kSmallest;
  double seconds = 0, used = 0;
  for (;; elements *= 4) {
    seconds = comm->broadcast_object(reduce_once(*comm, elements), 0);
    used += seconds;
    if (elements >= kLargest || used + 4 * seconds > budget) break;
  }
  if (comm->rank() == 0)
    std::printf("network-trial %g %lld %g\n", latency, static_cast<long long>(elements) * 4,
                seconds);
  return 0;
}

}  // namespace
}  // namespace catena::comm

int catena_check_network(int argc, char** argv) {
  return catena::run_main(argc, argv, catena::comm::try_network);
}
