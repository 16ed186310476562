// Who failed first, as values.
#include "job/verdict.h"

#include <gtest/gtest.h>

#include <csignal>

namespace catena::launch {
namespace {

using Ending = Verdict::Ending;
using Cause = Verdict::Cause;

JobOutcome good_job(int ranks) {
  JobOutcome job;
  job.ranks.resize(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    RankOutcome& outcome = job.ranks[static_cast<std::size_t>(rank)];
    outcome.start.emplace().rank = rank;
    outcome.end.emplace().rank = rank;
    outcome.end->end_time = 1000;
  }
  return job;
}

TEST(Verdict, OfAJobThatEndedWell) {
  EXPECT_EQ(judge(good_job(2)).ending, Ending::well);
  EXPECT_EQ(judge(good_job(2)).exit_code, 0);
}

TEST(Verdict, HowARankFailed) {
  JobOutcome job = good_job(2);
  EndReport& end = *job.ranks[1].end;
  end.exit_code = 4;
  Verdict verdict = judge(job);
  EXPECT_EQ(verdict.ending, Ending::rank_failed);
  EXPECT_EQ(verdict.cause, Cause::ended);
  EXPECT_EQ(verdict.rank, 1);
  EXPECT_EQ(verdict.exit_code, 4);
  job.findings.abort_rank = 1;
  job.findings.abort_code = 4;
  EXPECT_EQ(judge(job).cause, Cause::aborted);
  end.error = "this rank failed first, says mpirun ended";  // words decide nothing
  end.error_time = 10;
  EXPECT_EQ(judge(job).cause, Cause::error);
  EXPECT_EQ(judge(job).exit_code, 4);
  end.peer_error = "rank 0 has left";  // while it failed
  end.peer_error_time = 11;
  EXPECT_EQ(judge(job).cause, Cause::error);
}

// MPI_Abort makes Slurm kill all tasks, that of the rank maybe before it ends.
TEST(Verdict, ARankThatIsKilledForItsAbort) {
  JobOutcome job = good_job(2);
  job.findings.abort_rank = 1;
  job.findings.abort_code = 7;
  job.ranks[1].end->signal = SIGKILL;
  EXPECT_EQ(judge(job).rank, 1);
  EXPECT_EQ(judge(job).cause, Cause::aborted);
  EXPECT_EQ(judge(job).exit_code, 7);
  job.ranks[1].end->signal = SIGSEGV;
  EXPECT_EQ(judge(job).cause, Cause::ended);
  EXPECT_EQ(judge(job).exit_code, 128 + SIGSEGV);
}

// Slurm kills programs and rank processes one after the other.
TEST(Verdict, AJobThatSlurmEnded) {
  JobOutcome job = good_job(3);
  job.starter_code = 137;
  job.ranks[0].end.reset();
  job.ranks[1].end->signal = SIGKILL;
  EXPECT_EQ(judge(job).ending, Ending::rank_failed);
  job.findings.ended_for = "TIME LIMIT";
  EXPECT_EQ(judge(job).ending, Ending::starter_stopped);
  EXPECT_EQ(judge(job).exit_code, 137);
  job.ranks[2].end->exit_code = 3;
  job.ranks[2].end->end_time = 500;
  EXPECT_EQ(judge(job).rank, 2) << "it failed before";
  job.ranks[2].end.reset();
  job.findings.abort_rank = 0;
  EXPECT_NE(judge(job).ending, Ending::starter_stopped) << "MPI_Abort made Slurm do it";
}

// srun lost the rank process of rank 1 and asked all others to end; the program of rank 2 did so
// before its rank process had heard.
TEST(Verdict, AProgramThatEndedWithTheStepIsNotTheCulprit) {
  JobOutcome job = good_job(3);
  job.ranks[1].end.reset();
  EndReport& early = *job.ranks[2].end;
  early.signal = SIGTERM;
  early.end_time = 50;
  EXPECT_EQ(judge(job).rank, 2) << "nobody else is known to have failed";
  job.findings.killed_rank = 1;
  job.findings.killed_signal = SIGKILL;
  EXPECT_EQ(judge(job).rank, 1);
  EXPECT_EQ(judge(job).cause, Cause::killed);
  EXPECT_EQ(judge(job).exit_code, 137);
  early.error = "out of range";
  early.error_time = 40;
  EXPECT_EQ(judge(job).rank, 2) << "it had failed before";
  early.error.clear();
  job.findings.killed_rank.reset();
  job.findings.abort_rank = 1;
  job.findings.abort_code = 7;
  EXPECT_EQ(judge(job).rank, 1);
  EXPECT_EQ(judge(job).cause, Cause::aborted);
  EXPECT_EQ(judge(job).exit_code, 7);
}

// MPI_Abort of rank 2 made Slurm kill all tasks; of those, only the rank process of rank 1 lived
// long enough to report what happened to its program.
TEST(Verdict, AProgramThatWasKilledForTheAbortOfAnotherRank) {
  JobOutcome job = good_job(3);
  job.ranks[0].end.reset();
  job.ranks[2].end.reset();
  job.ranks[1].end->signal = SIGKILL;
  EXPECT_EQ(judge(job).rank, 1) << "nobody else is known to have failed";
  job.findings.killed_rank = 0;  // srun names any of the killed
  job.findings.killed_signal = SIGKILL;
  EXPECT_EQ(judge(job).rank, 1);
  job.findings.abort_rank = 2;
  job.findings.abort_code = 7;
  for (const bool named : {true, false}) {
    if (!named) job.findings.killed_rank.reset();
    EXPECT_EQ(judge(job).rank, 2);
    EXPECT_EQ(judge(job).cause, Cause::aborted);
    EXPECT_EQ(judge(job).exit_code, 7);
  }
}

TEST(Verdict, AProgramThatWasKilledAndForWhichAnotherRankAborted) {
  JobOutcome job = good_job(3);
  job.ranks[1].end->signal = SIGKILL;
  job.ranks[2].end.reset();
  job.findings.abort_rank = 2;
  EndReport& witness = *job.ranks[0].end;
  witness.exit_code = 1;
  witness.peer_error = "the connection to rank 1 was lost";
  witness.peer_error_time = 1010;
  witness.culprit_rank = 1;
  EXPECT_EQ(judge(job).rank, 1);
  EXPECT_EQ(judge(job).cause, Cause::ended);
  EXPECT_EQ(judge(job).exit_code, 137);
  witness.culprit_rank = 2;
  EXPECT_EQ(judge(job).rank, 2) << "rank 1 was killed for the abort";
  job.ranks[0].end.reset();
  EndReport& aborted = job.ranks[2].end.emplace();
  aborted.rank = 2;
  aborted.exit_code = 1;
  aborted.peer_error = "rank 1 did not come";
  aborted.peer_error_time = 1010;
  EXPECT_EQ(judge(job).rank, 1);
}

// mpirun killed the process of the rank that called MPI_Abort before it could say why; another rank
// had noticed the same.
TEST(Verdict, AnAbortWhoseReasonAnotherRankKnows) {
  JobOutcome job = good_job(3);
  job.findings.abort_rank = 0;
  job.ranks[0].end.reset();
  EXPECT_EQ(judge(job).cause, Cause::aborted);
  EXPECT_EQ(judge(job).rank, 0);
  EndReport& witness = *job.ranks[2].end;
  witness.exit_code = 1;
  witness.peer_error = "rank 1 did not reach the end of the program";
  witness.peer_error_time = 10;
  witness.culprit_rank = 1;
  EXPECT_EQ(judge(job).cause, Cause::noticed);
  EXPECT_EQ(judge(job).rank, 1);
  witness.culprit_rank = 0;  // it noticed the abort itself
  EXPECT_EQ(judge(job).cause, Cause::aborted);
}

TEST(Verdict, ARankThatAnOutsiderAskedToEnd) {
  JobOutcome job = good_job(2);
  EndReport& end = *job.ranks[1].end;
  end.stop_time = 500;
  EXPECT_EQ(judge(job).ending, Ending::well);  // catena-run asked
  end.stop_signal = SIGTERM;
  EXPECT_EQ(judge(job).ending, Ending::rank_failed);
  EXPECT_EQ(judge(job).cause, Cause::asked);
  EXPECT_EQ(judge(job).rank, 1);
  EXPECT_EQ(judge(job).exit_code, 143);
  EndReport& other = *job.ranks[0].end;  // it had failed before
  other.exit_code = 5;
  other.error = "x";
  other.error_time = 400;
  EXPECT_EQ(judge(job).rank, 0);
  EXPECT_EQ(judge(job).cause, Cause::error);
  other.error_time = 600;
  EXPECT_EQ(judge(job).rank, 1);
}

TEST(Verdict, OfAStarterThatEndedTheRanks) {
  JobOutcome job = good_job(2);
  job.ended_by_starter = true;
  EXPECT_EQ(judge(job).ending, Ending::starter_stopped);
  EXPECT_EQ(judge(job).exit_code, 1);
  job.starter_code = -SIGKILL;
  EXPECT_EQ(judge(job).ending, Ending::starter_killed);
  EXPECT_EQ(judge(job).exit_code, 1);
  job.starter_code = 128 + SIGKILL;  // srun hands on what ended a rank
  EXPECT_EQ(judge(job).ending, Ending::starter_failed);
  EXPECT_EQ(judge(job).exit_code, 137);
}

// exit(256): its exit handlers note a failure, and the system says 0. mpirun ended the others.
TEST(Verdict, ARankWhoseExitCodeTheSystemCutToZero) {
  JobOutcome job = good_job(3);
  EndReport& end = *job.ranks[1].end;
  end.error = "exit code 256";
  end.error_time = 10;
  EXPECT_EQ(judge(job).ending, Ending::well) << "nobody minded";
  job.ended_by_starter = true;
  job.starter_code = 1;
  for (const int rank : {0, 2}) {
    job.ranks[std::size_t(rank)].end->signal = SIGTERM;
    job.ranks[std::size_t(rank)].end->stop_time = 20;
  }
  EXPECT_EQ(judge(job).ending, Ending::rank_failed);
  EXPECT_EQ(judge(job).cause, Cause::error);
  EXPECT_EQ(judge(job).rank, 1);
  EXPECT_EQ(judge(job).exit_code, 1);
  end.stop_time = 20;
  EXPECT_EQ(judge(job).ending, Ending::starter_stopped) << "it ended because it was asked to";
}

TEST(Verdict, WhoNoticed) {
  JobOutcome job = good_job(3);
  EndReport& end = *job.ranks[2].end;
  end.exit_code = 9;
  end.peer_error = "no progress";
  end.peer_error_time = 10;
  EXPECT_EQ(judge(job).ending, Ending::culprit_unknown);
  EXPECT_EQ(judge(job).noticed_by, 2);
  end.culprit_rank = 1;
  EXPECT_EQ(judge(job).ending, Ending::rank_failed);
  EXPECT_EQ(judge(job).cause, Cause::noticed);
  EXPECT_EQ(judge(job).rank, 1);
  EXPECT_EQ(judge(job).noticed_by, 2);
}

// The launcher ended the rank that noticed first before it came to its exit code.
TEST(Verdict, TheExitCodeIsThatOfARankThatEndedByItself) {
  JobOutcome job = good_job(3);
  for (const int rank : {0, 1, 2}) {
    EndReport& end = *job.ranks[std::size_t(rank)].end;
    end.peer_error = "the ranks differ";
    end.peer_error_time = std::uint64_t(10 + rank);
  }
  EndReport &first = *job.ranks[0].end, &second = *job.ranks[1].end;
  for (EndReport* end : {&first, &second}) {
    end->stop_time = 20;
    end->signal = SIGTERM;
  }
  job.ranks[2].end->exit_code = 7;
  EXPECT_EQ(judge(job).ending, Ending::culprit_unknown);
  EXPECT_EQ(judge(job).noticed_by, 0);
  EXPECT_EQ(judge(job).exit_code, 7);
  first.culprit_rank = 1;
  EXPECT_EQ(judge(job).rank, 1);
  EXPECT_EQ(judge(job).cause, Cause::noticed);
  EXPECT_EQ(judge(job).exit_code, 7);
  job.ranks[2].end->stop_time = 20;
  job.ranks[2].end->signal = SIGKILL;
  EXPECT_EQ(judge(job).exit_code, 1) << "nobody ended by itself";
}

TEST(Verdict, OfTheStarter) {
  JobOutcome job = good_job(1);
  job.starter_code = 5;
  EXPECT_EQ(judge(job).ending, Ending::starter_failed);
  EXPECT_EQ(judge(job).exit_code, 5);
  job.findings.broken_host = "h";
  EXPECT_EQ(judge(job).ending, Ending::launcher_missing);
  EXPECT_EQ(judge(job).exit_code, 127);
  job.hang.emplace().kind = Hang::Kind::starter_silent;
  EXPECT_EQ(judge(job).ending, Ending::starter_hung);
  job.given_up.emplace();
  EXPECT_EQ(judge(job).ending, Ending::given_up);
  job.stop_signal = SIGINT;
  EXPECT_EQ(judge(job).ending, Ending::stopped);
  EXPECT_EQ(judge(job).exit_code, 130);
}

}  // namespace
}  // namespace catena::launch
