// Jobs that catena-run --max-restarts starts again.
#include "launched.h"

namespace catena::launch::test {
namespace {

// Two ranks of a shell script.
Words job(const Words& options, const std::string& script) {
  Words words = {"-n", "2", "--cpu"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"sh", "-c", script});
  return words;
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Restarts, UntilTheJobEndsWell) {
  const Result result = run(job({"--max-restarts", "5"},
                                "echo restart $CATENA_RESTART; [ $CATENA_RESTART = 2 ] && exit 0; "
                                "[ $CATENA_RANK = 1 ] && exit $((3 + CATENA_RESTART)); sleep 30"));
  EXPECT_EQ(result.status, 0) << result.err;
  expect_contains(result.out, {"restart 0\n", "restart 2\n"});
  EXPECT_EQ(count(result.err, "starting again, restart "), 2) << result.err;
  const std::string list = result.err.substr(result.err.find("catena-run: 3 attempts\n"));
  expect_contains(list, {", 2 ranks, rank 1 on " + host() + " failed first: exit code 3\n"});
  EXPECT_TRUE(list.ends_with(" s, 2 ranks, ended well\n")) << list;
  EXPECT_FALSE(boards_are_left());
}

TEST(Restarts, StandardInputIsReadOnce) {
  const TempFolder folder;
  const std::string out = folder / "out";
  const auto text_with_input = [&](const std::string& before, const std::string& behind) {
    const std::string command = before + "'" + CATENA_RUN +
                                "' -n 1 --cpu --max-restarts 1 sh -c 'read x; echo got $x; " +
                                "exit $((1 - CATENA_RESTART))' >'" + out + "' 2>&1 " + behind;
    EXPECT_EQ(std::system(command.c_str()), 0);
    return read_file(out);
  };
  const std::string line = "catena-run: standard input is read once: ";
  const std::string text = text_with_input("echo question | ", "");
  EXPECT_EQ(text.find("got question\n"), 0u) << text;
  expect_contains(text, {"\ngot\n"});
  EXPECT_EQ(count(text, line), 1) << text;
  EXPECT_EQ(count(text_with_input("", "</dev/null"), line), 0);
}

TEST(Restarts, TheExitCodeIsThatOfTheLastAttempt) {
  const Result result = run(job({"--max-restarts", "2"}, "exit $((5 + CATENA_RESTART))"));
  EXPECT_EQ(result.status, 7) << result.err;
  expect_contains(result.err, {"not started again: --max-restarts 2 is reached\n"});
}

TEST(Restarts, NotWithoutTheOption) {
  const Result result = run(job({}, "echo \"restart '$CATENA_RESTART'\"; exit 5"));
  EXPECT_EQ(result.status, 5);
  expect_contains(result.out, {"restart ''\n"});
  EXPECT_EQ(result.err.find("again"), result.err.npos) << result.err;
}

TEST(Restarts, NotWhenItFailsAtOnceInTheSameWay) {
  const Result result = run(job({"--max-restarts", "50"}, "exit 4"));
  EXPECT_EQ(result.status, 4);
  expect_contains(result.err, {"twice in the same way", "catena-run: 2 attempts\n"});
}

TEST(Restarts, LogsOfAllAttemptsStay) {
  const TempFolder folder;
  run(job({"--max-restarts", "1", "--log-dir", folder.path()},
          "echo attempt $CATENA_RESTART; sleep 0.3; exit $((5 + CATENA_RESTART))"));
  EXPECT_EQ(read_file(folder / "rank-1.log"), "attempt 0\n");
  EXPECT_EQ(read_file(folder / "restart-1/rank-1.log"), "attempt 1\n");
}

// Rank 1 stops in the first attempt, and ends well in the second.
TEST(Restarts, ARankThatHangsHasFailed) {
#ifdef STEPS_PROGRAM
  const TempFolder folder;
  const std::string file = folder / "hangs";
  Launched running(job({"--max-restarts", "1", "--timeout", "2"},
                       "if [ $CATENA_RANK$CATENA_RESTART = 10 ]; then echo $$ >" + file +
                           "; fi; exec " STEPS_PROGRAM " 60 50"));
  running.read_for(20, "step 2\n");
  const pid_t program = std::atoi(read_file(file).c_str());
  ASSERT_GT(program, 0);
  kill(program, SIGSTOP);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 0) << result.err;
  expect_contains(result.err, {"rank 1 on " + host() + " failed first",
                               "starting again, restart 1 of at most 1"});
  expect_contains(result.out, {"done: 2 ranks"});
#else
  GTEST_SKIP() << "this build has no MPI";
#endif
}

// While the job runs again.
TEST(Restarts, ASignalEndsTheSecondAttemptForGood) {
  const std::string mark = new_mark();
  Launched running(job({"--max-restarts", "9", "--env", mark},
                       "echo restart $CATENA_RESTART; [ $CATENA_RESTART = 0 ] && exit 3; "
                       "sleep 30"));
  running.read_for(15, "restart 1");
  kill(running.pid(), SIGTERM);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 128 + SIGTERM) << result.err;
  EXPECT_EQ(count(result.err, "starting again"), 1) << result.err;
  EXPECT_EQ(count_processes(mark), 0);
}

// While a failed attempt is being ended: rank 0 takes its time. The failure stays the reason.
TEST(Restarts, ASignalAfterAFailureKeepsTheJobFromStartingAgain) {
  const std::string mark = new_mark();
  Launched running(job({"--max-restarts", "9", "--grace", "5", "--env", mark},
                       "if [ $CATENA_RANK = 1 ]; then sleep 0.3; exit 3; fi; "
                       "trap 'echo ending; sleep 1; exit 0' TERM; while :; do sleep 0.1; done"));
  running.read_for(15, "ending");
  kill(running.pid(), SIGTERM);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 3) << result.err;
  EXPECT_EQ(count(result.err, "starting again"), 0) << result.err;
  expect_contains(result.err, {"not started again: catena-run was asked to end by SIGTERM"});
  EXPECT_EQ(count_processes(mark), 0);
}

TEST(Restarts, OptionsThatDoNotGoTogether) {
  const Result alone = run({"-n", "2", "--cpu", "--min-ranks", "1", "true"});
  EXPECT_EQ(alone.status, 2);
  expect_contains(alone.err, {"add --max-restarts"});
  const Result here = run({"-n", "2", "--cpu", "--max-restarts", "1", "--min-ranks", "1", "true"});
  EXPECT_EQ(here.status, 2);
  expect_contains(here.err, {"no hosts to leave out"});
  EXPECT_EQ(run({"--max-restarts", "-1", "true"}).status, 2);
}

}  // namespace
}  // namespace catena::launch::test
