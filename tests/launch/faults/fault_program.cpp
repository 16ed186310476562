// A rank that goes wrong in the way its first argument says. The second is the rank it happens to;
// the others wait to be ended.
//   kill R | throw R | hang | progress | operation R | victim R | early R | late R | gone R
//   lines COUNT | stubborn
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "status/status_board.h"

namespace {

using catena::Dtype;
using catena::comm::CallHistory;
using catena::comm::CallRecord;
using catena::comm::CommOp;
using catena::comm::Phase;
using catena::comm::StatusBoard;

int rank_number() {
  const char* rank = std::getenv("CATENA_RANK");
  return rank ? std::atoi(rank) : 0;
}

void sleep_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

[[noreturn]] void wait_to_be_ended() {
  for (;;) sleep_ms(1000);
}

int draw_progress() {
  for (int step = 0; step <= 3; ++step) {
    std::printf("\rstep %d/3", step);
    std::fflush(stdout);
    sleep_ms(30);
  }
  std::printf("\ndone, terminal %s, isatty %d\n",
              std::getenv("CATENA_TERMINAL") ? std::getenv("CATENA_TERMINAL") : "none",
              isatty(STDOUT_FILENO));
  return 0;
}

int print_lines(int count) {
  const int rank = rank_number();
  for (int line = 0; line < count; ++line)
    std::printf("rank %d line %d %s\n", rank, line, std::string(line % 300, 'x').c_str());
  return 0;
}

// All ranks make two calls; the culprit dies, or computes, while the others wait in the third.
[[noreturn]] void stay_away_from_a_call(bool culprit, bool dies) {
  StatusBoard board = StatusBoard::attach_from_environment();
  auto slot = board.own_slot();
  slot.set_phase(Phase::running);
  slot.set_operation("epoch 2");
  CallHistory history(7);
  for (int i = 0; i < 2; ++i) {
    const CallRecord call =
        history.next({.op = CommOp::kAllReduce, .dtype = Dtype::kFloat32, .count = 1000});
    slot.begin_call(call);
    slot.end_call(call);
  }
  if (!culprit)
    slot.begin_call(
        history.next({.op = CommOp::kBroadcast, .dtype = Dtype::kFloat32, .root = 0, .count = 64}));
  sleep_ms(300);
  if (culprit && dies) std::raise(SIGKILL);
  wait_to_be_ended();
}

// The culprit notes its error and takes its time to end; the others notice and end at once.
[[noreturn]] void be_victim_or_culprit(int culprit) {
  StatusBoard board = StatusBoard::attach_from_environment();
  auto slot = board.own_slot();
  if (rank_number() == culprit) {
    slot.fail("data file 'x.idx' is truncated");
    wait_to_be_ended();
  }
  sleep_ms(300);
  slot.fail_because_of_peer(culprit, "rank " + std::to_string(culprit) + " failed");
  std::_Exit(9);
}

int run(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  const bool chosen = rank_number() == number;
  if (mode == "progress") return draw_progress();
  if (mode == "lines") return print_lines(number);
  if (mode == "victim") be_victim_or_culprit(number);
  if (mode == "operation" || mode == "late") stay_away_from_a_call(chosen, mode == "operation");
  if (mode == "gone") {
    if (chosen) return 0;
    wait_to_be_ended();
  }
  if (mode == "stubborn") std::signal(SIGTERM, SIG_IGN);
  if (mode == "early") {
    if (chosen) return 0;
    sleep_ms(400);
    return 0;
  }
  sleep_ms(100);
  if (chosen && mode == "kill") std::raise(SIGKILL);
  if (chosen && mode == "throw") throw std::runtime_error("boom");
  wait_to_be_ended();
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv); }
