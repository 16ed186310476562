#include "job/report.h"

#include <gtest/gtest.h>

#include <csignal>

#include "rank/exception_text.h"

namespace catena::launch {
namespace {

// A job of ranks that all ended well.
JobOutcome good_job(int ranks) {
  JobOutcome job;
  for (int rank = 0; rank < ranks; ++rank) {
    RankOutcome outcome;
    outcome.hello.emplace();
    outcome.hello->rank = rank;
    outcome.hello->host = "h";
    outcome.end.emplace();
    outcome.end->rank = rank;
    outcome.end->host = "h";
    outcome.end->end_time = 1000;
    job.ranks.push_back(outcome);
  }
  return job;
}

EndRecord& end_of(JobOutcome& job, int rank) {
  return *job.ranks[static_cast<std::size_t>(rank)].end;
}

std::string first_line(const JobOutcome& job) {
  const std::string text = make_report(job).text;
  return text.substr(0, text.find('\n'));
}

TEST(Report, NothingToSay) {
  const Report report = make_report(good_job(3));
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(report.text, "");
}

TEST(Report, EarliestFailureWins) {
  JobOutcome job = good_job(3);
  end_of(job, 0).exit_code = 3;
  end_of(job, 0).end_time = 500;
  end_of(job, 2).signal = SIGSEGV;
  end_of(job, 2).end_time = 400;
  EXPECT_EQ(first_line(job), "catena-run: rank 2 on h failed first: SIGSEGV (segmentation fault)");
  EXPECT_EQ(make_report(job).exit_code, 139);
}

TEST(Report, VictimsThatKnowWhomToBlameAreHeard) {
  JobOutcome job = good_job(3);
  for (int rank : {0, 1, 2}) {
    end_of(job, rank).exit_code = 7;
    end_of(job, rank).peer_error = "they differ";
    end_of(job, rank).peer_error_time = std::uint64_t(100 + rank);
  }
  end_of(job, 1).blamed_rank = 1;  // it sees that it is the odd one
  end_of(job, 2).blamed_rank = 1;
  EXPECT_EQ(first_line(job),
            "catena-run: rank 1 on h failed first: they differ (noticed by rank 2)");
  EXPECT_EQ(make_report(job).exit_code, 7);
  // MPI_Abort of a victim tells nothing new.
  job.hints.abort_rank = 2;
  job.hints.abort_code = 1;
  EXPECT_EQ(make_report(job).exit_code, 7);
}

TEST(Report, BacktracesDoNotCrowdOutTheLastWords) {
  JobOutcome job = good_job(2);
  end_of(job, 1).signal = SIGSEGV;
  end_of(job, 1).last_lines =
      "epoch 3\n[h:12] *** Process received signal ***\n[h:12] Signal: 11\n"
      "[h:12] [ 0] /lib/libc.so.6(+0x3c)[0x7f]\n[note] kept\n";
  const std::string text = make_report(job).text;
  EXPECT_NE(text.find("    epoch 3\n    [note] kept\n"), std::string::npos) << text;
  end_of(job, 1).last_lines = "[h:12] *** Process received signal ***\n";
  EXPECT_EQ(make_report(job).text.find("standard error"), std::string::npos);
}

TEST(Report, ARankThatWasStoppedWhileItFailedKeepsItsExitCode) {
  JobOutcome job = good_job(2);
  end_of(job, 1).error = "no disk";
  end_of(job, 1).error_time = 50;
  end_of(job, 1).stop_time = 60;
  end_of(job, 1).signal = SIGABRT;
  EXPECT_EQ(make_report(job).exit_code, 134);
  end_of(job, 1).signal = SIGTERM;  // the launcher's
  EXPECT_EQ(make_report(job).exit_code, 1);
}

TEST(Report, StoppedRanksDidNotFail) {
  JobOutcome job = good_job(2);
  end_of(job, 0).signal = SIGTERM;
  end_of(job, 0).end_time = 100;
  end_of(job, 0).stop_time = 90;
  end_of(job, 1).exit_code = 4;
  end_of(job, 1).end_time = 200;
  EXPECT_EQ(first_line(job), "catena-run: rank 1 on h failed first: exit code 4");
}

TEST(Report, ErrorsThatCameOfTheStopDoNotCount) {
  JobOutcome job = good_job(2);
  end_of(job, 0).exit_code = 1;
  end_of(job, 0).error = "interrupted";
  end_of(job, 0).error_time = 95;
  end_of(job, 0).stop_time = 90;
  end_of(job, 1).exit_code = 4;
  end_of(job, 1).end_time = 200;
  EXPECT_EQ(first_line(job), "catena-run: rank 1 on h failed first: exit code 4");
}

TEST(Report, VictimsComeLast) {
  JobOutcome job = good_job(2);
  end_of(job, 0).exit_code = 1;
  end_of(job, 0).end_time = 50;
  end_of(job, 0).peer_error = "rank 1 is gone";
  end_of(job, 0).peer_error_time = 40;
  end_of(job, 0).blamed_rank = 1;
  end_of(job, 1).signal = SIGKILL;
  end_of(job, 1).end_time = 60;
  EXPECT_EQ(first_line(job), "catena-run: rank 1 on h failed first: SIGKILL (killed)");
}

TEST(Report, VictimsNameTheSilentRank) {
  JobOutcome job = good_job(3);
  for (const int rank : {0, 1}) {
    end_of(job, rank).exit_code = 9;
    end_of(job, rank).peer_error = "no progress in all_reduce #5\nfor 300 s";
    end_of(job, rank).peer_error_time = 40 + static_cast<std::uint64_t>(rank);
    end_of(job, rank).blamed_rank = 2;
  }
  job.ranks[2].end.reset();
  EXPECT_EQ(first_line(job),
            "catena-run: rank 2 on h failed first: no progress in all_reduce #5 for 300 s (noticed "
            "by rank 0)");
  EXPECT_EQ(make_report(job).exit_code, 9);
}

TEST(Report, RankProcessThatWasKilled) {
  JobOutcome job = good_job(2);
  job.ranks[1].end.reset();
  job.ranks[1].operation_then = "all_reduce #5 sum float32[10]";
  job.mpirun_status = 137;
  job.hints.killed_rank = 1;
  job.hints.killed_signal = SIGKILL;
  const Report report = make_report(job);
  EXPECT_EQ(report.exit_code, 137);
  EXPECT_EQ(report.text,
            "catena-run: rank 1 on h failed first: SIGKILL (killed)\n"
            "  it was doing: all_reduce #5 sum float32[10]\n"
            "  rank 0: ended with exit code 0\n");
}

TEST(Report, AbortOfARankThatCouldNotReport) {
  JobOutcome job = good_job(2);
  job.ranks[1].end.reset();
  job.hints.abort_rank = 1;
  job.hints.abort_code = 7;
  EXPECT_EQ(first_line(job), "catena-run: rank 1 on h failed first: MPI_Abort with error code 7");
  EXPECT_EQ(make_report(job).exit_code, 7);
}

TEST(Report, MpirunAlone) {
  JobOutcome job;
  job.ranks.resize(3);
  job.mpirun_status = 1;
  EXPECT_EQ(make_report(job).exit_code, 1);
  EXPECT_EQ(make_report(job).text,
            "catena-run: mpirun ended with exit code 1 and no rank reported a failure\n"
            "  never started: ranks 0-2\n");
  job.mpirun_status = 0;
  EXPECT_EQ(make_report(job).exit_code, 1) << "ranks that never were are no success";
}

TEST(Report, HostsThatDoNotAnswerAreNamed) {
  JobOutcome job;
  job.ranks.resize(4);
  job.planned_hosts = {"localhost", "a", "a", "b"};
  job.mpirun_status = 255;
  EXPECT_EQ(first_line(job),
            "catena-run: hosts a, b have started no rank; what mpirun says about it stands above");
  EXPECT_EQ(make_report(job).exit_code, 1) << "what mpirun ends with is a matter of chance";
  job.hints.unreached_reason = "Host key verification failed.";
  EXPECT_EQ(first_line(job),
            "catena-run: hosts a, b could not be reached: Host key verification failed.");
  job.hints.unreached_host = "b";
  job.hints.unreached_reason = "ssh: connect to host b port 22: No route to host";
  EXPECT_EQ(make_report(job).text,
            "catena-run: host b could not be reached: ssh: connect to host b port 22: No route to "
            "host\n"
            "  mpirun ended with exit code 255 and no rank reported a failure\n"
            "  every host must answer to ssh without a password (try: ssh b true) and have "
            "catena-run in the same place\n"
            "  never started: ranks 0-3\n");
  job.hints.no_ssh = true;
  job.hints.unreached_host = "";
  job.ranks[3].hello.emplace();
  EXPECT_EQ(first_line(job),
            "catena-run: host a cannot be reached: there is no ssh here (apt-get install "
            "openssh-client)");
}

TEST(Report, Signals) {
  JobOutcome job = good_job(1);
  job.stop_signal = SIGINT;
  EXPECT_EQ(make_report(job).exit_code, 130);
  job.stop_signal = SIGTERM;
  EXPECT_EQ(make_report(job).exit_code, 143);
}

// Two ranks on this host that saw a failure, two on another that say nothing more.
JobOutcome job_with_silent_host(double seconds) {
  JobOutcome job = good_job(4);
  for (const int rank : {0, 1}) {
    end_of(job, rank).exit_code = 1;
    end_of(job, rank).peer_error = "other ranks did not come to call #34";
    end_of(job, rank).peer_error_time = 20'000'000'000u;
  }
  for (const std::size_t rank : {2, 3}) {
    job.ranks[rank].hello->host = "away";
    job.ranks[rank].end.reset();
  }
  job.silences["away"] = seconds;
  job.silences_time = 20'000'000'000u;
  return job;
}

TEST(Report, AHostThatFellSilentBeforeTheFirstFailure) {
  EXPECT_EQ(
      first_line(job_with_silent_host(9)),
      "catena-run: host away (ranks 2-3) does not answer: nothing was heard of it for 9 s; it "
      "is frozen or cut off, or its daemon of Open MPI is");
  EXPECT_EQ(make_report(job_with_silent_host(9)).exit_code, 1);
  EXPECT_EQ(first_line(job_with_silent_host(1)),
            "catena-run: no rank is known to be at fault: other ranks did not come to call #34 "
            "(noticed by rank 0 on h)")
      << "the host spoke a second ago";
  EXPECT_EQ(make_report(job_with_silent_host(1)).exit_code, 1);
  JobOutcome later = job_with_silent_host(1);
  later.final_silences["away"] = 4;
  EXPECT_EQ(first_line(later),
            "catena-run: host away (ranks 2-3) does not answer: no word came of how its ranks "
            "ended; it is frozen or cut off")
      << "it could still say how its ranks ended, and did not";
  JobOutcome crash = job_with_silent_host(9);
  end_of(crash, 0).peer_error = "";
  end_of(crash, 0).signal = SIGSEGV;
  end_of(crash, 0).end_time = 12'000'000'000u;
  EXPECT_EQ(first_line(crash).find("catena-run: rank 0 on h failed first: SIGSEGV"), 0u)
      << "1 s after the last sign of life of the other host";
  end_of(crash, 0).end_time = 15'000'000'000u;
  EXPECT_EQ(first_line(crash).find("catena-run: host away"), 0u) << "4 s after it";
}

TEST(Report, AHostWhoseDaemonWasLost) {
  JobOutcome job = job_with_silent_host(0);
  job.mpirun_status = 205;
  job.hints.daemons_failed = true;
  EXPECT_EQ(first_line(job),
            "catena-run: host away (ranks 2-3) was lost: the daemon of Open MPI there has ended, "
            "or the connection to it (ssh) has");
  EXPECT_EQ(make_report(job).exit_code, 1);
  job.hints.daemons_failed = false;
  EXPECT_EQ(first_line(job).find("catena-run: no rank is known to be at fault: other ranks"), 0u)
      << "mpirun itself was killed";
  job.hints.broken_host = "away";
  job.ranks[0].end.reset();
  job.ranks[1].end.reset();
  EXPECT_EQ(first_line(job).find("catena-run: host away (ranks 2-3) cannot start catena-run"), 0u);
  EXPECT_EQ(make_report(job).exit_code, 127);
}

TEST(Report, ARankThatWasOnItsWayOutKeepsItsCode) {
  JobOutcome job = good_job(2);
  end_of(job, 0).signal = SIGABRT;
  end_of(job, 0).peer_error = "rank 1 called close";
  end_of(job, 0).peer_error_time = 100;
  end_of(job, 0).blamed_rank = 1;
  end_of(job, 1).exit_code = 5;
  end_of(job, 1).stop_time = 110;
  end_of(job, 1).end_time = 120;
  EXPECT_EQ(first_line(job).find("catena-run: rank 1 on h failed first"), 0u);
  EXPECT_EQ(make_report(job).exit_code, 5);
}

TEST(Report, JobsThatStoodStill) {
  JobOutcome job = good_job(2);
  job.mpirun_status = 137;
  job.standstill = Standstill{1, "", "rank 1 has been inside one call of MPI for 15 s"};
  EXPECT_EQ(
      first_line(job),
      "catena-run: rank 1 on h failed first: rank 1 has been inside one call of MPI for 15 s");
  EXPECT_EQ(make_report(job).exit_code, 1);
  job.standstill = Standstill{-1, "", "mpirun (process 7) does not answer"};
  EXPECT_EQ(first_line(job), "catena-run: mpirun (process 7) does not answer");
  job.standstill = Standstill{-1, "h", "nothing was heard of it for 15 s"};
  EXPECT_EQ(first_line(job).find("catena-run: host h (ranks 0-1) does not answer"), 0u);
}

TEST(Report, RanksThatDidNotMeetAreToldOfTheNetwork) {
  JobOutcome job = good_job(2);
  job.network = "10.1.0.0/24";
  end_of(job, 1).exit_code = 1;
  EXPECT_EQ(make_report(job).text.find("network"), std::string::npos);
  end_of(job, 1).phase = "joining";
  EXPECT_NE(make_report(job).text.find("  network: 10.1.0.0/24\n"), std::string::npos);
}

TEST(Report, WhatRanksSayMovesNoCursor) {
  JobOutcome job = good_job(1);
  end_of(job, 0).exit_code = 1;
  end_of(job, 0).error = "red \x1b[31m";
  end_of(job, 0).error_time = 5;
  end_of(job, 0).last_lines = "bell \a\n";
  EXPECT_EQ(make_report(job).text.find_first_of("\x1b\a"), std::string::npos);
}

TEST(Report, RankLists) {
  EXPECT_EQ(format_ranks({0, 2, 3, 4, 7}), "0, 2-4, 7");
  EXPECT_EQ(format_ranks({}), "");
}

TEST(Report, Exceptions) {
  EXPECT_EQ(exception_text("noise\nterminate called after throwing an instance of "
                           "'std::runtime_error'\n  what():  boom\n"),
            "std::runtime_error: boom");
  EXPECT_EQ(exception_text("terminate called after throwing an instance of 'int'\n"), "int");
  EXPECT_EQ(exception_text("nothing of the kind"), "");
}

TEST(Record, ComesBackWhole) {
  EndRecord end;
  end.rank = 5;
  end.host = "h";
  end.exit_code = 3;
  end.signal = 11;
  end.core_dumped = true;
  end.not_started = true;
  end.stop_time = 12;
  end.end_time = 1234567890123456789u;
  end.error = "tab\tline\nend%";
  end.blamed_rank = 2;
  end.last_lines = "a\nb\n";
  const EndRecord again = parse_end(to_line(end));
  EXPECT_EQ(to_line(again), to_line(end));
  EXPECT_EQ(again.error, end.error);
  EXPECT_EQ(again.end_time, end.end_time);
  EXPECT_EQ(again.blamed_rank, 2);
  HelloRecord hello;
  hello.rank = 1;
  hello.pid = 77;
  hello.board = "/proc/1/fd/3";
  EXPECT_EQ(to_line(parse_hello(to_line(hello))), to_line(hello));
}

}  // namespace
}  // namespace catena::launch
