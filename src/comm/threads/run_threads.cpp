// run_threads: a function as several ranks, each a thread of this process.
#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <thread>

#include "catena/core/device.h"
#include "catena/core/log.h"
#include "catena/core/trace.h"
#include "comm/communicator_state.h"
#include "status/status_board.h"
#include "threads_transport.h"

namespace catena::comm {

namespace {

// What became of one rank.
struct Outcome {
  std::exception_ptr error;
  bool first = false;  // it failed by itself, before any other did
};

class ThreadJob {
 public:
  ThreadJob(int n, const std::function<void(Communicator&)>& fn, const ThreadsOptions& options)
      : n_(n), fn_(fn), options_(options), outcomes_(size_t(n)) {
    comm_options_.timeout = options.timeout;
    world_ =
        std::make_shared<ThreadWorld>(n, timeout_of(comm_options_), options.hosts, options.generic);
    std::vector<int> ranks;
    for (int r = 0; r < n; ++r) ranks.push_back(r);
    team_ = std::make_shared<Team>(world_, std::move(ranks));
  }

  void run() {
    std::vector<std::thread> threads;
    for (int r = 0; r < n_; ++r) threads.emplace_back([this, r] { run_rank(r); });
    report_late_ranks();
    for (std::thread& thread : threads) thread.join();
    const Outcome* worst = nullptr;
    for (const Outcome& outcome : outcomes_)
      if (outcome.error && (!worst || (outcome.first && !worst->first))) worst = &outcome;
    if (worst) std::rethrow_exception(worst->error);
  }

 private:
  void run_rank(int rank) {
    tracing::name_thread("rank " + std::to_string(rank));
    Outcome& outcome = outcomes_[size_t(rank)];
    try {
      run_function(rank);
    } catch (const std::exception& error) {
      note_failure(rank, outcome, error.what());
    } catch (...) {
      note_failure(rank, outcome, "an exception that is not a std::exception");
    }
    world_->leave(rank);
  }

  void run_function(int rank) {
    const Device device = options_.devices.empty() ? cpu(rank) : options_.devices[size_t(rank)];
    require_device(device);
    DeviceScope scope(device);
    CommunicatorPtr comm = make_thread_rank(team_, rank, device, comm_options_);
    if (options_.implementation != "threads") {
      CommunicatorOptions chosen = comm_options_;
      chosen.device = device;
      chosen.bootstrap = comm;
      comm = create_communicator(options_.implementation, chosen);
    }
    fn_(*comm);
    comm->close();
  }

  // A thread cannot be ended from outside, and it may use variables of the caller: no exception can
  // leave before it has returned. What failed is said before that.
  void report_late_ranks() const {
    constexpr double kPatience = 10;
    const auto late = [this] {
      std::vector<int> ranks;
      for (int r = 0; r < n_; ++r)
        if (!world_->gone[size_t(r)]) ranks.push_back(r);
      return ranks;
    };
    std::unique_lock lock(world_->mutex);
    world_->changed.wait(lock, [&] { return world_->failed || late().empty(); });
    const double patience = std::min(kPatience, world_->timeout);
    if (world_->changed.wait_for(lock, std::chrono::duration<double>(patience),
                                 [&] { return late().empty(); }))
      return;
    logging::error("run_threads: ", world_->failure_for(-1), "; ", patience, " s later it still ",
                   "waits for ", list_ranks(late()),
                   " to return, and the exception with it: a thread cannot be ended from outside; "
                   "look for what it waits for in the function that it runs");
  }

  void note_failure(int rank, Outcome& outcome, const char* text) {
    outcome.error = std::current_exception();
    outcome.first = !world_->has_failed();
    // The first to fail is blamed by those who read the board only.
    if (outcome.first) world_->board->slot(rank).fail(text);
    world_->fail(rank, text);
  }

  int n_;
  const std::function<void(Communicator&)>& fn_;
  const ThreadsOptions& options_;
  CommunicatorOptions comm_options_;
  std::vector<Outcome> outcomes_;
  std::shared_ptr<ThreadWorld> world_;
  std::shared_ptr<Team> team_;
};

}  // namespace

void run_threads(int n, const std::function<void(Communicator&)>& fn,
                 const ThreadsOptions& options) {
  CATENA_CHECK(ValueError, n >= 1, "run_threads: ", n, " ranks asked for, expected at least 1");
  CATENA_CHECK(ValueError, options.devices.empty() || static_cast<int>(options.devices.size()) == n,
               "run_threads: ", options.devices.size(), " devices for ", n, " ranks");
  CATENA_CHECK(ValueError, options.hosts.empty() || static_cast<int>(options.hosts.size()) == n,
               "run_threads: ", options.hosts.size(), " hosts for ", n, " ranks");
  ThreadJob(n, fn, options).run();
}

}  // namespace catena::comm
