// State of ranks that are threads of one process: meeting points, messages and the first failure.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "catena/comm/transport.h"

namespace catena::comm {

class StatusBoard;

// All ranks of one run_threads. One mutex and one condition variable serve all of its teams: a
// failure anywhere wakes everybody.
struct ThreadWorld {
  ThreadWorld(int size, double timeout, std::vector<int> hosts, bool generic);

  // Keeps the first failure only. culprit < 0: all ranks together.
  void fail(int culprit, const std::string& text);
  // The rank's function has returned; nobody may wait for it any more.
  void leave(int rank);
  std::string failure_for(int rank) const;  // needs the mutex
  bool has_failed();

  std::mutex mutex;
  std::condition_variable changed;
  bool failed = false;
  int culprit = -1;
  std::string failure;
  std::vector<char> gone;  // by world rank
  const double timeout;
  const std::vector<int> hosts;
  const bool generic;
  std::shared_ptr<StatusBoard> board;
};

// One communicator's ranks.
class Team {
 public:
  Team(std::shared_ptr<ThreadWorld> world, std::vector<int> world_ranks);

  int size() const { return static_cast<int>(world_ranks_.size()); }
  ThreadWorld& world() { return *world_; }
  int world_rank(int rank) const { return world_ranks_[size_t(rank)]; }

  // Waits for all ranks. `compare`, at the first meeting of a call: it becomes this rank's post,
  // and the last to come compares the posts and throws on all ranks if they differ. `then_read`:
  // the posts of all ranks stay valid and unchanged until this rank's next meeting.
  void meet(int me, const Call& call, bool compare, bool then_read);
  // The call that a rank brought to the current round.
  const Call& post(int rank) const { return *posts_[size_t(rank)]; }
  // What rank r offers to the others beside its call's arrays (set between two meetings).
  Array& scratch(int rank) { return scratch_[size_t(rank)]; }
  // After an exception in the time between two meetings.
  void stop_reading(int me);

  struct Message {
    const Call* call = nullptr;
    bool taken = false;
    bool done = false;
  };
  void offer(int me, Message& message);
  // Takes the messages that `calls` receive, as they come: checks that each fits and calls
  // copy(own call, sender's call).
  using Copy = std::function<void(const Call& own, const Call& sent)>;
  void take(int me, std::vector<const Call*> calls, const Copy& copy);
  // Returns when the message was copied.
  void wait_taken(int me, Message& message);

  // Rendezvous for the new team of a split: the lowest member makes it.
  std::shared_ptr<Team> form(int me, const std::vector<int>& members, int color);

 private:
  using Lock = std::unique_lock<std::mutex>;
  // Waits under the lock until ready(); needs(r): whether it is up to rank r.
  void wait(Lock& lock, int me, const Call& call, const std::function<bool()>& ready,
            const std::function<bool(int)>& needs);
  void take_one(Lock& lock, int me, const Call& call, const Copy& copy);
  [[noreturn]] void fail(Lock& lock, int me, int culprit, const std::string& text);
  void throw_failure(Lock& lock, int me);
  void compare_posts(Lock& lock, int me);
  void add_riders() const;
  struct Waiting {
    const Call* call = nullptr;
    const std::function<bool()>* ready = nullptr;
    const std::function<bool(int)>* needs = nullptr;
    bool blocked() const { return call && !(*ready)(); }
  };
  // Why `me`, which has just begun to wait, can never go on: it closes a circle of ranks that wait
  // for each other. "" if it does not. Ranks that are computing may still come.
  std::string deadlock(int me) const;
  std::deque<Message*>& channel(int source, int destination) {
    return channels_[size_t(source * size() + destination)];
  }

  std::shared_ptr<ThreadWorld> world_;
  std::vector<int> world_ranks_;
  std::vector<const Call*> posts_;
  std::vector<char> arrived_, reading_;
  std::vector<Array> scratch_;
  std::vector<Waiting> waiting_;
  std::vector<std::deque<Message*>> channels_;  // source * size + destination
  std::vector<std::shared_ptr<Team>> formed_;
  int arrivals_ = 0;
  int readers_ = 0;
  uint64_t round_ = 0;
};

}  // namespace catena::comm
