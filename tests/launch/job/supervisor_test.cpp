// The supervisor with a starter that is not mpirun: a shell that starts all ranks of this host.
#include "job/supervisor.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "error_text.h"
#include "wire/job_words.h"

namespace catena::launch {
namespace {

class SilentOutput : public StarterOutput {
 public:
  void feed(std::string_view bytes) override { withheld_ += bytes; }
  void finish() override {}
  const StarterFindings& findings() const override { return findings_; }
  const std::string& withheld() const override { return withheld_; }

 private:
  StarterFindings findings_;
  std::string withheld_;
};

class ShellStarter : public Starter {
 public:
  explicit ShellStarter(std::string script) : script_(std::move(script)) {}
  StarterTerms terms() const override {
    StarterTerms terms;
    terms.name = "shell";
    return terms;
  }
  StarterNeeds needs() const override { return {"shell", 0, 0}; }
  std::string check() override { return "a shell"; }
  StartCommand command(const JobSpec& spec) const override {
    StartCommand command{"/bin/sh", {"sh", "-c", script_, std::to_string(spec.ranks)}};
    for (const std::string& word :
         rank_process_command(spec, [](const std::string&) { return false; }))
      command.words.push_back(word);
    return command;
  }
  std::string describe_network(const JobSpec&) const override { return ""; }
  std::unique_ptr<StarterOutput> read_output(const JobSpec&, StarterOutput::OnLine) const override {
    return std::make_unique<SilentOutput>();
  }

 private:
  std::string script_;
};

constexpr char kStartAll[] =
    "export OMPI_COMM_WORLD_SIZE=$0 OMPI_COMM_WORLD_LOCAL_SIZE=$0; r=0; "
    "while [ $r -lt $0 ]; do "
    "OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_LOCAL_RANK=$r \"$@\" & r=$((r+1)); done; wait";

struct Result {
  int exit_code = -1;
  std::string output;  // with standard error
};

// In a process of its own, which the supervisor expects to have.
Result run(const std::string& start, const std::string& program) {
  JobSpec job;
  job.id = "0badcafe";
  job.launcher = CATENA_RUN;
  job.ranks = 2;
  job.devices.kind = Devices::Kind::cpu;
  job.program = {"sh", "-c", program};
  std::array<int, 2> ends;
  if (pipe(ends.data()) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    SignalQueue signals = job_signals();
    _exit(run_attempt(job, ShellStarter(start), signals).report.exit_code);
  }
  close(ends[1]);
  Result result;
  std::array<char, 4096> bytes;
  for (ssize_t got = 0; (got = read(ends[0], bytes.data(), bytes.size())) > 0;)
    result.output.append(bytes.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

TEST(Supervisor, RunsTheRanksOfAnyStarter) {
  const Result result = run(kStartAll, "sleep 0.0$CATENA_RANK; echo rank $CATENA_RANK");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  expect_contains(result.output, {"rank 0\n", "[1] rank 1\n"});
}

TEST(Supervisor, StopsTheRanksOfAnyStarter) {
  const Result result = run(kStartAll, "[ $CATENA_RANK = 1 ] && exit 3; sleep 30");
  EXPECT_EQ(result.exit_code, 3) << result.output;
  expect_contains(result.output, {"failed first: exit code 3\n"});
}

TEST(Supervisor, QuotesAStarterThatFails) {
  const Result result = run("echo no such partition; exit 7", "true");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.output,
            "no such partition\n"
            "catena-run: shell ended with exit code 7 and no rank reported a failure\n"
            "  never started: ranks 0-1\n");
}

}  // namespace
}  // namespace catena::launch
