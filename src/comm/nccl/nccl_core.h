// An NCCL communicator that cannot hang the host: watched, and aborted from another thread.
//
// The communicator is a blocking one, although that lets a call wait inside NCCL for other ranks: a
// non-blocking one starts a thread for every collective, which cost 43 us a call (see
// docs/decisions.md). What only returns when all ranks have come runs in a separate thread under
// a deadline; a rank that waits inside a collective is got out by the watchdog.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "nccl_calls.h"

namespace catena::comm::nccl {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class CopyCollectives;
class PeerCopies;
class PeerExchange;
class TwoShotSums;

// Everything but construction is done under `mutex`, unless said otherwise.
class Core {
 public:
  Core(int device, double timeout) : device_(device), timeout_(timeout) {}
  ~Core();
  Core(const Core&) = delete;

  std::mutex mutex;
  std::atomic<bool> polled{false};  // the watchdog has the mutex, or tries to have it
  ncclComm_t comm = nullptr;
  std::shared_ptr<PeerCopies> copies;       // null: NCCL moves all messages
  std::shared_ptr<PeerExchange> exchange;   // null: NCCL makes small collectives too
  std::shared_ptr<TwoShotSums> two_shot;    // null: NCCL makes all larger sums
  std::shared_ptr<CopyCollectives> copied;  // null: NCCL makes large scattered sums and gathers
  int device() const { return device_; }
  double timeout() const { return timeout_; }
  void set_owner(const Communicator* owner) { owner_ = owner; }
  // What reports of failures end with: NCCL's version, and the ways that calls go. Once.
  void describe(std::string about) { about_ = std::move(about); }

  // Whether this thread made the rank's last call. Without the mutex.
  bool called_by_this_thread() const {
    return caller_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

  // Throws CommError unless the call succeeded; after an error that NCCL calls fatal the
  // communicator is aborted.
  void finish(ncclResult_t code, const char* call) {
    if (code != ncclSuccess) [[unlikely]]
      give_up(code, call);
  }
  // Runs a call that waits for other ranks in a separate thread and waits for it. Throws
  // CommError after an error, the deadline or when other ranks' records say that it cannot end; the
  // communicator is then aborted. `call` gets a place for the communicator that it makes, if any.
  ncclComm_t run_collectively(const char* name, double timeout,
                              std::function<ncclResult_t(ncclComm_t*)> call);

  // Work was queued on the stream and is to be watched; ignored while the stream records a graph.
  // `call` is the number of a call of all ranks, 0 for messages and launches of graphs. Cheap: an
  // event is recorded at most every 100 us, and flush() marks what came later.
  void mark(const Stream& stream, uint64_t call);
  // Before the host waits: marks what mark() left out.
  void flush();
  // Waits for all that was marked.
  void drain();

  // For the watchdog: fails when the work that was marked cannot complete.
  void poll();
  // The same while the rank's thread has been inside NCCL for `waited` seconds.
  void poll_while_in_nccl(double waited);

  // What keeps the communicator from going on: other ranks, this rank's GPU, or an error of this
  // rank, which its communicator has dealt with.
  enum class Cause { kPeers, kThisGpu, kThisRank };
  // Why the communicator cannot go on. An empty text means that there is no problem.
  struct Problem {
    std::string text;
    int culprit = -1;  // the rank of the job at fault; -1: no rank in particular, or this one
    Cause cause = Cause::kPeers;
  };
  // Gives up: the text is what every later call throws.
  void fail(const Problem& problem);
  // Without the mutex.
  void throw_if_failed() const;
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  std::string failure() const;
  // After a host wait: calls that were not compared with those of all other ranks must agree.
  void verify();
  // With all work done and no graph that holds calls.
  void close();
  // Aborts running GPU work immediately. Destroys the communicator once no graph holds its calls,
  // and waits only briefly for that.
  void abort();

 private:
  // An event in the queue of a stream.
  struct ProgressMarker {
    cudaEvent_t event = nullptr;
    bool pending = false;
    uint64_t call = 0;   // the last of the calls before it; 0: there is other work among them
    uint64_t first = 0;  // the first of them since the marker before
  };
  // How far the GPU is in one stream. The first marker stays until the GPU has passed it: it shows
  // which call is waited for. The last one moves along with what is queued.
  struct StreamProgress {
    Stream stream;  // kept alive, so that its events may be recorded later
    ProgressMarker first, last;
    bool dirty = false;  // work came after the last marker
    Clock::time_point recorded;
    uint64_t number = 0;     // of the last marker; 0: never used
    uint64_t call = 0;       // the last that was queued
    uint64_t unmarked = 0;   // the first since the last marker; 0: none
    bool only_calls = true;  // no other work was queued since the last marker
    uint64_t seen = 0;       // number at the last poll
    WaitClock since;
    double next_poll = 0;
  };
  StreamProgress* find_stream(const Stream& stream);
  StreamProgress& make_stream(const Stream& stream);
  bool record(StreamProgress& progress);
  // Forgets the markers that the GPU has passed; cudaErrorNotReady when some are left.
  static cudaError_t drop_passed(StreamProgress& progress);
  void poll_stream(StreamProgress& progress);
  [[noreturn]] void give_up(ncclResult_t code, const char* call);
  // What the other ranks' records say about an error of NCCL; its own text if they say nothing.
  Problem explain(const std::string& of_nccl) const;
  Problem problem(double waited, double timeout, const char* target, double& next_poll,
                  uint64_t first_call = 0, uint64_t call = 0) const;

  const int device_;
  const double timeout_;
  const Communicator* owner_ = nullptr;
  std::string about_;
  std::array<StreamProgress, 16> streams_;
  uint64_t marks_ = 0;
  double next_busy_poll_ = 0;           // of the watchdog
  std::atomic<bool> capturing_{false};  // the watchdog reads it too
  std::atomic<bool> failed_{false};
  std::atomic<std::thread::id> caller_{};
  mutable std::mutex failure_mutex_;
  Problem failure_;
};

}  // namespace catena::comm::nccl
