#include "mpi_waiter.h"

#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "comm/diagnosis/peer_status.h"

namespace catena::comm::mpi {

namespace {
constexpr int kFailureTag = 1;

Wait describe(int rank, const std::string& doing, const Call* call) {
  Wait wait{.doing = "in " + (call ? call->describe() : doing), .rank = rank};
  if (call && is_message(*call))
    wait.peer = call->root;
  else if (call)
    wait.sequence = call->sequence;
  return wait;
}
}  // namespace

Waiter::Waiter(MPI_Comm news, int rank, int size, double timeout)
    : news_(news), rank_(rank), size_(size), timeout_(timeout) {}

void Waiter::read_news() {
  int there = 0;
  MPI_Status status;
  CATENA_MPI(MPI_Iprobe, MPI_ANY_SOURCE, kFailureTag, news_, &there, &status);
  if (!there) return;
  int length = 0;
  CATENA_MPI(MPI_Get_count, &status, MPI_CHAR, &length);
  std::string news(static_cast<size_t>(length), '\0');
  CATENA_MPI(MPI_Recv, news.data(), length, MPI_CHAR, status.MPI_SOURCE, kFailureTag, news_,
             MPI_STATUS_IGNORE);
  told_ = true;  // they know already
  int culprit = -1;
  std::memcpy(&culprit, news.data(), sizeof culprit);
  throw PeerError(news.substr(sizeof culprit), culprit);
}

void Waiter::broadcast_failure(const std::string& text, int culprit) noexcept {
  if (told_ || ended()) return;
  told_ = true;
  // Never freed: the messages may be read later than this communicator lives.
  static std::vector<std::string*> kept;
  const Lock lock;
  kept.push_back(new std::string(reinterpret_cast<const char*>(&culprit), sizeof culprit));
  kept.back()->append(text, 0, 2000);
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    MPI_Request request;
    if (MPI_Isend(kept.back()->data(), int(kept.back()->size()), MPI_CHAR, r, kFailureTag, news_,
                  &request) == MPI_SUCCESS)
      MPI_Request_free(&request);
  }
}

void Waiter::broadcast_abandon() noexcept {
  const int rank = owner_ ? internals(*owner_).rank_in_job(rank_) : rank_;
  broadcast_failure(
      message("rank ", rank_, " failed: an exception ended its use of the communicator"), rank);
}

void Waiter::fail_mismatch(const std::vector<std::string>& calls, const Call& call) {
  const int odd = odd_rank(calls);
  const int culprit = owner_ ? internals(*owner_).rank_in_job(odd) : odd;
  std::string text = describe_mismatch(calls, call.sequence);
  if (owner_) text += describe_part(*owner_);
  broadcast_failure(text, culprit);
  throw PeerError(text, culprit);
}

void Waiter::cancel(std::vector<MPI_Request>& messages) {
  for (MPI_Request& request : messages) {
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
}

void Waiter::wait(std::vector<MPI_Request>& requests, const std::string& doing, double timeout,
                  const Call* call) {
  const auto all_done = [&] {
    int done = 0;
    check(MPI_Testall(int(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
          "MPI_Testall");
    return done != 0;
  };
  poll(all_done, doing, timeout, call);
}

size_t Waiter::wait_any(std::vector<MPI_Request>& requests, const Call& call) {
  int index = MPI_UNDEFINED;
  const auto one_done = [&] {
    int done = 0;
    check(MPI_Testany(int(requests.size()), requests.data(), &index, &done, MPI_STATUS_IGNORE),
          "MPI_Testany");
    return done != 0;
  };
  poll(one_done, {}, timeout_, &call);
  return static_cast<size_t>(index);
}

void Waiter::poll(const std::function<bool()>& is_done, const std::string& doing, double timeout,
                  const Call* call) {
  WaitClock clock;
  std::optional<Wait> what;  // costs a text
  double next_poll = kFirstLook;
  WaitDiagnosis stop;
  for (int64_t tries = 0;; ++tries) {
    {
      const Lock lock;
      if (is_done()) return;
      if (tries % 16 == 15) read_news();
    }
    if (tries > 200) {
      // Ranks may outnumber cores: let the others run.
      const double waited = clock.seconds();
      if (waited < 0.02)
        sched_yield();
      else
        usleep(waited < 1 ? 50 : 500);
      if (!what && waited >= kFirstLook) what = describe(rank_, doing, call);
      if (what) stop = diagnose_wait(owner_, waited, timeout, *what, next_poll);
    }
    if (!stop.text.empty()) {
      broadcast_failure(stop.text, stop.culprit);
      throw PeerError(stop.text, stop.culprit);
    }
  }
}

void Waiter::wait(MPI_Request request, const Call& call) {
  std::vector<MPI_Request> one{request};
  wait(one, call);
}

}  // namespace catena::comm::mpi
