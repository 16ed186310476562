#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "core/edit_distance.h"

#ifndef CATENA_VERSION
#define CATENA_VERSION "development"
#endif

namespace catena::launch {
namespace {

constexpr const char* kDescription =
    "Starts a program as several ranks through mpirun or Slurm's srun, one device a rank.\n"
    "\n"
    "  catena-run ./train --epochs 5              one rank a GPU, else 2 CPU ranks\n"
    "  catena-run -n 4 --cpu ./train              4 CPU ranks\n"
    "  catena-run -H node1:8,node2:8 ./train      16 ranks on two hosts\n";

constexpr double kLongestGrace = 86400;

// As the options are given on the command line, before they are interpreted.
struct RawOptions {
  std::string ranks, hosts, hostfile, gpus, starter, mpi_args, srun_args, grace, start_timeout,
      timeout, max_restarts, min_ranks;
  std::vector<std::string> env;
  bool cpu = false;
};

void declare(CLI::App& app, RawOptions& raw, CommandLine& line) {
  JobSpec& job = line.job;
  app.add_option("-n,--ranks", raw.ranks, "Number of ranks (default: number of GPUs, else 2)")
      ->type_name("N");
  app.add_option("-H,--host", raw.hosts,
                 "Hosts and their slots: h1:4,h2:4 (slots of a host named twice add up)")
      ->type_name("LIST");
  app.add_option(
         "--hostfile", raw.hostfile,
         "File with a line 'host slots=N' for each host (slots of a host named twice add up)")
      ->type_name("FILE");
  app.add_option("--gpus", raw.gpus, "GPUs of every host, in the order of its ranks: 0,1,3")
      ->type_name("LIST");
  app.add_flag("--cpu", raw.cpu, "Run the ranks on CPU devices (also: CATENA_DEVICE=cpu)");
  app.add_option("--env", raw.env,
                 "NAME or NAME=VALUE handed to all ranks; repeatable (CATENA_*, NCCL_*, OMP_*, "
                 "CUDA_VISIBLE_DEVICES, PATH and LD_LIBRARY_PATH always are)")
      ->allow_extra_args(false)
      ->type_name("NAME[=VALUE]");
  app.add_option(
         "--start-timeout", raw.start_timeout,
         "Seconds until all ranks must have joined (default: CATENA_START_TIMEOUT, else 60)")
      ->type_name("S");
  app.add_option("--timeout", raw.timeout,
                 "Seconds a collective may make no progress (default: CATENA_TIMEOUT, else 300)")
      ->type_name("S");
  app.add_option("--grace", raw.grace,
                 "Seconds that ranks get between SIGTERM and SIGKILL when the job is stopped "
                 "(default: 3)")
      ->type_name("S");
  app.add_option("--max-restarts", raw.max_restarts,
                 "Start a job that fails again, up to N times, with CATENA_RESTART=1, 2, ... in "
                 "its environment (default: 0)")
      ->type_name("N");
  app.add_option(
         "--min-ranks", raw.min_ranks,
         "Leave out hosts that cannot be reached, or nodes that Slurm has lost, when a job is "
         "started again, if M ranks remain")
      ->type_name("M");
  app.add_option("--log-dir", job.log_dir, "Also write DIR/rank-N.log for every rank")
      ->type_name("DIR");
  app.add_option(
         "--trace", line.trace,
         "Write one time line of all ranks, for ui.perfetto.dev, and print where the steps' "
         "time went (also: CATENA_TRACE)")
      ->type_name("FILE");
  app.add_flag("--no-bind", job.no_bind,
               "Leave ranks free to run on all cores instead of those near their GPU");
  app.add_option("--mpirun", job.mpirun, "The mpirun to use")
      ->capture_default_str()
      ->type_name("FILE");
  app.add_option("--mpi-args", raw.mpi_args,
                 "More arguments for mpirun, as one word: '--mca btl_tcp_if_include eth0'")
      ->type_name("WORDS");
  app.add_option(
         "--starter", raw.starter,
         "What starts the ranks: mpirun, srun, or auto (srun in an allocation of Slurm that "
         "has PMIx, else mpirun)")
      ->type_name("NAME");
  app.add_option("--srun-args", raw.srun_args, "More arguments for srun, as one word")
      ->type_name("WORDS");
  app.add_flag("--dry-run", line.dry_run, "Print the line of mpirun or srun and do nothing");
  app.add_flag(
      "--check", line.check,
      "Print what this machine and build offer, and how to install what is missing; with hosts "
      "behind it (--check node1,node2), which network they can use");
  app.add_flag("--status", line.status,
               "Print what each rank of your running jobs on this machine is doing; a process or "
               "job number behind it (--status 4711) chooses one");
  app.add_flag("--prepare", line.prepare,
               "Compile all standard GPU kernels into the kernel cache, so that no program waits");
}

// Where the program begins: the first word that is neither an option nor an option's value.
int find_program(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") return i;
    if (word.size() < 2 || word[0] != '-') return i;
    if (word == "-np") {
      ++i;
      continue;
    }
    const bool lone_name =
        word.find('=') == std::string::npos && (word.starts_with("--") || word.size() == 2);
    const CLI::Option* option = lone_name ? app.get_option_no_throw(word) : nullptr;
    if (option && option->get_items_expected_max() > 0) ++i;
  }
  return argc;
}

// "did you mean '--gpus'? " when an option is near enough.
std::string suggestion(const CLI::App& app, const std::string& unknown) {
  const std::string name = unknown.substr(0, unknown.find('='));
  std::string best;
  std::size_t best_distance = 2 + name.size() / 6;  // in a short name few letters may differ
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) {
      const std::size_t distance = edit_distance(name, "--" + known);
      if (distance < best_distance) {
        best = "--" + known;
        best_distance = distance;
      }
    }
  }
  return best.empty() ? "" : "did you mean '" + best + "'? ";
}

std::vector<int> parse_gpus(const std::string& text) {
  std::vector<int> gpus;
  for (const std::string& part : split(text, ',')) {
    const auto index = parse_number(trim(part));
    if (!index)
      throw UserError("--gpus " + text + ": '" + part +
                      "' is not a GPU number; expected a list such as 0,1,3");
    if (std::find(gpus.begin(), gpus.end(), *index) != gpus.end())
      throw UserError("--gpus " + text + ": GPU " + part +
                      " is named twice; every rank needs its own GPU");
    gpus.push_back(*index);
  }
  return gpus;
}

EnvSetting parse_env(const std::string& text) {
  const std::size_t equals = text.find('=');
  EnvSetting setting{text.substr(0, equals), std::nullopt};
  if (setting.name.empty())
    throw UserError("--env '" + text + "': no name; expected NAME or NAME=VALUE");
  const auto misplaced = [](unsigned char c) { return c <= ' ' || c == 127; };
  if (std::any_of(setting.name.begin(), setting.name.end(), misplaced))
    throw UserError("--env '" + text + "': '" + setting.name +
                    "' is not the name of a variable; expected NAME or NAME=VALUE");
  if (equals != std::string::npos) setting.value = text.substr(equals + 1);
  return setting;
}

double parse_grace(const std::string& text) {
  const auto seconds = parse_seconds(text);
  if (!seconds || *seconds > kLongestGrace)
    throw UserError("--grace " + text + ": expected seconds, more than 0 and at most 86400");
  return *seconds;
}

double parse_timeout(const std::string& option, const std::string& text) {
  if (const auto seconds = parse_seconds(text)) return *seconds;
  throw UserError(option + " " + text + ": expected a number of seconds, more than 0");
}

// The option, else the variable, which programs read that no launcher has started; else the default
// stays.
void set_timeout(double& seconds, const char* option, const std::string& text,
                 const char* variable) {
  const char* const set = std::getenv(variable);
  if (!text.empty())
    seconds = parse_timeout(option, text);
  else if (set && *set)
    seconds = parse_timeout(variable, set);
}

// An unset shell variable leaves an empty argument, which is an error and does not mean "none".
void refuse_empty(const CLI::App& app) {
  for (const char* name :
       {"-n", "-H", "--hostfile", "--gpus", "--log-dir", "--mpirun", "--grace", "--timeout",
        "--start-timeout", "--starter", "--max-restarts", "--min-ranks", "--trace"}) {
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option && option->count() > 0 && option->as<std::string>().empty())
      throw UserError(std::string(name) +
                      " was given an empty value; leave it out to get the default");
  }
}

int parse_ranks(const std::string& text) {
  const auto ranks = parse_number(text);
  if (!ranks || *ranks < 1)
    throw UserError("-n " + text + ": expected a number of ranks, 1 or more");
  return *ranks;
}

void interpret_restarts(const RawOptions& raw, JobSpec& job) {
  const auto number = [](const char* option, const std::string& text, int least) {
    const auto value = parse_number(text);
    if (!value || *value < least)
      throw UserError(std::string(option) + " " + text + ": expected a number, " +
                      std::to_string(least) + " or more");
    return *value;
  };
  if (!raw.max_restarts.empty()) job.max_restarts = number("--max-restarts", raw.max_restarts, 0);
  if (job.max_restarts > 0) job.restart = 0;
  if (raw.min_ranks.empty()) return;
  job.min_ranks = number("--min-ranks", raw.min_ranks, 1);
  if (job.max_restarts == 0)
    throw UserError("--min-ranks is for jobs that are started again; add --max-restarts N");
}

std::string parse_starter(const std::string& text) {
  if (text.empty() || text == "auto") return "";
  if (text == "mpirun" || text == "srun") return text;
  throw UserError("--starter " + text + ": expected mpirun, srun or auto");
}

void interpret(const RawOptions& raw, JobSpec& job) {
  using Kind = Devices::Kind;
  if (!raw.grace.empty()) job.grace = parse_grace(raw.grace);
  if (!raw.ranks.empty()) job.ranks = parse_ranks(raw.ranks);
  if (!raw.hosts.empty() && !raw.hostfile.empty())
    throw UserError("-H and --hostfile were both given; give one of them");
  if (!raw.hosts.empty()) job.hosts = parse_host_list(raw.hosts);
  if (!raw.hostfile.empty()) job.hosts = read_hostfile(raw.hostfile);
  if (!raw.gpus.empty()) job.devices = {Kind::listed, parse_gpus(raw.gpus)};
  if (raw.cpu && job.devices.kind == Kind::listed)
    throw UserError("--cpu and --gpus were both given; give one of them");
  if (raw.cpu) job.devices.kind = Kind::cpu;
  for (const std::string& text : raw.env) job.env.push_back(parse_env(text));
  set_timeout(job.timeout, "--timeout", raw.timeout, "CATENA_TIMEOUT");
  set_timeout(job.start_timeout, "--start-timeout", raw.start_timeout, "CATENA_START_TIMEOUT");
  interpret_restarts(raw, job);
  job.starter = parse_starter(raw.starter);
  job.mpi_args = split_words(raw.mpi_args);
  job.srun_args = split_words(raw.srun_args);
}

void parse_words(CLI::App& app, int count, char** argv) {
  std::vector<std::string> words;
  // mpirun's own spelling, which fingers remember.
  for (int i = 1; i < count; ++i) words.push_back(std::string(argv[i]) == "-np" ? "-n" : argv[i]);
  std::reverse(words.begin(), words.end());
  app.parse(std::move(words));
}

void print_help(const CLI::App& app) {
  std::string text = app.help();
  const std::string usage = "[OPTIONS]";
  const std::size_t at = text.find(usage);
  if (at != std::string::npos) text.replace(at, usage.size(), "[options] [--] program args...");
  std::fputs(text.c_str(), stdout);
}

}  // namespace

std::variant<CommandLine, int> parse_options(int argc, char** argv) {
  CLI::App app(kDescription, "catena-run");
  app.set_help_flag("-h,--help", "Print this and exit");
  app.set_version_flag("--version", CATENA_VERSION);
  RawOptions raw;
  CommandLine line;
  declare(app, raw, line);
  app.allow_extras();
  const int program = find_program(app, argc, argv);
  try {
    parse_words(app, program, argv);
  } catch (const CLI::CallForHelp&) {
    print_help(app);
    return 0;
  } catch (const CLI::CallForVersion&) {
    std::puts("catena-run " CATENA_VERSION);
    return 0;
  } catch (const CLI::ParseError& error) {
    throw UserError(std::string(error.what()) + "; see catena-run --help");
  }
  const std::vector<std::string> unknown = app.remaining();
  if (!unknown.empty())
    throw UserError("unknown option '" + unknown.front() + "'; " +
                    suggestion(app, unknown.front()) +
                    "options of the program go after its name, those of mpirun into --mpi-args, "
                    "those of srun into --srun-args; see catena-run --help");
  refuse_empty(app);
  interpret(raw, line.job);
  if (const char* file = std::getenv("CATENA_TRACE"); line.trace.empty() && file) line.trace = file;
  const bool dashes = program < argc && std::string(argv[program]) == "--";
  line.job.program.assign(argv + program + (dashes ? 1 : 0), argv + argc);
  if (line.job.program.empty() && !line.check && !line.prepare && !line.status)
    throw UserError(
        "no program given; expected catena-run [options] program args..., for example "
        "catena-run -n 2 ./train --epochs 5");
  return line;
}

}  // namespace catena::launch
