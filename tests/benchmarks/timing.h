// What the benchmark programs share: timing on the host and on a device, and the table they print.
//
// A figure is the median over several runs of several calls each. Every row of a table holds what
// was measured, a limit measured in the same run (a copy, an empty launch, the bare matrix
// products), their ratio, and the goal where there is one. Tables are Markdown: docs/benchmarks.md
// takes them as they are, and peers.py reads them to print other libraries' figures beside them.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catena/core/stream.h"

namespace bench {

struct Sampling {
  int warm_up = 3;  // calls before the first run
  int runs = 7;
  int calls = 10;  // in one run
};

// Seconds of one call.
struct Times {
  double median = 0;
  double minimum = 0;
};
Times summarize(std::vector<double> seconds_of_a_call);

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Host time until the calls have returned; the device is idle at the start of each run. With few
// calls this is the cost of queueing them, with many the rate the device sustains if that is lower.
template <class Call>
Times host_time(const Sampling& s, catena::Device device, Call&& call) {
  for (int i = 0; i < s.warm_up; ++i) call();
  std::vector<double> seconds;
  for (int run = 0; run < s.runs; ++run) {
    catena::synchronize(device);
    const double start = now();
    for (int i = 0; i < s.calls; ++i) call();
    seconds.push_back((now() - start) / s.calls);
  }
  catena::synchronize(device);
  return summarize(std::move(seconds));
}

// Host time until the work of the calls is done.
template <class Call>
Times wall_time(const Sampling& s, catena::Device device, Call&& call) {
  for (int i = 0; i < s.warm_up; ++i) call();
  std::vector<double> seconds;
  for (int run = 0; run < s.runs; ++run) {
    catena::synchronize(device);
    const double start = now();
    for (int i = 0; i < s.calls; ++i) call();
    catena::synchronize(device);
    seconds.push_back((now() - start) / s.calls);
  }
  return summarize(std::move(seconds));
}

// Seconds of a call on the CPU, where other programs run as well: the shortest of runs of 2 ms and
// more, in a twentieth of a second. That is how function_peers.py times PyTorch. With fewer calls
// the threads of a team may still share a core, and a core may still raise its clock.
template <class Call>
double shortest_time(const Call& call) {
  const auto timed = [&](int calls) {
    const double start = now();
    for (int i = 0; i < calls; ++i) call();
    return (now() - start) / calls;
  };
  timed(2);
  const int calls = std::max(1, int(2e-3 / timed(1)));
  double best = timed(calls);
  const double end = now() + 0.05;
  for (int runs = 1; runs < 3 || now() < end; ++runs) best = std::min(best, timed(calls));
  return best;
}

// Time between two events on the current stream of a GPU; on the CPU wall_time.
template <class Call>
Times device_time(const Sampling& s, catena::Device device, Call&& call) {
  if (device.is_cpu()) return wall_time(s, device, std::forward<Call>(call));
  const catena::Stream stream = catena::current_stream(device);
  const catena::Event start = catena::Event::create(device, true),
                      stop = catena::Event::create(device, true);
  for (int i = 0; i < s.warm_up; ++i) call();
  std::vector<double> seconds;
  for (int run = 0; run < s.runs; ++run) {
    start.record(stream);
    for (int i = 0; i < s.calls; ++i) call();
    stop.record(stream);
    stop.synchronize();
    seconds.push_back(catena::Event::elapsed_ms(start, stop) * 1e-3 / s.calls);
  }
  return summarize(std::move(seconds));
}

enum class Better : bool { kLower, kHigher };  // times; rates

struct Row {
  std::string name, precision;
  double value = 0;
  std::string unit;                  // "us", "TB/s": lower is better for times, higher for rates
  std::optional<double> limit = {};  // in the same unit
  std::string limit_name = {};       // "device copy"
  std::optional<double> goal = {};
  std::optional<double> goal_ratio = {};  // of value to limit, instead of goal
};

// Prints its rows as they come.
class Table {
 public:
  Table(const std::string& title, const std::string& machine);
  void row(const Row& row);
};

std::string format(double value);  // three or four significant digits
Better better_of(const std::string& unit);

// Command line of every program: --quick (small cases, few runs), --help, and what the program
// names itself. Unknown options end the program with status 2.
// Of a program. A flag that ends in '=' takes a value: "--steps=10".
class Arguments {
 public:
  Arguments(int argc, char** argv, const std::string& description,
            std::vector<std::pair<std::string, std::string>> flags = {});
  bool quick() const { return has("--quick"); }
  bool has(const std::string& flag) const {
    return std::find(given_.begin(), given_.end(), flag) != given_.end();
  }
  // Of "--steps=": what follows it, the last time that it is given; otherwise `otherwise`.
  std::string value(const std::string& flag, const std::string& otherwise = "") const {
    std::string result = otherwise;
    for (const std::string& one : given_)
      if (one.rfind(flag, 0) == 0) result = one.substr(flag.size());
    return result;
  }

 private:
  std::vector<std::string> given_;
};

// Runs a program's body; an exception becomes one line and status 1.
int run(int (*body)(int, char**), int argc, char** argv);

// False, with a loud line, where there is no usable GPU.
bool have_gpu(const char* program);

}  // namespace bench
