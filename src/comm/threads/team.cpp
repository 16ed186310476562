#include "team.h"

#include <algorithm>

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
    world_->failure = text;
    world_->changed.notify_all();
  }
  throw_failure(lock, me);
  std::abort();  // not reached
}

std::string Team::deadlock() const {
  for (const Waiting& w : waiting_)
    if (!w.call || (*w.ready)()) return {};
  std::vector<std::string> calls;
  uint64_t sequence = UINT64_MAX;
  for (const Waiting& w : waiting_) {
    calls.push_back("waited in " + w.call->describe());
    sequence = std::min(sequence, w.call->sequence);
  }
  return describe_mismatch(calls, sequence) +
         " (a send waits for its recv: put exchanges into one group)";
}

void Team::wait(Lock& lock, int me, const Call& call, const std::function<bool()>& ready,
                const std::function<bool(int)>& needs) {
  if (ready()) return;
  WaitClock clock;
  waiting_[size_t(me)] = {&call, &ready};
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
    if (const std::string text = deadlock(); !text.empty()) fail(lock, me, -1, text);
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
    if (compare) compare_posts(lock, me);
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
  channels_[size_t(me * size() + message.call->root)].push_back(&message);
  world_->changed.notify_all();
}

void Team::take(int me, const Call& call, const std::function<void(const Call&)>& copy) {
  Lock lock(world_->mutex);
  auto& channel = channels_[size_t(call.root * size() + me)];
  wait(
      lock, me, call, [&] { return !channel.empty(); }, [&](int r) { return r == call.root; });
  if (world_->failed) throw_failure(lock, me);
  Message& message = *channel.front();
  const Call& sent = *message.call;
  if (sent.count != call.count || sent.dtype != call.dtype) {
    std::vector<std::string> calls(static_cast<size_t>(size()));
    calls[size_t(me)] = "called " + call.describe();
    calls[size_t(call.root)] = "called " + sent.describe();
    fail(lock, me, -1, describe_mismatch(calls, call.sequence));
  }
  channel.pop_front();
  message.taken = true;
  lock.unlock();
  copy(sent);
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
    std::erase(channels_[size_t(me * size() + destination)], &message);
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
