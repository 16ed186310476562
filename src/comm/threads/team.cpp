#include "team.h"

#include <algorithm>
#include <optional>

#include "comm/diagnosis/deadlock.h"
#include "comm/diagnosis/peer_status.h"
#include "status/status_board.h"

namespace catena::comm {

ThreadWorld::ThreadWorld(int size, double seconds, std::vector<int> host_of_rank, bool use_arrays)
    : gone(size_t(size), 0),
      timeout(seconds),
      hosts(host_of_rank.empty() ? std::vector<int>(size_t(size), 0) : std::move(host_of_rank)),
      generic(use_arrays),
      board(std::make_shared<StatusBoard>(StatusBoard::create_private(size))) {}

void ThreadWorld::fail(int rank, const std::string& text) {
  std::lock_guard lock(mutex);
  if (failed) return;
  failed = true;
  culprit = rank;
  failure = text;
  changed.notify_all();
}

void ThreadWorld::leave(int rank) {
  std::lock_guard lock(mutex);
  gone[size_t(rank)] = 1;
  changed.notify_all();
}

std::string ThreadWorld::failure_for(int rank) const {
  if (culprit < 0 || culprit == rank) return failure;
  return message("rank ", culprit, " failed: ", failure);
}

bool ThreadWorld::has_failed() {
  std::lock_guard lock(mutex);
  return failed;
}

Team::Team(std::shared_ptr<ThreadWorld> world, std::vector<int> world_ranks)
    : world_(std::move(world)),
      world_ranks_(std::move(world_ranks)),
      posts_(world_ranks_.size()),
      arrived_(world_ranks_.size(), 0),
      reading_(world_ranks_.size(), 0),
      scratch_(world_ranks_.size()),
      waiting_(world_ranks_.size()),
      channels_(world_ranks_.size() * world_ranks_.size()),
      formed_(world_ranks_.size()) {}

void Team::throw_failure(Lock& lock, int me) {
  // Others may still be reading this rank's arrays, which die with the exception.
  while (readers_ > 0) world_->changed.wait(lock);
  throw CommError(world_->failure_for(world_rank(me)));
}

void Team::fail(Lock& lock, int me, int culprit, const std::string& text) {
  if (!world_->failed) {
    world_->failed = true;
    world_->culprit = culprit;
    world_->failure = text + describe_part(world_ranks_);
    world_->changed.notify_all();
  }
  throw_failure(lock, me);
  std::abort();  // not reached
}

std::string Team::deadlock(int me) const {
  const auto is_blocked = [&](int r) { return waiting_[size_t(r)].blocked(); };
  std::vector<std::vector<int>> waits(waiting_.size());
  const auto find_waits = [&](int r) {
    for (int other = 0; other < size(); ++other)
      if (is_blocked(other) && (*waiting_[size_t(r)].needs)(other))
        waits[size_t(r)].push_back(other);
  };
  find_waits(me);
  if (waits[size_t(me)].empty()) return {};
  for (int r = 0; r < size(); ++r)
    if (r != me && is_blocked(r)) find_waits(r);
  std::vector<std::optional<CallRecord>> calls(waiting_.size());
  std::vector<CallName> names(waiting_.size());
  for (const int r : stuck_ranks(waits)) {
    const Call& call = *waiting_[size_t(r)].call;
    calls[size_t(r)] = CallRecord{.sequence = call.sequence, .call = call};
    names[size_t(r)] = {call.describe(), call.purpose != nullptr};
  }
  return calls[size_t(me)] ? describe_deadlock(calls, names) : std::string();
}

void Team::wait(Lock& lock, int me, const Call& call, const std::function<bool()>& ready,
                const std::function<bool(int)>& needs) {
  if (ready()) return;
  WaitClock clock;
  waiting_[size_t(me)] = {&call, &ready, &needs};
  if (const std::string text = world_->failed ? std::string() : deadlock(me); !text.empty()) {
    waiting_[size_t(me)] = {};
    fail(lock, me, -1, text);
  }
  while (!ready()) {
    if (world_->failed) break;
    std::vector<int> missing;
    for (int r = 0; r < size(); ++r) {
      if (!needs(r)) continue;
      if (world_->gone[size_t(world_rank(r))])
        fail(lock, me, -1,
             message("rank ", r, " has returned from its function, while rank ", me,
                     " waits for it in ", call.describe()));
      missing.push_back(r);
    }
    if (clock.seconds() >= world_->timeout)
      fail(lock, me, -1,
           message("rank ", me, " waited ", world_->timeout, " s (CATENA_TIMEOUT) in ",
                   call.describe(), " for ", list_ranks(missing)));
    world_->changed.wait_for(
        lock, std::chrono::duration<double>(std::min(world_->timeout - clock.seconds(), 0.5)));
  }
  waiting_[size_t(me)] = {};
  if (!ready()) throw_failure(lock, me);
}

void Team::compare_posts(Lock& lock, int me) {
  const auto differs = [&](const Call* call) { return call->hash != posts_[0]->hash; };
  if (std::none_of(posts_.begin(), posts_.end(), differs)) return;
  std::vector<std::string> calls;
  for (const Call* call : posts_) calls.push_back("called " + call->describe());
  fail(lock, me, -1, describe_mismatch(calls, posts_[0]->sequence));
}

// Under the lock, while all ranks wait here.
void Team::add_riders() const {
  double sum = 0;
  bool any = false;
  for (const Call* call : posts_) {
    if (call->rider == nullptr) continue;
    sum += *call->rider;
    any = true;
  }
  if (!any) return;
  for (const Call* call : posts_)
    if (call->rider != nullptr) *call->rider = sum;
}

void Team::meet(int me, const Call& call, bool compare, bool then_read) {
  Lock lock(world_->mutex);
  if (reading_[size_t(me)]) {
    reading_[size_t(me)] = 0;
    if (--readers_ == 0 && world_->failed) world_->changed.notify_all();
  }
  if (world_->failed) throw_failure(lock, me);
  // Later meetings of the call leave the post alone: others may be reading it.
  if (compare) posts_[size_t(me)] = &call;
  arrived_[size_t(me)] = 1;
  const uint64_t round = round_;
  if (++arrivals_ == size()) {
    if (compare) {
      compare_posts(lock, me);
      add_riders();
    }
    arrivals_ = 0;
    std::fill(arrived_.begin(), arrived_.end(), 0);
    if (then_read) {
      std::fill(reading_.begin(), reading_.end(), 1);
      readers_ = size();
    }
    ++round_;
    world_->changed.notify_all();
    return;
  }
  wait(
      lock, me, call, [&] { return round_ != round; }, [&](int r) { return !arrived_[size_t(r)]; });
}

void Team::stop_reading(int me) {
  Lock lock(world_->mutex);
  if (!reading_[size_t(me)]) return;
  reading_[size_t(me)] = 0;
  if (--readers_ == 0) world_->changed.notify_all();
}

void Team::offer(int me, Message& message) {
  Lock lock(world_->mutex);
  channel(me, message.call->root).push_back(&message);
  world_->changed.notify_all();
}

void Team::take(int me, std::vector<const Call*> calls, const Copy& copy) {
  const auto has_come = [&](const Call* call) { return !channel(call->root, me).empty(); };
  Lock lock(world_->mutex);
  while (!calls.empty()) {
    wait(
        lock, me, *calls[0], [&] { return std::any_of(calls.begin(), calls.end(), has_come); },
        [&](int r) {
          return std::any_of(calls.begin(), calls.end(),
                             [r](auto* call) { return call->root == r; });
        });
    if (world_->failed) throw_failure(lock, me);
    const auto next = std::find_if(calls.begin(), calls.end(), has_come);
    const Call& call = **next;
    calls.erase(next);
    take_one(lock, me, call, copy);
  }
}

void Team::take_one(Lock& lock, int me, const Call& call, const Copy& copy) {
  Message& message = *channel(call.root, me).front();
  const Call& sent = *message.call;
  if (sent.count != call.count || sent.dtype != call.dtype) {
    std::vector<std::string> calls(static_cast<size_t>(size()));
    calls[size_t(me)] = "called " + call.describe();
    calls[size_t(call.root)] = "called " + sent.describe();
    fail(lock, me, -1, describe_mismatch(calls, call.sequence));
  }
  channel(call.root, me).pop_front();
  message.taken = true;
  lock.unlock();
  copy(call, sent);
  lock.lock();
  message.done = true;
  world_->changed.notify_all();
}

void Team::wait_taken(int me, Message& message) {
  Lock lock(world_->mutex);
  const int destination = message.call->root;
  try {
    wait(
        lock, me, *message.call, [&] { return message.done; },
        [&](int r) { return r == destination; });
  } catch (...) {
    while (message.taken && !message.done) world_->changed.wait(lock);
    std::erase(channel(me, destination), &message);
    throw;
  }
}

std::shared_ptr<Team> Team::form(int me, const std::vector<int>& members, int color) {
  Call call;
  call.op = CommOp::kBarrier;
  call.kind = CallKind::kSplit;
  const bool makes = !members.empty() && *std::min_element(members.begin(), members.end()) == me;
  if (makes) {
    std::vector<int> ranks;
    for (int r : members) ranks.push_back(world_rank(r));
    auto team = std::make_shared<Team>(world_, std::move(ranks));
    Lock lock(world_->mutex);
    for (int r : members) formed_[size_t(r)] = team;
  }
  meet(me, call, false, false);
  Lock lock(world_->mutex);
  return std::exchange(formed_[size_t(me)], nullptr);
}

}  // namespace catena::comm
