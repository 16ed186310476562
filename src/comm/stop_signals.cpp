#include "catena/comm/stop_signals.h"

#include <atomic>
#include <cerrno>
#include <cstring>

namespace catena::comm {
namespace {

// srun signals rank processes and their programs alike, and a rank process hands its signal on: a
// program gets two, in any distance.
constexpr int kCopies = 2;

std::atomic<int> last_signal{0};
std::atomic<int> copies{0};  // of the last signal
std::atomic<int> to_come{0};
std::atomic<bool> in_use{false};
static_assert(std::atomic<int>::is_always_lock_free, "the handlers change them");

void note(int signal) { copies = last_signal.exchange(signal) == signal ? copies + 1 : 1; }

// The last one that may still come brings back what the signal did before.
void swallow(int signal) {
  if (--to_come <= 0) std::signal(signal, SIG_DFL);
}

void swallow_some(int signal, int count) {
  to_come = count;
  struct sigaction action {};
  action.sa_handler = swallow;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals(const std::vector<int>& signals) {
  CATENA_CHECK(ValueError, !in_use.exchange(true),
               "StopSignals: there is another object, which takes the signals of this process; "
               "keep one for the whole run");
  last_signal = 0;
  copies = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (const int signal : signals) {
    Before before{signal, {}};
    if (sigaction(signal, &action, &before.action) == 0) {
      // An object before this one still waits for copies.
      if (before.action.sa_handler == swallow) before.action.sa_handler = SIG_DFL;
      before_.push_back(before);
      continue;
    }
    const int reason = errno;
    restore();
    fail<ValueError>("StopSignals: signal ", signal, " cannot be taken: ", std::strerror(reason));
  }
}

StopSignals::~StopSignals() { restore(); }

// In the opposite order, for a list that names a signal twice. Copies of the signal by which the
// ranks have stopped may still be on their way here.
void StopSignals::restore() noexcept {
  for (auto one = before_.rbegin(); one != before_.rend(); ++one) {
    const int came = last_signal == one->signal ? copies.load() : 0;
    if (one->signal == agreed_ && came < kCopies && one->action.sa_handler == SIG_DFL)
      swallow_some(one->signal, kCopies - came);
    else
      sigaction(one->signal, &one->action, nullptr);
  }
  before_.clear();
  in_use = false;
}

int StopSignals::received() const noexcept { return last_signal; }

int StopSignals::received(Communicator& comm) const {
  if (comm.size() == 1) return received();
  const int signal = comm.all_reduce_value(received(), Reduction::kMax);
  agreed_ = signal;
  return signal;
}

}  // namespace catena::comm
