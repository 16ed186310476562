// What rank processes are told of a job.
#include "wire/job_words.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace catena::launch {
namespace {

const MustHide kNothing = [](const std::string&) { return false; };
const MustHide kColons = [](const std::string& word) { return word == ":"; };

JobSpec example() {
  JobSpec job;
  job.launcher = "/bin/catena-run";
  job.id = "deadbeef";
  job.ranks = 16;
  job.devices = {Devices::Kind::listed, {0, 1, 3}};
  job.timeout = 2.5;
  job.start_timeout = 10;
  job.log_dir = "/tmp/a b=c%";
  job.terminal = "120x40";
  job.no_bind = true;
  job.grace = 12.5;
  job.folder = "/home/me\n";
  job.remote = true;
  job.by_srun = true;
  job.restart = 2;
  job.rank_pipe = "/proc/12/fd/3:4567";
  job.program = {"prog", "--", ":", "50%", ""};
  return job;
}

std::vector<std::string> words_of(const JobSpec& job, const MustHide& must_hide) {
  std::vector<std::string> words = rank_process_command(job, must_hide);
  words.erase(words.begin(), words.begin() + 2);
  return words;
}

TEST(JobWords, ComeBackWhole) {
  const JobSpec job = example();
  for (const MustHide& must_hide : {kNothing, kColons}) {
    const JobSpec again = parse_rank_process_words(words_of(job, must_hide));
    EXPECT_EQ(words_of(again, must_hide), words_of(job, must_hide));
    EXPECT_EQ(again.id, job.id);
    EXPECT_EQ(again.ranks, job.ranks);
    EXPECT_EQ(again.devices, job.devices);
    EXPECT_EQ(again.timeout, job.timeout);
    EXPECT_EQ(again.start_timeout, job.start_timeout);
    EXPECT_EQ(again.log_dir, job.log_dir);
    EXPECT_EQ(again.terminal, job.terminal);
    EXPECT_EQ(again.grace, job.grace);
    EXPECT_EQ(again.folder, job.folder);
    EXPECT_TRUE(again.no_bind && again.remote && again.by_srun);
    EXPECT_EQ(again.rank_pipe, job.rank_pipe);
    EXPECT_EQ(again.program, job.program);
  }
}

TEST(JobWords, WhatIsAsUsualIsLeftOut) {
  JobSpec job;
  job.launcher = "/bin/catena-run";
  job.id = "0123abcd";
  job.ranks = 2;
  job.program = {"./train"};
  EXPECT_EQ(join(rank_process_command(job, kNothing), " "),
            "/bin/catena-run --rank-process job=0123abcd size=2 devices=auto timeout=300 "
            "start-timeout=60 -- ./train");
  EXPECT_EQ(parse_rank_process_words(words_of(job, kNothing)).grace, std::nullopt);
}

TEST(JobWords, WordsOfAnotherVersionAreRefused) {
  EXPECT_THROW(parse_rank_process_words({"colour=blue", "--", "p"}), UserError);
  EXPECT_THROW(parse_rank_process_words({"job"}), UserError);
  EXPECT_THROW(parse_rank_process_words({"job=x", "--"}), UserError);
}

// Another process may be of another version, or gone with what it kept.
TEST(JobWords, ALookPassesOverWhatItDoesNotKnow) {
  const JobSpec job = look_at_rank_process_words(
      {"job=0badcafe", "size=4", "colour=red", "program-file=/gone", "--", "./train", "-x"});
  EXPECT_EQ(job.id, "0badcafe");
  EXPECT_EQ(job.ranks, 4);
  EXPECT_EQ(job.program, (std::vector<std::string>{"./train", "-x"}));
  EXPECT_TRUE(look_at_rank_process_words({"job=0badcafe"}).program.empty());
}

}  // namespace
}  // namespace catena::launch
