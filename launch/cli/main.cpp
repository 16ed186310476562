// catena-run: what a command line asks for, and the exit code.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "base/program.h"
#include "base/text.h"
#include "catena/core/printable.h"
#include "cli/check.h"
#include "cli/network_check.h"
#include "cli/options.h"
#include "cli/status.h"
#include "job/restarts.h"
#include "job/trace_join.h"
#include "plan/plan.h"
#include "plan/surroundings.h"
#include "rank/rank_process.h"
#include "starter/starter.h"
#include "wire/board_name.h"
#include "wire/job_words.h"
#include "wire/program_file.h"

namespace catena::launch {
namespace {

void print_command(const JobSpec& job, const Starter& starter) {
  const StartCommand command = starter.command(job);
  std::string hidden, line;
  for (const auto* settings : {&job.env, &command.environment})
    for (const EnvSetting& setting : *settings)
      if (setting.value) line += setting.name + "=" + shell_quote(*setting.value) + " ";
  for (const EnvSetting& setting : command.environment)
    if (!setting.value) hidden += " -u " + setting.name;
  if (!hidden.empty()) line = "env" + hidden + " " + line;
  std::puts((line + shell_quote(command.words)).c_str());
}

JobSpec complete(const JobSpec& asked, const Starter& starter) {
  return add_surroundings(make_plan(asked, this_machine(), starter.needs()));
}

int dry_run(const JobSpec& asked) {
  check_env(asked.env);
  const SignalQueue signals = job_signals();
  const std::unique_ptr<Starter> starter = choose_starter(asked);
  starter->check();
  const JobSpec job = complete(asked, *starter);
  // A missing program is not an error yet: the command may be for another machine.
  refuse_unrunnable(job.program.front());
  print_command(job, *starter);
  return 0;
}

// Other hosts cannot read what this one keeps.
void keep_long_program(JobSpec& job) {
  if (!is_long(job.program)) return;
  if (job.remote)
    throw UserError(
        "the program and its arguments are too long for jobs of several hosts, to which 100 KB "
        "can be handed on; put the arguments into a file that the program reads");
  job.program_file = keep_program(job.program);
}

int launch(const CommandLine& line) {
  const JobSpec& asked = line.job;
  check_env(asked.env);
  require_working_folder();
  const std::unique_ptr<Starter> starter = choose_starter(asked);
  starter->refuse_nesting();
  SignalQueue signals = job_signals();
  starter->check();
  set_new_board_key();
  const std::string trace = line.trace.empty() ? "" : prepare_trace(line.trace);
  if (!trace.empty()) setenv("CATENA_TRACE", trace.c_str(), 1);
  JobSpec job = complete(asked, *starter);
  job.trace = trace;
  if (!trace.empty()) check_trace_parts(trace, job.ranks);
  job.log_dir = make_log_dir(job.log_dir);
  require_executable(job.program.front());
  keep_long_program(job);
  return run_job(job, *starter, signals);
}

// Becomes catena-kernels --prepare, which compiles all standard GPU kernels before programs need
// them. It is beside this program in builds and installations that have the cuda plug-in.
[[noreturn]] void run_prepare() {
  const std::string launcher = own_path();
  const std::string tool = launcher.substr(0, launcher.rfind('/') + 1) + "catena-kernels";
  if (access(tool.c_str(), X_OK) != 0)
    throw UserError("--prepare: there is no " + tool +
                    ", as this build has no cuda plug-in; build catena on a machine with a CUDA "
                    "toolkit (12.8 or newer) and -DCATENA_CUDA=ON");
  execl(tool.c_str(), tool.c_str(), "--prepare", static_cast<char*>(nullptr));
  throw UserError("--prepare: " + tool + " cannot be started: " + std::strerror(errno));
}

// A program that was started without them (by some daemons) would give the numbers of its standard
// streams to the next files it opens, and hand those on. Writing to standard output still fails, as
// what the ranks print would be lost without a word.
void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == kRankProcess) return run_rank_process(argc - 1, argv + 1);
  if (const std::optional<int> exit_code = run_network_part(argc, argv)) return *exit_code;
  const auto parsed = parse_options(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
  const CommandLine& line = std::get<CommandLine>(parsed);
  if (line.prepare) run_prepare();
  if (line.check) return run_check(line.job);
  if (line.status) return run_status(line.job.program);
  return line.dry_run ? dry_run(line.job) : launch(line);
}

}  // namespace
}  // namespace catena::launch

int main(int argc, char** argv) {
  try {
    catena::launch::open_standard_streams();
    catena::launch::set_default_path();
    return catena::launch::run(argc, argv);
  } catch (const catena::launch::UserError& error) {
    std::fprintf(stderr, "catena-run: %s\n", catena::printable(error.what()).c_str());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "catena-run: %s\n", catena::printable(error.what()).c_str());
    return 1;
  }
}
