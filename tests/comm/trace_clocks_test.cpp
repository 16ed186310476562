#include "catena/comm/trace_clocks.h"

#include <gtest/gtest.h>

#include <vector>

#include "catena/comm/factory.h"
#include "catena/core/trace.h"
#include "temp_folder.h"

namespace catena::comm {
namespace {

// Rank 0's clock is 1000 ahead; each way of the shortest trip took 5.
TEST(TraceClocks, TheShortestTripCounts) {
  const std::vector<RoundTrip> trips = {{0, 1090, 100}, {200, 1205, 210}, {300, 1301, 360}};
  const ClockOffset clock = clock_offset(trips);
  EXPECT_EQ(clock.offset, 1000);
  EXPECT_EQ(clock.error, 5);
}

// Whatever the ways took, the truth lies within the error.
TEST(TraceClocks, TheErrorBoundsTheOffset) {
  constexpr int64_t kTruth = -123456;
  for (const int64_t there : {0, 1, 17, 400}) {
    for (const int64_t back : {0, 3, 250}) {
      const int64_t said = 50 + there + kTruth;
      const std::vector<RoundTrip> trip = {{50, said, 50 + there + back}};
      const ClockOffset clock = clock_offset(trip);
      EXPECT_LE(std::abs(clock.offset - kTruth), clock.error + 1) << there << ", " << back;
    }
  }
}

// Threads share a clock, which the messages find.
TEST(TraceClocks, RanksAskRank0) {
  const TempFolder folder;
  tracing::start(folder / "trace.json");
  run_threads(3, [](Communicator& comm) { align_traces(comm); });
  tracing::stop();
  tracing::set_place(0, 1);
  std::string trace;  // of the thread that came last
  for (const char* rank : {"0", "1", "2"}) trace += read_file(folder / "trace.json.rank" + rank);
  const auto number = [&](const std::string& name) {
    const size_t at = trace.find("\"" + name + "\":");
    return at == std::string::npos ? -1e18 : std::stod(trace.substr(at + name.size() + 3));
  };
  EXPECT_EQ(number("ranks"), 3);
  EXPECT_LE(std::abs(number("clock_offset_ns")), number("clock_error_ns") + 1);
}

}  // namespace
}  // namespace catena::comm
