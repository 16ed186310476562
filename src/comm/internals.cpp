// View of a communicator for transports, diagnosis and tests.
#include "catena/comm/internals.h"

#include <algorithm>
#include <utility>

#include "comm/diagnosis/deadlock.h"
#include "comm/diagnosis/mismatch.h"
#include "communicator_state.h"

namespace catena::comm {

using State = Communicator::State;

Transport& CommunicatorInternals::transport() const { return *State::of(comm_).transport; }
uint64_t CommunicatorInternals::calls() const { return State::of(comm_).made; }
int& CommunicatorInternals::no_sync_scopes() const { return State::of(comm_).no_sync_scopes; }
bool CommunicatorInternals::in_group() const { return State::of(comm_).grouping; }

bool CommunicatorInternals::takes_riders() const {
  return comm_.device().is_cpu() && State::of(comm_).transport->adds_riders();
}
double*& CommunicatorInternals::rider() const { return State::of(comm_).rider; }
const char*& CommunicatorInternals::purpose() const { return State::of(comm_).purpose; }
void CommunicatorInternals::set_updates(int64_t count) const {
  State::of(comm_).updates = int32_t(std::min<int64_t>(count, INT32_MAX));
  note_update();
}
void CommunicatorInternals::note_update() const { State::of(comm_).own_slot.note_update(); }

int CommunicatorInternals::next_optimizer() const { return ++State::of(comm_).optimizers; }

int CommunicatorInternals::rank_in_job(int rank) const {
  return comm::rank_in_job(State::of(comm_).place, rank);
}

std::string describe_part(const Communicator& comm) { return describe_part(State::of(comm).place); }

void inject_fault(Communicator& comm, const Fault& fault) { State::of(comm).fault = fault; }

// Failures and differences

// All ranks have made the same number of calls when they come here, or differ.
std::string State::difference_over_hosts() {
  struct Position {
    uint64_t sequence, hash;
  };
  const auto all = control->all_gather_object(Position{history.sequence(), history.hash()});
  const auto equal = [&](const Position& p) {
    return p.hash == all[0].hash && p.sequence == all[0].sequence;
  };
  if (std::all_of(all.begin(), all.end(), equal)) return {};
  const int slot = place.slots[static_cast<size_t>(control->rank())];
  const auto rings = control->all_gather_object(place.board->calls(slot));
  std::string text = difference_of(rings, control->rank(), id);
  if (text.empty()) text = missing_call_of(rings, id);
  if (text.empty())
    text =
        "the ranks of this communicator have made different numbers of calls when they were "
        "compared";
  return text + describe_part(place);
}

std::string CommunicatorInternals::compare_with_all() const {
  State& state = State::of(comm_);
  try {
    state.throw_if_failed();
    std::string text = state.control ? state.difference_over_hosts() : std::string();
    // Messages, which only two ranks record.
    return text.empty() ? find_difference() : text;
  } catch (const CommError& error) {
    return error.what();
  }
}

std::string CommunicatorInternals::find_difference() const {
  // As many calls as were made since the last comparison, and some for ranks that lag behind.
  State& state = State::of(comm_);
  const uint64_t made = state.made.load(std::memory_order_relaxed);
  const uint64_t since = made - std::min(made, state.compared.load(std::memory_order_relaxed));
  const int depth = static_cast<int>(std::min<uint64_t>(since + 32, StatusBoard::kRingSize));
  bool came = false;
  const std::string text =
      difference_on_board(state.place, comm_.rank(), comm_.size(), state.id, depth, &came);
  if (came && text.empty()) state.compared.store(made, std::memory_order_relaxed);
  return text;
}

bool CommunicatorInternals::is_compared() const {
  const State& state = State::of(comm_);
  return state.compared.load(std::memory_order_relaxed) ==
         state.made.load(std::memory_order_relaxed);
}

std::string CommunicatorInternals::find_problem(double waited_seconds, int* culprit) const {
  State& state = State::of(comm_);
  int rank_at_fault = -1;
  std::string text = problem_on_board(state.place, comm_.rank(), comm_.size(), state.id,
                                      waited_seconds, &rank_at_fault);
  if (!text.empty()) state.culprit = rank_at_fault;
  if (culprit) *culprit = rank_at_fault;
  return text;
}

std::string CommunicatorInternals::find_deadlock(int* culprit) const {
  State& state = State::of(comm_);
  int rank_at_fault = -1;
  std::string text = deadlock_on_board(state.place, comm_.size(), state.id, &rank_at_fault);
  if (!text.empty()) state.culprit = rank_at_fault;
  if (culprit) *culprit = rank_at_fault;
  return text;
}

void CommunicatorInternals::note_failure(const std::string& text, bool by_peer, int culprit) const {
  State::of(comm_).mark_failed(text, by_peer, culprit);
}

void CommunicatorInternals::throw_if_failed() const { State::of(comm_).throw_if_failed(); }

StoragePtr CommunicatorInternals::allocate_shared(size_t bytes) const {
  State& state = State::of(comm_);
  if (state.closed || bytes == 0) return {};
  state.throw_if_failed();
  return state.transport->allocate_shared(bytes);
}

void CommunicatorInternals::prepare_scattered_sums(size_t bytes) const {
  State& state = State::of(comm_);
  if (state.closed) return;
  state.throw_if_failed();
  state.transport->prepare_scattered_sums(bytes);
}

bool CommunicatorInternals::moves_by_copies(size_t bytes) const {
  return State::of(comm_).transport->moves_by_copies(bytes);
}

std::string CommunicatorInternals::ways() const { return State::of(comm_).transport->ways(); }

void CommunicatorInternals::watch(const Stream& stream) const {
  State::of(comm_).transport->watch(stream);
}

int CommunicatorInternals::before_close(std::function<void()> callback) const {
  State& state = State::of(comm_);
  state.callbacks.emplace(state.next_callback, std::move(callback));
  return state.next_callback++;
}

void CommunicatorInternals::cancel_before_close(int id) const {
  State::of(comm_).callbacks.erase(id);
}

void CommunicatorInternals::when_all_close(std::function<void()> callback) const {
  State::of(comm_).when_met = std::move(callback);
}

}  // namespace catena::comm
