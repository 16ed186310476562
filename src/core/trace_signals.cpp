// Traces of programs that a signal asks to end: the launcher ends the ranks of a failed job so.
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "core/trace_record.h"

namespace catena::tracing {
namespace {

// What a signal handler may touch. Never destroyed: the thread waits while the process goes.
sem_t g_asked;
volatile sig_atomic_t g_signal = 0;
pid_t g_traced_process = 0;

void end_by(int signal_number) {
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// A file cannot be written here, so a thread does. A child of the process does not have it.
void ask_to_end(int signal_number) {
  if (getpid() != g_traced_process) return end_by(signal_number);
  const int error = errno;
  g_signal = signal_number;
  sem_post(&g_asked);
  errno = error;
}

void wait_to_end() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (sem_wait(&g_asked) != 0) {
  }
  const int signal_number = g_signal;
  stop_quietly();
  signal(signal_number, SIG_DFL);
  kill(getpid(), signal_number);
}

}  // namespace

void write_at_signals() {
  g_traced_process = getpid();
  sem_init(&g_asked, 0, 0);
  std::thread(wait_to_end).detach();
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction present = {};
    if (sigaction(number, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) continue;
    struct sigaction ours = {};
    ours.sa_handler = ask_to_end;
    ours.sa_flags = SA_RESTART;
    sigaction(number, &ours, nullptr);
  }
}

}  // namespace catena::tracing
