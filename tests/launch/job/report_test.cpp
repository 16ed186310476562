#include "job/report.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "starter/mpirun_starter.h"
#include "starter/srun_starter.h"

namespace catena::launch {
namespace {

JobOutcome job_of_mpirun() {
  JobOutcome job;
  job.terms = MpirunStarter("mpirun").terms();
  return job;
}

// A job of ranks that all ended well.
JobOutcome good_job(int ranks) {
  JobOutcome job = job_of_mpirun();
  for (int rank = 0; rank < ranks; ++rank) {
    RankOutcome outcome;
    outcome.start.emplace();
    outcome.start->rank = rank;
    outcome.start->host = "h";
    outcome.end.emplace();
    outcome.end->rank = rank;
    outcome.end->host = "h";
    outcome.end->end_time = 1000;
    job.ranks.push_back(outcome);
  }
  return job;
}

EndReport& end_of(JobOutcome& job, int rank) {
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

TEST(Report, CrashInMpiInitUnderSlurmIsWorthANewStart) {
  const char* const advice = "start the job again";
  JobOutcome job = good_job(2);
  job.terms = SrunStarter().terms();
  EndReport& end = end_of(job, 1);
  end.signal = SIGSEGV;
  end.phase = comm::Phase::joining;
  EXPECT_NE(make_report(job).text.find(advice), std::string::npos) << make_report(job).text;
  end.phase = comm::Phase::running;
  EXPECT_EQ(make_report(job).text.find(advice), std::string::npos);
  end.phase = comm::Phase::joining;
  job.terms = MpirunStarter("mpirun").terms();
  EXPECT_EQ(make_report(job).text.find(advice), std::string::npos);
}

// All ranks have reported that they ended well: that is what the job was for.
TEST(Report, StarterThatStayedIsNoFailure) {
  JobOutcome job = good_job(2);
  job.stayed.emplace();
  job.stayed->starter = 12;
  job.stayed->starter_stopped = true;
  job.stayed->seconds = 10.3;
  const Report report = make_report(job);
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(
      report.text,
      "catena-run: all ranks ended well; mpirun (process 12), which is stopped (SIGSTOP), did "
      "not end within 10 s of them and was killed\n");
}

// As in MPI_Finalize: the ranks see each other wait, and it is mpirun that they wait for.
TEST(Report, StoppedStarterIsNamedBeforeNobody) {
  JobOutcome job = good_job(2);
  for (const int rank : {0, 1}) {
    EndReport& end = end_of(job, rank);
    end.exit_code = 1;
    end.peer_error = "rank " + std::to_string(rank) + " has been inside MPI_Finalize";
    end.peer_error_time = 500 + static_cast<std::uint64_t>(rank);
  }
  EXPECT_EQ(first_line(job).find("catena-run: no rank is known to be at fault"), 0u);
  job.hang.emplace();
  job.hang->kind = Hang::Kind::starter_keeps_rank;
  job.hang->starter = 12;
  job.hang->starter_stopped = true;
  job.hang->operation = end_of(job, 0).peer_error;
  EXPECT_EQ(first_line(job),
            "catena-run: mpirun (process 12), which is stopped (SIGSTOP), does not answer: rank 0 "
            "has been inside MPI_Finalize");
  EXPECT_EQ(make_report(job).exit_code, 1);
  end_of(job, 1).culprit_rank = 0;
  EXPECT_EQ(first_line(job).find("catena-run: rank 0 on h failed first"), 0u)
      << "a rank that is named counts more";
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
  end_of(job, 1).culprit_rank = 1;  // it sees that it is the odd one
  end_of(job, 2).culprit_rank = 1;
  EXPECT_EQ(first_line(job),
            "catena-run: rank 1 on h failed first: they differ (noticed by rank 2)");
  EXPECT_EQ(make_report(job).exit_code, 7);
  // MPI_Abort of a victim tells nothing new.
  job.findings.abort_rank = 2;
  job.findings.abort_code = 1;
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
  end_of(job, 1).last_lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
  EXPECT_NE(make_report(job).text.find("error:\n    2\n    3\n"), std::string::npos)
      << "eight lines";
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
  end_of(job, 0).culprit_rank = 1;
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
    end_of(job, rank).culprit_rank = 2;
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
  job.starter_code = 137;
  job.findings.killed_rank = 1;
  job.findings.killed_signal = SIGKILL;
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
  job.findings.abort_rank = 1;
  job.findings.abort_code = 7;
  EXPECT_EQ(first_line(job), "catena-run: rank 1 on h failed first: MPI_Abort with error code 7");
  EXPECT_EQ(make_report(job).exit_code, 7);
}

TEST(Report, MpirunAlone) {
  JobOutcome job = job_of_mpirun();
  job.ranks.resize(3);
  job.starter_code = 1;
  EXPECT_EQ(make_report(job).exit_code, 1);
  EXPECT_EQ(make_report(job).text,
            "catena-run: mpirun ended with exit code 1 and no rank reported a failure\n"
            "  never started: ranks 0-2\n");
  job.starter_code = -SIGKILL;
  EXPECT_EQ(make_report(job).exit_code, 1);
  EXPECT_EQ(first_line(job),
            "catena-run: mpirun was ended by SIGKILL (killed) and no rank reported a failure");
  job.starter_code = 0;
  EXPECT_EQ(make_report(job).exit_code, 1) << "ranks that never were are no success";
}

// Where it knows the only cause: it failed itself, or MPI did in a rank that said nothing.
TEST(Report, TheStartersOwnWordsAreRepeated) {
  JobOutcome job = job_of_mpirun();
  job.ranks.resize(2);
  job.starter_code = 1;
  for (const char* line : {"illegal character in node name", "", "  node: my_host", " \t"})
    job.words.add(line);
  const std::string words =
      "  mpirun said:\n    illegal character in node name\n      node: my_host\n";
  EXPECT_EQ(make_report(job).text,
            "catena-run: mpirun ended with exit code 1 and no rank reported a failure\n" + words +
                "  never started: ranks 0-1\n");
  job.findings.no_connection = true;
  EXPECT_NE(make_report(job).text.find("\n  there is no ssh here"), std::string::npos);
  job.given_up = {.missing = {0, 1}};
  EXPECT_TRUE(make_report(job).text.ends_with(words)) << make_report(job).text;

  JobOutcome failed = good_job(2);
  failed.ranks[1].end->exit_code = 1;
  for (int k = 0; k < 40; ++k) failed.words.add("line " + std::to_string(k));
  const std::string text = make_report(failed).text;
  for (const char* part :
       {"  mpirun said:\n    line 0\n", "line 23\n    ...\n    line 32\n", "line 39\n"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  failed.ranks[1].end->last_lines = "the program's own";
  EXPECT_EQ(make_report(failed).text.find("said"), std::string::npos);
}

TEST(Report, HostsThatDoNotAnswerAreNamed) {
  JobOutcome job = job_of_mpirun();
  job.ranks.resize(4);
  job.planned_hosts = {"localhost", "a", "a", "b"};
  job.starter_code = 255;
  EXPECT_EQ(first_line(job), "catena-run: hosts a, b have started no rank");
  EXPECT_EQ(make_report(job).exit_code, 1) << "what mpirun ends with is a matter of chance";
  job.findings.unreached_reason = "Host key verification failed.";
  EXPECT_EQ(first_line(job),
            "catena-run: hosts a, b could not be reached: Host key verification failed.");
  job.findings.unreached_host = "b";
  job.findings.unreached_reason = "ssh: connect to host b port 22: No route to host";
  EXPECT_EQ(make_report(job).text,
            "catena-run: host b could not be reached: ssh: connect to host b port 22: No route to "
            "host\n"
            "  mpirun ended with exit code 255 and no rank reported a failure\n"
            "  every host must answer to ssh without a password (try: ssh b true) and have "
            "catena-run in the same place\n"
            "  never started: ranks 0-3\n");
  job.findings.no_connection = true;
  job.findings.unreached_host = "";
  job.ranks[3].start.emplace();
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
    job.ranks[rank].start->host = "away";
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
  later.final_silences["away"] = 1;
  EXPECT_EQ(first_line(later), first_line(job_with_silent_host(1))) << "one report is missing";
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

// srun had asked the ranks of this host to end before any of them noticed.
TEST(Report, AHostThatTheStarterFoundGone) {
  JobOutcome job = job_with_silent_host(1);
  job.ended_by_starter = true;
  job.starter_code = 137;
  for (const int rank : {0, 1}) {
    end_of(job, rank).peer_error = "";
    end_of(job, rank).exit_code = 0;
    end_of(job, rank).signal = SIGTERM;
    end_of(job, rank).stop_time = 20'000'000'000u;
  }
  EXPECT_EQ(first_line(job).find("catena-run: mpirun ended with exit code 137"), 0u);
  job.final_silences["away"] = 4;
  const std::string text = make_report(job).text;
  EXPECT_EQ(text.find("catena-run: host away (ranks 2-3) does not answer: no word came of how its "
                      "ranks ended; it is frozen or cut off\n"
                      "  mpirun ended with exit code 137 and no rank reported a failure\n"),
            0u)
      << text;
  EXPECT_EQ(make_report(job).exit_code, 1);
}

TEST(Report, AHostWhoseDaemonWasLost) {
  JobOutcome job = job_with_silent_host(0);
  job.starter_code = 205;
  job.findings.daemons_failed = true;
  EXPECT_EQ(first_line(job),
            "catena-run: host away (ranks 2-3) was lost: the daemon of Open MPI there has ended, "
            "or the connection to it (ssh) has");
  EXPECT_EQ(make_report(job).exit_code, 1);
  job.ranks[3].start->host = "gone";
  EXPECT_EQ(first_line(job).find("was lost"), std::string::npos) << "either of two hosts";
  job.ranks[3].start->host = "away";
  job.findings.daemons_failed = false;
  EXPECT_EQ(first_line(job).find("catena-run: no rank is known to be at fault: other ranks"), 0u)
      << "mpirun itself was killed";
  job.findings.broken_host = "away";
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
  end_of(job, 0).culprit_rank = 1;
  end_of(job, 1).exit_code = 5;
  end_of(job, 1).stop_time = 110;
  end_of(job, 1).end_time = 120;
  EXPECT_EQ(first_line(job).find("catena-run: rank 1 on h failed first"), 0u);
  EXPECT_EQ(make_report(job).exit_code, 5);
}

TEST(Report, JobsThatHung) {
  JobOutcome job = good_job(2);
  job.starter_code = 137;
  job.hang.emplace();
  job.hang->kind = Hang::Kind::rank_in_library;
  job.hang->rank = 1;
  job.hang->operation = "rank 1 has been inside one call of MPI for 15 s";
  EXPECT_EQ(
      first_line(job),
      "catena-run: rank 1 on h failed first: rank 1 has been inside one call of MPI for 15 s");
  EXPECT_EQ(make_report(job).exit_code, 1);
  job.hang->kind = Hang::Kind::starter_keeps_end;
  job.hang->starter = 7;
  job.hang->seconds = 15.4;
  EXPECT_EQ(first_line(job),
            "catena-run: mpirun (process 7), which still runs, does not answer: the process of "
            "rank 1 ended 15 s ago and mpirun has not said so");
  job.hang->kind = Hang::Kind::host_silent;
  job.hang->host = "h";
  EXPECT_EQ(first_line(job),
            "catena-run: host h (ranks 0-1) does not answer: nothing was heard of it for 15 s; it "
            "is frozen or cut off, or its daemon of Open MPI is");
}

TEST(Report, JobsThatTheLauncherGaveUp) {
  JobOutcome job = good_job(4);
  job.given_up.emplace();
  job.given_up->why = GivenUp::Why::ranks_missing;
  job.given_up->missing = {1, 2};
  job.given_up->silent = {"b"};
  job.start_timeout = 2.5;
  EXPECT_EQ(make_report(job).exit_code, 1);
  EXPECT_EQ(first_line(job),
            "catena-run: ranks 1-2 of 4 (of b) did not start within 2.5 s; check that the hosts "
            "answer to ssh without a password and have catena-run in the same place, or raise "
            "--start-timeout");
  job.given_up->why = GivenUp::Why::world_size;
  job.given_up->world_size = 1;
  EXPECT_EQ(first_line(job),
            "catena-run: mpirun started a world of 1 ranks where 4 were asked for; check -n, the "
            "hosts and the batch system's allocation");
  job.given_up->why = GivenUp::Why::files_differ;
  job.given_up->difference = {"one.sh", "a", "9-1", "b", "none"};
  EXPECT_EQ(first_line(job),
            "catena-run: one.sh differs between hosts: a has 9-1, b has none (size-hash); copy the "
            "same files to all hosts");
  job.given_up->why = GivenUp::Why::output_failed;
  job.given_up->error = ENOSPC;
  EXPECT_EQ(first_line(job),
            "catena-run: standard output cannot be written: No space left on device");
}

// What the starter said is shown when there is nothing else.
TEST(Report, WordsOfTheStarter) {
  JobOutcome job = good_job(2);
  job.withheld = "mpirun has words\n";
  EXPECT_EQ(make_report(job).text, "");
  job.starter_code = 3;
  EXPECT_EQ(make_report(job).text,
            "mpirun has words\n"
            "catena-run: mpirun ended with exit code 3 and no rank reported a failure\n");
  end_of(job, 1).exit_code = 4;
  EXPECT_EQ(make_report(job).text.find("words"), std::string::npos);
}

// Another starter has other words.
TEST(Report, OtherStarters) {
  JobOutcome job = good_job(2);
  job.terms.name = "srun";
  job.starter_code = 3;
  EXPECT_EQ(first_line(job),
            "catena-run: srun ended with exit code 3 and no rank reported a failure");
}

TEST(Report, RanksThatDidNotMeetAreToldOfTheNetwork) {
  JobOutcome job = good_job(2);
  job.network = "10.1.0.0/24";
  end_of(job, 1).exit_code = 1;
  EXPECT_EQ(make_report(job).text.find("network"), std::string::npos);
  end_of(job, 1).phase = comm::Phase::joining;
  EXPECT_NE(make_report(job).text.find("  network: 10.1.0.0/24\n"), std::string::npos);
}

TEST(Report, CausesOfAFailedMpiInitComeBeforeItsWords) {
  JobOutcome job = good_job(2);
  job.transports = "OMPI_MCA_btl=self";
  end_of(job, 0).exit_code = 1;
  end_of(job, 1).shared_memory = "/dev/shm is too small";
  job.words.add("long words");
  const std::string other = make_report(job).text;
  EXPECT_EQ(other.find("shm"), std::string::npos) << "not in MPI_Init: " << other;
  EXPECT_EQ(other.find("OMPI"), std::string::npos) << "not in MPI_Init: " << other;
  end_of(job, 0).phase = comm::Phase::joining;
  const std::string joining = make_report(job).text;
  EXPECT_NE(joining.find("exit code 1\n  on h, /dev/shm is too small\n"
                         "  set for Open MPI: OMPI_MCA_btl=self; "),
            std::string::npos)
      << joining;
  EXPECT_LT(joining.find("OMPI_MCA_btl"), joining.find("long words"));
  end_of(job, 0).phase = comm::Phase::launched;
  job.findings.mpi_init_failed = true;  // of a program that does not use catena
  EXPECT_EQ(make_report(job).text, joining);
}

TEST(Report, SharedMemoryWithoutRoomForTheStatusBoardIsNamed) {
  JobOutcome job = good_job(1);
  end_of(job, 0).exit_code = 1;
  end_of(job, 0).shared_memory = "/dev/shm is too small";
  EXPECT_NE(make_report(job).text.find("  on h, /dev/shm is too small\n"), std::string::npos);
  end_of(job, 0).phase = comm::Phase::launched;
  EXPECT_EQ(make_report(job).text.find("/dev/shm"), std::string::npos);
}

// Its own error says more.
TEST(Report, RanksThatFailByThemselvesWhileJoiningAreNotToldOfTransports) {
  JobOutcome job = good_job(1);
  job.transports = "OMPI_MCA_btl=self";
  end_of(job, 0).exit_code = 1;
  end_of(job, 0).phase = comm::Phase::joining;
  end_of(job, 0).error = "no such device";
  end_of(job, 0).error_time = 5;
  EXPECT_EQ(make_report(job).text.find("OMPI"), std::string::npos);
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

}  // namespace
}  // namespace catena::launch
