// Runs the real catena-run with programs that fail in all the ways that programs fail.
#include <sstream>

#include "launched.h"

namespace catena::launch::test {
namespace {

TEST(Faults, AllWell) {
  const Result result = run({"-n", "3", "--cpu", "sh", "-c", "echo from $CATENA_RANK"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  expect_contains(result.out, {"from 0\n"});
  EXPECT_EQ(result.out.find("[0]"), std::string::npos);
  expect_contains(result.out, {"[1] from 1\n", "[2] from 2\n"});
}

TEST(Faults, EnvironmentOfARank) {
  const Setting threads("OMP_NUM_THREADS", "3");
  const Result result =
      run({"-n", "2", "--cpu", "--timeout", "7", "--start-timeout", "5.5", "--env",
           "COLOUR=deep blue", "sh", "-c",
           "[ $CATENA_RANK = 1 ] && echo $CATENA_SIZE $CATENA_LOCAL_RANK $CATENA_LOCAL_SIZE "
           "$CATENA_DEVICE $CATENA_TIMEOUT $CATENA_START_TIMEOUT $CATENA_LAUNCHED "
           "${CATENA_TERMINAL:-none} $OMP_NUM_THREADS $COLOUR; true"});
  EXPECT_EQ(result.out, "[1] 2 1 2 cpu:1 7 5.5 1 none 3 deep blue\n");
}

TEST(Faults, ArgumentsPassUnchanged) {
  const Result result = run({"-n",    "1", "--cpu", "--",     "printf", "<%s>", "a b",
                             ":",     "",  "%41",   "-n",     "--mca",  "btl",  "nonsense",
                             "-gmca", "x", "'\"$x", "--tune", "f",      "-am",  "--mca"});
  EXPECT_EQ(result.out,
            "<a b><:><><%41><-n><--mca><btl><nonsense><-gmca><x><'\"$x><--tune><f><-am><--mca>");
  EXPECT_EQ(result.err, "");
}

TEST(Faults, UncaughtException) {
  const Result result = run_fault(2, {"throw", "1"});
  EXPECT_EQ(result.status, 128 + SIGABRT);
  EXPECT_EQ(report_of(result).find(first_failure(1, "std::runtime_error: boom")), 0u);
  expect_contains(report_of(result), {"SIGABRT"});
}

TEST(Faults, ReportSaysWhatEverybodyWasDoing) {
  const Result result = run_fault(3, {"operation", "2"});
  EXPECT_EQ(result.status, 128 + SIGKILL);
  EXPECT_EQ(report_of(result), first_failure(2, "SIGKILL (killed)") +
                                   "  it was doing: epoch 2\n"
                                   "  its last collective: all_reduce #2 sum float32[1000]\n"
                                   "  ranks 0-1: broadcast #3 float32[64] root 0 in epoch 2\n");
}

TEST(Faults, VictimsThatEndFirstAreNotBlamed) {
  const Result result = run_fault(3, {"victim", "1"});
  EXPECT_EQ(report_of(result).find(first_failure(1, "data file 'x.idx' is truncated")), 0u);
  EXPECT_EQ(report_of(result).find("SIGTERM"), std::string::npos) << "which the launcher sent";
  EXPECT_EQ(result.status, 1);
}

TEST(Faults, EarlyGoodEndIsNoFailure) {
  const Result result = run_fault(2, {"early", "1"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
}

TEST(Faults, MissingProgram) {
  const Result result = run({"-n", "2", "--cpu", "./no-such-program"});
  EXPECT_EQ(result.status, 127);
  EXPECT_EQ(result.err, "catena-run: program './no-such-program' does not exist\n");
}

TEST(Faults, FoldersAndPlainFilesAreNoPrograms) {
  const Script script("plain", "");
  std::filesystem::permissions(script.path(), std::filesystem::perms::owner_read);
  for (const bool dry : {false, true}) {
    const auto start = [&](const std::string& program) {
      return run(dry ? Words{"--dry-run", "--cpu", program} : Words{"--cpu", program});
    };
    Result result = start(::testing::TempDir());
    EXPECT_EQ(result.status, 126);
    EXPECT_EQ(result.err, "catena-run: program '" + ::testing::TempDir() +
                              "' is a folder; name the executable file in it\n");
    EXPECT_EQ(result.out, "");
    result = start(script.path());
    EXPECT_EQ(result.status, 126);
    EXPECT_EQ(result.err, "catena-run: program '" + script.path() +
                              "' is not executable; try chmod +x " + script.path() + "\n");
  }
}

// mpirun gets this in place of ssh.
TEST(Faults, HostThatDoesNotAnswerIsNamed) {
  const Script agent("ssh",
                     "#!/bin/sh\n"
                     "echo 'ssh: Could not resolve hostname nosuchhost: Name or service not "
                     "known' >&2\nexit 255\n");
  const Setting four("OMPI_MCA_plm_rsh_agent", agent.path());
  const Setting five("PRTE_MCA_plm_ssh_agent", agent.path());
  const Result result = run({"-H", "nosuchhost:2", "--cpu", "true"});
  EXPECT_NE(result.status, 0);
  const std::size_t at = result.err.find("catena-run: ");
  ASSERT_NE(at, std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("catena-run: host nosuchhost could not be reached: ssh: Could not "
                            "resolve hostname nosuchhost: Name or service not known\n"),
            at)
      << result.err;
  expect_contains(result.err, {"(try: ssh nosuchhost true)"});
}

TEST(Faults, ProgramThatCannotBeStarted) {
  const auto report = [](const Script& script) {
    const Result result = run({"-n", "2", "--cpu", script.path()});
    EXPECT_EQ(result.status, 127);
    return report_of(result);
  };
  const Script lost("lost", "#!/no/such/interpreter\n");
  const Script windows("windows", "#!/bin/sh\r\necho text\r\n");
  const auto reason = [](const Script& script, const std::string& what) {
    return "cannot start '" + script.path() + "' on host " + host() + ": its " + what;
  };
  expect_contains(report(lost), {reason(lost, "interpreter '/no/such/interpreter' is not there")});
  expect_contains(report(windows), {reason(windows, "first line ends with CR LF")});
}

TEST(Faults, MissingMpirun) {
  const Result result = run({"--mpirun", "/nowhere/mpirun", "-n", "2", "--cpu", "true"});
  EXPECT_EQ(result.status, 127);
  expect_contains(result.err, {"apt-get install openmpi-bin"});
}

TEST(Faults, InsideAnother) {
  const Result result = run({"-n", "2", "--cpu", CATENA_RUN, "-n", "2", "--cpu", "true"});
  EXPECT_EQ(result.status, 2);
  expect_contains(report_of(result), {"this is already a rank of an mpirun or catena-run"});
}

TEST(Faults, HelpStartsNothing) {
  const Result result = run({"--help"});
  EXPECT_EQ(result.status, 0);
  expect_contains(result.out, {"--start-timeout"});
}

TEST(Faults, MpirunThatFailsIsQuoted) {
  const Result result = run({"-n", "2", "--cpu", "--mpi-args", "--no-such-flag", "true"});
  EXPECT_NE(result.status, 0);
  expect_contains(result.err, {"no-such-flag", "catena-run: mpirun ended with exit code"});
}

TEST(Faults, StartTimeoutNamesTheMissingRanks) {
  // An mpirun that never starts anything.
  const Script mpirun("slow-mpirun",
                      "#!/bin/sh\n[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 4.1.4' && "
                      "exit\nexec sleep 30\n");
  const Result result =
      run({"--mpirun", mpirun.path(), "--start-timeout", "0.5", "-n", "3", "--cpu", "true"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err.find("catena-run: ranks 0-2 of 3 did not start within 0.5 s"), 0u)
      << result.err;
  EXPECT_LT(result.seconds, 15);
  const Result away =
      run({"--mpirun", mpirun.path(), "--start-timeout", "0.2", "-H", "h7:1", "--cpu", "true"});
  EXPECT_EQ(away.err.find("catena-run: ranks 0 of 1 (of h7) did not start within 0.2 s"), 0u)
      << away.err;
}

TEST(Faults, WrongWorldSizeIsAnError) {
  // As when the batch system starts the program on its own terms.
  const Script mpirun("one-rank-mpirun",
                      "#!/bin/sh\n[ \"$1\" = --version ] && exec mpirun --version\n"
                      "while [ \"$1\" != -n ]; do shift; done\nshift 2\n"
                      "exec mpirun --allow-run-as-root -n 1 \"$@\"\n");
  const Result result = run({"--mpirun", mpirun.path(), "-n", "3", "--cpu", "sleep", "20"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err.find("catena-run: mpirun started a world of 1 ranks where 3 were asked"), 0u)
      << result.err;
}

TEST(Faults, LogFiles) {
  const TempFolder parent;
  const std::string folder = parent / "logs";
  const Result result =
      run({"-n", "2", "--cpu", "--log-dir", folder, "sh", "-c",
           "echo out $CATENA_RANK; echo err $CATENA_RANK >&2; exit $CATENA_RANK"});
  EXPECT_EQ(result.status, 1);
  expect_contains(report_of(result), {"  log: " + folder + "/rank-1.log\n"});
  expect_contains(read_file(folder + "/rank-1.log"), {"out 1\n", "err 1\n"});
  EXPECT_TRUE(std::filesystem::exists(folder + "/rank-0.log"));
}

// Training is worth more than its log: a warning, at once and at the end, and no failure.
TEST(Faults, LogOnAFullDisk) {
  const TempFolder folder;
  std::filesystem::create_symlink("/dev/full", folder / "rank-1.log");
  const Result result = run({"-n", "2", "--cpu", "--log-dir", folder.path(), "echo", "text"});
  EXPECT_EQ(result.status, 0);
  const std::string problem =
      "the log " + (folder / "rank-1.log") + " ends early: No space left on device\n";
  expect_contains(result.err, {"[1] catena-run: " + problem});
  EXPECT_TRUE(result.err.ends_with("catena-run: rank 1 on " + host() + ": " + problem));
}

TEST(Faults, UnwritableLogFolder) {
  const Result result = run({"-n", "2", "--cpu", "--log-dir", "/proc/catena", "true"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err.find("catena-run: --log-dir '/proc/catena' cannot be written: "), 0u);
}

TEST(Faults, NoLineIsTorn) {
  const Result result = run_fault(3, {"lines", "2000"});
  EXPECT_EQ(result.status, 0);
  std::istringstream lines(result.out);
  std::array<int, 3> next{};
  std::string line;
  while (std::getline(lines, line)) {
    int tag = 0;
    int rank = 0;
    int number = 0;
    if (line.starts_with('['))
      ASSERT_EQ(std::sscanf(line.c_str(), "[%d] rank %d line %d ", &tag, &rank, &number), 3)
          << line;
    else
      ASSERT_EQ(std::sscanf(line.c_str(), "rank %d line %d ", &rank, &number), 2) << line;
    ASSERT_EQ(tag, rank) << line;
    ASSERT_EQ(number, next[static_cast<std::size_t>(rank)]++) << line;
    ASSERT_TRUE(
        line.ends_with(std::string(1, ' ').append(static_cast<std::size_t>(number % 300), 'x')))
        << line;
  }
  EXPECT_EQ(next, (std::array<int, 3>{2000, 2000, 2000}));
}

TEST(Faults, ProgressBarOnATerminal) {
  Launched running({"-n", "2", "--cpu", FAULT_PROGRAM, "progress"}, true);
  const Result result = running.finish();
  EXPECT_EQ(result.status, 0);
  expect_contains(result.out, {"\rstep 1/3", "done, terminal 1, isatty 1\r\n",
                               "[1] done, terminal 1, isatty 0\r\n"});
  EXPECT_EQ(result.out.find("[1] step 1/3"), std::string::npos);
}

TEST(Faults, ProcessesOfARankEndWithIt) {
  const std::string mark = new_mark();
  const Result result = run({"-n", "2", "--cpu", "--env", mark, "sh", "-c",
                             "sleep 77 & setsid sleep 78 & sleep 0.2; exit 0"});
  EXPECT_EQ(result.status, 0);
  EXPECT_LT(result.seconds, 15);
  EXPECT_EQ(count_processes(mark), 0);
}

// What catena-run ends with where a shell has opened its streams in this way, and what it says.
Result run_by_shell(const std::string& arguments, const std::string& streams) {
  const TempFolder folder;
  const std::string command =
      "'" CATENA_RUN "' " + arguments + " 2>'" + (folder / "err") + "' " + streams;
  Result result;
  result.status = WEXITSTATUS(std::system(command.c_str()));
  result.err = read_file(folder / "err");
  return result;
}

TEST(Faults, OutputThatCannotBeWritten) {
  const Result closed = run_by_shell("-n 2 --cpu echo hello", ">&-");
  EXPECT_EQ(closed.status, 1);
  EXPECT_EQ(closed.err, "catena-run: standard output cannot be written: Bad file descriptor\n");
  // Known at the end only.
  const Result full = run_by_shell("-n 1 --cpu printf hello", ">/dev/full");
  EXPECT_EQ(full.status, 1);
  EXPECT_EQ(full.err, "catena-run: standard output cannot be written: No space left on device\n");
  EXPECT_EQ(run_by_shell("-n 2 --cpu true", ">&-").status, 0) << "nothing is lost";
}

TEST(Faults, TheReportBeginsALine) {
  const Result one = run_by_shell("-n 1 --cpu sh -c 'printf loss; exit 3'", ">&2");
  EXPECT_EQ(one.err.find("loss\n" + first_failure(0, "exit code 3")), 0u) << one.err;
  EXPECT_EQ(run_by_shell("-n 1 --cpu printf loss", ">&2").err, "loss") << "nothing follows";
}

TEST(Faults, OutputClosedByItsReader) {
  const std::string mark = new_mark();
  const std::string command =
      std::string(CATENA_RUN) + " -n 2 --cpu --env " + mark +
      " sh -c 'while :; do echo line; sleep 0.05; done' 2>/dev/null | head -2";
  const auto start = Clock::now();
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_LT(seconds_since(start), 15);
  EXPECT_EQ(count_processes(mark), 0);
}

TEST(Faults, StandardInputReachesRankZero) {
  const TempFolder folder;
  const std::string command =
      "echo question | " CATENA_RUN " -n 2 --cpu sh -c 'read x; echo got $x' > " + (folder / "out");
  EXPECT_NE(std::system(command.c_str()), -1);
  expect_contains(read_file(folder / "out"), {"got question\n"});
}

#ifdef FAULT_MPI_PROGRAM
Result run_mpi(const std::string& mode) {
  return run({"-n", "3", "--cpu", FAULT_MPI_PROGRAM, mode});
}

TEST(FaultsMpi, AllReduce) {
  const Result result = run_mpi("none");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "sum 6 of 3 ranks\n");
  EXPECT_EQ(result.err, "");
}

TEST(FaultsMpi, Abort) {
  const Result result = run_mpi("abort");
  EXPECT_EQ(result.status, 7);
  // Open MPI 4 now and then loses its own notice about the abort; the exit code remains.
  const bool lost = report_of(result).starts_with(first_failure(2, "exit code 7"));
  EXPECT_TRUE(lost ||
              report_of(result).starts_with(first_failure(2, "MPI_Abort with error code 7")))
      << result.err;
  EXPECT_LT(result.seconds, 15);
}

TEST(FaultsMpi, Killed) {
  const Result result = run_mpi("kill");
  EXPECT_EQ(result.status, 128 + SIGKILL);
  EXPECT_EQ(report_of(result).find(first_failure(2, "SIGKILL (killed)")), 0u);
  EXPECT_EQ(result.err.find("mpirun"), std::string::npos) << "mpirun's own notices are withheld";
}

// MPI_Init fails, which MPI says through mpirun and not in the rank. It has two notices for it,
// whose order differs from run to run. One time in twenty mpirun ends before they reach it.
TEST(FaultsMpi, WhatMpiSaysThroughMpirunIsRepeated) {
  const Setting btl("OMPI_MCA_btl", "tcp");
  Result result;
  std::string report;
  size_t words = std::string::npos;
  for (int attempt = 0; attempt < 3 && words == std::string::npos; ++attempt) {
    result = run_mpi("none");
    EXPECT_EQ(result.status, 1);
    report = report_of(result);
    words = report.find("  mpirun said:\n    ");
  }
  ASSERT_NE(words, std::string::npos) << result.err;
  EXPECT_TRUE(report.find("At least one pair of MPI processes", words) != std::string::npos ||
              report.find("MPI_INIT has failed because", words) != std::string::npos)
      << result.err;
}

#endif

// A program that uses catena: the status board knows that it is in MPI_Init, whenever mpirun
// speaks.
#ifdef STEPS_PROGRAM
TEST(FaultsMpi, VariablesThatLeaveOutWhatRanksNeedAreNamed) {
  for (const std::string name : {"btl", "pml"}) {
    const Setting setting("OMPI_MCA_" + name, name == "btl" ? "self" : "cm");
    const std::string report = report_of(run({"-n", "3", "--cpu", STEPS_PROGRAM, "2"}));
    expect_contains(report, {"\n  set for Open MPI: OMPI_MCA_" + name + "="});
    EXPECT_EQ(report.find("/dev/shm is"), std::string::npos) << report;
  }
}

// mpirun and the ranks see another /dev/shm than this process.
TEST(FaultsMpi, SharedMemoryThatIsTooSmallIsNamed) {
  if (std::system("unshare -m mount -t tmpfs tmpfs /dev/shm 2>/dev/null") != 0)
    GTEST_SKIP() << "no mount namespaces here";
  for (const std::string size : {"64k", "1m"}) {
    const Script mpirun("small-mpirun",
                        "#!/bin/sh\nexec unshare -m sh -c 'mount -t tmpfs -o size=" + size +
                            " tmpfs /dev/shm && exec mpirun \"$@\"' sh \"$@\"\n");
    const Result result = run({"-n", "3", "--cpu", "--mpirun", mpirun.path(), STEPS_PROGRAM, "2"});
    EXPECT_EQ(result.status, 1);
    expect_contains(report_of(result),
                    {"/dev/shm is too small: ", size == "1m" ? "1.0 MiB" : "64 KiB",
                     "each of 3 ranks needs 4.0 MiB", "--shm-size=1g"});
  }
}

#endif

}  // namespace
}  // namespace catena::launch::test
