#include "cli/options.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "environment_scope.h"
#include "error_text.h"

namespace catena::launch {
namespace {

CommandLine parse_line(std::vector<std::string> words) {
  words.insert(words.begin(), "catena-run");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return std::get<CommandLine>(parse_options(static_cast<int>(pointers.size()), pointers.data()));
}

JobSpec parse(const std::vector<std::string>& words) { return parse_line(words).job; }

std::string complaint(const std::vector<std::string>& words) {
  return error_of<UserError>([&] { parse(words); });
}

bool starts(const std::string& text, const std::string& start) { return text.starts_with(start); }

TEST(Options, ProgramKeepsItsOwnOptions) {
  const JobSpec job = parse({"-n", "4", "--cpu", "./train", "-n", "7", "--cpu", "--help"});
  EXPECT_EQ(job.ranks, 4);
  EXPECT_EQ(job.devices.kind, Devices::Kind::cpu);
  EXPECT_EQ(job.program, (std::vector<std::string>{"./train", "-n", "7", "--cpu", "--help"}));
}

TEST(Options, SpellingsOfRanks) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"-n", "3", "p"},
                                                {"-n3", "p"},
                                                {"-np", "3", "p"},
                                                {"--ranks=3", "p"},
                                                {"--ranks", "3", "--", "p"}})
    EXPECT_EQ(parse(words).ranks, 3) << join(words, " ");
}

TEST(Options, DashesEndTheOptions) {
  EXPECT_EQ(parse({"--", "--odd-program", "--"}).program,
            (std::vector<std::string>{"--odd-program", "--"}));
}

TEST(Options, Everything) {
  const CommandLine line = parse_line(
      {"-H",        "h1:4,h2:4", "--gpus",    "3,0,1",           "--env",      "A",         "--env",
       "B=1=2",     "--env",     "C=",        "--start-timeout", "10",         "--timeout", "0.5",
       "--log-dir", "logs",      "--no-bind", "--mpi-args",      "--mca x  y", "--dry-run", "p"});
  const JobSpec& job = line.job;
  EXPECT_EQ(job.hosts, (std::vector<Host>{{"h1", 4}, {"h2", 4}}));
  EXPECT_EQ(job.devices, (Devices{Devices::Kind::listed, {3, 0, 1}}));
  EXPECT_EQ(job.env, (std::vector<EnvSetting>{{"A", std::nullopt}, {"B", "1=2"}, {"C", ""}}));
  EXPECT_EQ(job.start_timeout, 10);
  EXPECT_EQ(job.timeout, 0.5);
  EXPECT_EQ(job.log_dir, "logs");
  EXPECT_TRUE(job.no_bind);
  EXPECT_EQ(job.mpi_args, (std::vector<std::string>{"--mca", "x", "y"}));
  EXPECT_TRUE(line.dry_run);
}

TEST(Options, Defaults) {
  const JobSpec job = parse({"p"});
  EXPECT_EQ(job.ranks, 0);
  EXPECT_EQ(job.start_timeout, 60);
  EXPECT_EQ(job.timeout, 300);
  EXPECT_FALSE(job.no_bind);
  EXPECT_EQ(job.devices.kind, Devices::Kind::automatic);
}

// A batch script may have set them for programs; the options win.
TEST(Options, TimeoutsOfTheEnvironment) {
  EnvironmentScope environment("CATENA_TIMEOUT", "1800");
  environment.set("CATENA_START_TIMEOUT", "");
  EXPECT_EQ(parse({"p"}).timeout, 1800);
  EXPECT_EQ(parse({"p"}).start_timeout, 60);
  EXPECT_EQ(parse({"--timeout", "5", "p"}).timeout, 5);
  environment.set("CATENA_START_TIMEOUT", "soon");
  EXPECT_EQ(complaint({"p"}),
            "CATENA_START_TIMEOUT soon: expected a number of seconds, more than 0");
}

TEST(Options, Trace) {
  const auto trace_of = [](const std::vector<std::string>& words) {
    return parse_line(words).trace;
  };
  EnvironmentScope environment("CATENA_TRACE", {});
  EXPECT_EQ(trace_of({"p"}), "");
  EXPECT_EQ(trace_of({"--trace", "t.json", "p"}), "t.json");
  environment.set("CATENA_TRACE", "u.json");
  EXPECT_EQ(trace_of({"p"}), "u.json");
  EXPECT_EQ(trace_of({"--trace=t.json", "p"}), "t.json");
}

TEST(Options, Grace) {
  EXPECT_FALSE(parse({"p"}).grace);
  EXPECT_EQ(parse({"--grace", "12.5", "p"}).grace, 12.5);
  for (const char* text : {"0", "-1", "soon", "1e9", "5s"})
    EXPECT_TRUE(starts(complaint({"--grace", text, "p"}), "--grace " + std::string(text))) << text;
}

// As from a variable of the shell that is not set.
TEST(Options, EmptyValuesAreRefused) {
  for (const char* name :
       {"-n", "-H", "--hostfile", "--gpus", "--log-dir", "--mpirun", "--grace", "--trace"})
    EXPECT_NE(complaint({name, "", "p"}).find("was given an empty value"), std::string::npos)
        << name << ": " << complaint({name, "", "p"});
}

TEST(Options, Mistakes) {
  EXPECT_TRUE(starts(complaint({}), "no program given; expected catena-run"));
  EXPECT_TRUE(starts(complaint({"-n", "2"}), "no program given; expected catena-run"));
  EXPECT_EQ(complaint({"--foo"}).find("did you mean"), std::string::npos);
  EXPECT_TRUE(starts(complaint({"--gpu", "1"}), "unknown option '--gpu'; did you mean '--gpus'? "));
  EXPECT_TRUE(starts(complaint({"--hostfil=x", "p"}),
                     "unknown option '--hostfil=x'; did you mean '--hostfile'? "));
  EXPECT_TRUE(starts(complaint({"--zzzzzz", "p"}), "unknown option '--zzzzzz'; options of the"));
  EXPECT_TRUE(
      starts(complaint({"-n", "two", "p"}), "-n two: expected a number of ranks, 1 or more"));
  EXPECT_TRUE(starts(complaint({"-n", "0", "p"}), "-n 0: expected a number of ranks, 1 or more"));
  EXPECT_TRUE(starts(complaint({"--gpus", "0,0", "p"}), "--gpus 0,0: GPU 0 is named twice"));
  EXPECT_TRUE(starts(complaint({"--gpus", "0,x", "p"}), "--gpus 0,x: 'x' is not a GPU number"));
  EXPECT_TRUE(starts(complaint({"--gpus", "0", "--cpu", "p"}), "--cpu and --gpus were both given"));
  EXPECT_TRUE(starts(complaint({"--env", "=x", "p"}), "--env '=x': no name"));
  EXPECT_TRUE(
      starts(complaint({"-H", "a", "--hostfile", "b", "p"}), "-H and --hostfile were both"));
  for (const char* option : {"--timeout", "--start-timeout"})
    for (const char* text : {"0", "soon", "1h", "-1", "nan", "2,5", "0x10"})
      EXPECT_EQ(complaint({option, text, "p"}),
                std::string(option) + " " + text + ": expected a number of seconds, more than 0");
  for (const char* text : {"A B=1", " A=1", "A\n=1", "A B"})
    EXPECT_NE(complaint({"--env", text, "p"}).find("is not the name of a variable"),
              std::string::npos)
        << text;
  EXPECT_NE(complaint({"-n"}).find("--ranks"), std::string::npos);
}

TEST(Options, Starter) {
  EXPECT_EQ(parse({"p"}).starter, "");
  EXPECT_EQ(parse({"--starter", "auto", "p"}).starter, "");
  const JobSpec job = parse({"--starter", "srun", "--srun-args", "--mpi=pmi2  -v", "p"});
  EXPECT_EQ(job.starter, "srun");
  EXPECT_EQ(job.srun_args, (std::vector<std::string>{"--mpi=pmi2", "-v"}));
  EXPECT_EQ(complaint({"--starter", "ssh", "p"}), "--starter ssh: expected mpirun, srun or auto");
}

}  // namespace
}  // namespace catena::launch
