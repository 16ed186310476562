#include "status/status_board.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "environment_scope.h"
#include "error_text.h"

namespace catena::comm {
namespace {

// Of this process alone, for tests run side by side.
std::string prefix() {
  std::string text = "/catena-test-";
  return text.append(std::to_string(getpid())).append("-");
}

std::string board_name() {
  static int number = 0;
  return prefix() + std::to_string(++number);
}

bool exists(const std::string& name) { return std::filesystem::exists("/dev/shm" + name); }

CallRecord all_reduce(CallHistory& history, std::int64_t count) {
  return history.next({.op = CommOp::kAllReduce, .dtype = Dtype::kFloat32, .count = count});
}

TEST(StatusBoard, SaysWhatARankDoes) {
  const StatusBoard board = StatusBoard::create_private(2);
  StatusSlot slot = board.slot(1);
  slot.set_identity(5, 1234, "node7");
  slot.set_phase(Phase::running);
  slot.set_operation("epoch 3");
  SlotSnapshot seen = board.read(1);
  EXPECT_EQ(seen.rank, 5);
  EXPECT_EQ(seen.pid, 1234);
  EXPECT_EQ(seen.host, "node7");
  EXPECT_EQ(seen.phase, Phase::running);
  EXPECT_EQ(seen.operation, "epoch 3");
  EXPECT_FALSE(seen.torn);

  CallHistory history(1);
  const CallRecord call = all_reduce(history, 1000);
  slot.begin_call(call);
  seen = board.read(1);
  EXPECT_EQ(seen.operation, "all_reduce #1 sum float32[1000] in epoch 3");
  EXPECT_TRUE(seen.in_call);
  EXPECT_EQ(seen.started_sequence, 1u);
  EXPECT_EQ(seen.finished_sequence, 0u);
  slot.end_call(call);
  slot.set_operation("");
  seen = board.read(1);
  EXPECT_EQ(seen.operation, "");
  EXPECT_EQ(seen.last_call, "all_reduce #1 sum float32[1000]");
  EXPECT_EQ(seen.finished_sequence, 1u);
  EXPECT_EQ(seen.purpose, "");
  slot.begin_call(all_reduce(history, 1), "backward of F::send");
  EXPECT_EQ(board.read(1).purpose, "backward of F::send");
  slot.begin_call(all_reduce(history, 1), std::string(80, 'x'));
  EXPECT_EQ(board.read(1).purpose, std::string(64, 'x'));
  slot.begin_call(all_reduce(history, 1));
  EXPECT_EQ(board.read(1).purpose, "");

  const CallRecord first = history.next({.op = CommOp::kBarrier});
  CallRecord second = first;  // the same number on another communicator
  second.communicator = 2;
  slot.begin_call(first);
  slot.begin_call(second);
  slot.end_call(first);
  EXPECT_TRUE(board.read(1).in_call) << "of the other communicator";

  EXPECT_EQ(board.read(0).rank, -1) << "an unused slot";
  EXPECT_EQ(board.read(0).phase, Phase::empty);
}

TEST(StatusBoard, KnowsAProcessFromALaterOneWithItsNumber) {
  const StatusBoard board = StatusBoard::create_private(1);
  EXPECT_FALSE(has_died(board.read(0))) << "of an unused slot nothing is known";
  board.slot(0).set_identity(0, getpid(), "here");
  SlotSnapshot seen = board.read(0);
  EXPECT_GT(seen.process_start, 0u);
  EXPECT_FALSE(has_died(seen));
  seen.process_start = 0;
  EXPECT_FALSE(has_died(seen)) << "not known when it began";
  seen = board.read(0);
  ++seen.process_start;  // what the number of this process would show had it been another's before
  EXPECT_TRUE(has_died(seen));
  EXPECT_EQ(describe_doing(seen), "");

  const pid_t child = fork();
  if (child == 0) _exit(0);
  board.slot(0).set_identity(0, child, "here");
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(has_died(board.read(0)));
}

TEST(StatusBoard, FirstFailureOfEachKindStays) {
  const StatusBoard board = StatusBoard::create_private(1);
  StatusSlot slot = board.slot(0);
  EXPECT_FALSE(board.read(0).own_failure.present);
  slot.fail("first");
  slot.fail("second");
  slot.fail_because_of_peer(3, "rank 3 is gone");
  const SlotSnapshot seen = board.read(0);
  EXPECT_EQ(seen.own_failure.text, "first");
  EXPECT_GT(seen.own_failure.wall_ns, 0u);
  EXPECT_LE(seen.own_failure.monotonic_ns, seen.peer_failure.monotonic_ns);
  EXPECT_EQ(seen.peer_failure.blamed_rank, 3);
  EXPECT_EQ(seen.peer_failure.text, "rank 3 is gone");
  EXPECT_EQ(seen.phase, Phase::failed);
}

TEST(StatusBoard, LongTextsAreCut) {
  const StatusBoard board = StatusBoard::create_private(1);
  StatusSlot slot = board.slot(0);
  slot.set_operation(std::string(500, 'o'));
  slot.fail(std::string(5000, 'e'));
  EXPECT_EQ(board.read(0).operation, std::string(128, 'o'));
  EXPECT_EQ(board.read(0).own_failure.text, std::string(1024, 'e'));
  slot.set_operation("short");
  EXPECT_EQ(board.read(0).operation, "short");
}

TEST(StatusBoard, RingKeepsTheLastCalls) {
  const StatusBoard board = StatusBoard::create_private(1);
  StatusSlot slot = board.slot(0);
  EXPECT_TRUE(board.calls(0).empty());
  CallHistory history(9);
  for (std::int64_t i = 1; i <= 3000; ++i) {
    slot.begin_call(all_reduce(history, i));
    if (i != 10 && i != 3000) continue;
    const auto calls = board.calls(0);
    ASSERT_EQ(calls.size(), std::min<std::size_t>(size_t(i), StatusBoard::kRingSize));
    EXPECT_EQ(calls.back().sequence, std::uint64_t(i));
    EXPECT_EQ(calls.back().hash, history.hash());
    EXPECT_EQ(calls.front().sequence, std::uint64_t(i) - calls.size() + 1);
  }
}

TEST(StatusBoard, KnowsTheLastCallOfEachCommunicator) {
  const StatusBoard board = StatusBoard::create_private(1);
  EXPECT_EQ(board.last_sequence(0, 7), 0u);
  CallHistory one(7), other(8);
  board.slot(0).begin_call(one.next({.op = CommOp::kBarrier}));
  for (int i = 0; i < 2000; ++i) board.slot(0).begin_call(other.next({.op = CommOp::kBarrier}));
  EXPECT_EQ(board.last_sequence(0, 7), 1u) << "the ring has forgotten it";
  EXPECT_EQ(board.last_sequence(0, 8), 2000u);
  // Those with one hash, and one that has made no call.
  for (std::uint64_t id = 7 + 512; id < 7 + 6 * 512; id += 512) {
    CallHistory many(id);
    for (int i = 0; i < 3; ++i) board.slot(0).begin_call(many.next({.op = CommOp::kBarrier}));
    EXPECT_EQ(board.last_sequence(0, id), 3u);
    EXPECT_EQ(board.last_sequence(0, id + 512), 0u);
  }
  EXPECT_EQ(board.last_sequence(0, 7), 1u);
  // More communicators than there is room for: what is lost is not known.
  for (std::uint64_t id = 1000; id < 3000; ++id) {
    CallHistory many(id);
    board.slot(0).begin_call(many.next({.op = CommOp::kBarrier}));
  }
  EXPECT_EQ(board.last_sequence(0, 7), std::nullopt);
  EXPECT_EQ(board.last_sequence(0, 2999), 1u);
}

TEST(StatusBoard, AnotherProcessReadsWhatAKilledOneWrote) {
  const std::string name = board_name();
  const StatusBoard board = StatusBoard::create(name, 2);
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("CATENA_STATUS_BOARD", name.c_str(), 1);
    setenv("CATENA_LOCAL_RANK", "1", 1);
    StatusBoard mine = StatusBoard::attach_from_environment();
    CallHistory history(2);
    mine.own_slot().begin_call(all_reduce(history, 64));
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(board.read(1).operation, "all_reduce #1 sum float32[64]");
  EXPECT_EQ(board.calls(1).size(), 1u);
  EXPECT_TRUE(StatusBoard::unlink(name));
}

// Killed at any moment, most likely within a write: the reader must neither hang nor crash, and
// what it reads is either consistent or marked.
TEST(StatusBoard, WriterKilledInTheMiddle) {
  const std::string name = board_name();
  const StatusBoard board = StatusBoard::create(name, 1);
  for (int round = 0; round < 20; ++round) {
    const pid_t pid = fork();
    if (pid == 0) {
      StatusSlot slot = board.slot(0);
      for (;;) {
        slot.set_operation(std::string(100, 'a'));
        slot.set_operation(std::string(100, 'b'));
      }
    }
    usleep(1000 + 137 * static_cast<unsigned>(round));
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    const SlotSnapshot seen = board.read(0);
    const bool whole = seen.operation == std::string(100, 'a') ||
                       seen.operation == std::string(100, 'b') || seen.operation.empty();
    EXPECT_TRUE(whole || seen.torn) << seen.operation;
  }
  StatusBoard::unlink(name);
}

TEST(StatusBoard, ReadersSeeWholeWrites) {
  const StatusBoard board = StatusBoard::create_private(1);
  std::atomic<bool> stop = false;
  const auto write = [&](char letter) {
    StatusSlot slot = board.slot(0);
    CallHistory history(static_cast<std::uint64_t>(letter));
    const std::string text(100, letter);
    while (!stop) {
      slot.set_operation(text);
      slot.begin_call(all_reduce(history, 1));
    }
  };
  std::thread first(write, 'a');
  std::thread second(write, 'b');  // two communicators on two threads
  for (int i = 0; i < 2000; ++i) {
    const SlotSnapshot seen = board.read(0);
    const std::size_t in = seen.operation.find(" in ");
    if (seen.torn || in == std::string::npos) continue;
    const std::string text = seen.operation.substr(in + 4);
    ASSERT_TRUE(text == std::string(100, 'a') || text == std::string(100, 'b')) << text;
    for (const CallRecord& call : board.calls(0))
      ASSERT_EQ(call.hash != 0 && call.call.count == 1, true);
  }
  stop = true;
  first.join();
  second.join();
}

TEST(StatusBoard, NamesComeAndGo) {
  const std::string name = board_name();
  {
    const StatusBoard first = StatusBoard::create(name, 3);
    const StatusBoard second = StatusBoard::create(name, 3);  // makes nothing new
    StatusSlot(first.slot(2)).set_operation("seen by both");
    EXPECT_EQ(second.read(2).operation, "seen by both");
    StatusBoard third = StatusBoard::attach("/proc/self/fd/" + std::to_string(first.fd()));
    EXPECT_EQ(third.read(2).operation, "seen by both");
    EXPECT_EQ(third.arrive(), 1);
    EXPECT_EQ(third.arrive(), 2);
    EXPECT_EQ(StatusBoard::remove_stale(prefix()), 0) << "in use";
    EXPECT_TRUE(exists(name));
  }
  EXPECT_GE(StatusBoard::remove_stale(prefix()), 1);
  EXPECT_FALSE(exists(name));
  EXPECT_FALSE(StatusBoard::unlink(name));
}

// A file that another user was first to make would let him read and write the board, and cut it.
TEST(StatusBoard, FilesOfOthersAreNotBelieved) {
  const std::string name = board_name(), path = "/dev/shm" + name;
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_GE(fd, 0);
  const auto refused = [&] {
    for (const bool create : {true, false}) {
      const std::string text = error_of<std::exception>(
          [&] { create ? StatusBoard::create(name, 1) : StatusBoard::attach(name); });
      expect_contains(text, {"somebody else has taken its name"});
    }
  };
  fchmod(fd, 0666);
  refused();
  fchmod(fd, 0600);
  if (geteuid() == 0) {
    ASSERT_EQ(fchown(fd, 65534, 65534), 0);
    refused();
    EXPECT_EQ(StatusBoard::remove_stale(name), 0) << "nor removed";
    ASSERT_EQ(fchown(fd, 0, 0), 0);
  }
  EXPECT_EQ(StatusBoard::create(name, 1).slots(), 1);
  struct stat status {};
  fstat(fd, &status);
  EXPECT_EQ(status.st_mode & 07777u, 0600u);
  close(fd);
  StatusBoard::unlink(name);
}

TEST(StatusBoard, Mistakes) {
  EXPECT_EQ(error_of<std::exception>([] { StatusBoard::attach("/catena-not-there"); }),
            "status board: cannot open /catena-not-there: No such file or directory");
  EXPECT_EQ(error_of<std::exception>([] {
              StatusBoard::attach("/proc/self/stat");
            }).find("status board: "),
            0u);
  EXPECT_EQ(error_of<std::exception>([] { StatusBoard::create("/catena-test-x", 0); }),
            "status board: 0 slots asked for, expected 1 to 4096");
  const StatusBoard board = StatusBoard::create_private(2);
  EXPECT_EQ(error_of<std::exception>([&] { board.read(2); }),
            "status board: slot 2 asked for, the board has 2");
  const std::string name = board_name();
  const StatusBoard shared = StatusBoard::create(name, 2);
  {
    EnvironmentScope environment("CATENA_STATUS_BOARD", name);
    environment.set("CATENA_LOCAL_RANK", "2");
    EXPECT_EQ(error_of<std::exception>([] { StatusBoard::attach_from_environment(); }),
              "status board: CATENA_LOCAL_RANK is '2', expected a number from 0 to 1; catena-run "
              "sets it");
  }
  const std::string path = "/dev/shm" + name;
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 8);
  EXPECT_NE(error_of<std::exception>([&] { StatusBoard::attach(name); }).find("another version"),
            std::string::npos)
      << "smaller than its slots";
  StatusBoard::unlink(name);
  EXPECT_FALSE(StatusBoard::attach_from_environment().shared()) << "private without a launcher";
}

TEST(StatusBoard, CostsTensOfNanoseconds) {
  const StatusBoard board = StatusBoard::create_private(1);
  StatusSlot slot = board.slot(0);
  CallHistory history(1);
  constexpr int kCalls = 200'000;
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) {
      const CallRecord call = all_reduce(history, 10);
      slot.begin_call(call);
      slot.end_call(call);
    }
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / kCalls);
  }
  std::printf("a call: %.0f ns (record, begin and end)\n", best);
  RecordProperty("nanoseconds", static_cast<int>(best));
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(best, 2000) << "far beyond what is meant, whatever the build";
#endif
}

}  // namespace
}  // namespace catena::comm
