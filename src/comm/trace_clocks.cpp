#include "catena/comm/trace_clocks.h"

#include <algorithm>
#include <vector>

#include "catena/array/creation.h"
#include "catena/comm/internals.h"
#include "catena/core/trace.h"

namespace catena::comm {
namespace {

// The first trips set up the connection; of the others one is likely to meet nobody's pause.
constexpr int kRoundTrips = 12;

// GPUs need not wait for each other.
Device device_of_times(const Communicator& comm) {
  return comm.device().is_cpu() ? comm.device() : cpu(0);
}

int64_t receive_time(Communicator& comm, int from) {
  const Array time = zeros({1}, {Dtype::kInt64, device_of_times(comm)});
  comm.recv(time, from);
  return time.item<int64_t>();
}

void send_time(Communicator& comm, int to) {
  comm.send(array<int64_t>({tracing::now()}, device_of_times(comm)), to);
}

void answer_ranks(Communicator& comm) {
  for (int rank = 1; rank < comm.size(); ++rank) {
    for (int trip = 0; trip < kRoundTrips; ++trip) {
      receive_time(comm, rank);
      send_time(comm, rank);
    }
  }
}

ClockOffset ask_rank_0(Communicator& comm) {
  std::vector<RoundTrip> trips;
  for (int trip = 0; trip < kRoundTrips; ++trip) {
    const int64_t sent = tracing::now();
    send_time(comm, 0);
    const int64_t said = receive_time(comm, 0);
    trips.push_back({sent, said, tracing::now()});
  }
  return clock_offset(trips);
}

}  // namespace

ClockOffset clock_offset(std::span<const RoundTrip> trips) {
  const auto length = [](const RoundTrip& trip) { return trip.answered - trip.sent; };
  const RoundTrip& best = *std::min_element(
      trips.begin(), trips.end(),
      [&](const RoundTrip& a, const RoundTrip& b) { return length(a) < length(b); });
  const int64_t half = length(best) / 2;
  return {best.said - (best.sent + half), half};
}

void align_traces(Communicator& comm) {
  const tracing::Range range("align traces");
  const PurposeScope purpose(&comm, "align traces");
  tracing::set_place(comm.rank(), comm.size());
  ClockOffset clock{0, 0};
  if (comm.rank() == 0)
    answer_ranks(comm);
  else
    clock = ask_rank_0(comm);
  tracing::set_clock(clock.offset, clock.error);
}

}  // namespace catena::comm
