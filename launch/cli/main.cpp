#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>

#include "base/program.h"
#include "base/text.h"
#include "cli/check.h"
#include "cli/options.h"
#include "cli/prepare.h"
#include "job/supervisor.h"
#include "plan/plan.h"
#include "rank/rank_process.h"
#include "starter/mpirun_command.h"
#include "starter/session_folder.h"
#include "wire/board_name.h"

extern char** environ;

namespace catena::launch {
namespace {

std::string own_path() {
  char path[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length <= 0) throw UserError("cannot find the path of catena-run in /proc/self/exe");
  return path;
}

std::string new_job_id() {
  char text[9];
  std::snprintf(text, sizeof(text), "%08x", std::random_device{}());
  return text;
}

std::string new_board_key() {
  std::string key;
  while (key.size() < 32) key += new_job_id();  // each is 32 random bits
  return key;
}

// "120x40", or "" when standard output is not a terminal.
std::string terminal_size() {
  winsize size{};
  if (!isatty(STDOUT_FILENO)) return "";
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return "80x24";
  return std::to_string(size.ws_col) + "x" + std::to_string(size.ws_row);
}

// Made here as well as by the ranks, so that a mistake is reported once and before any rank starts.
std::string make_log_dir(const std::string& name) {
  if (name.empty()) return "";
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(name);
  std::filesystem::create_directories(path, error);
  if (!error && access(path.c_str(), W_OK) != 0) error = {errno, std::generic_category()};
  if (error)
    throw UserError("--log-dir '" + name + "' cannot be written: " + error.message() +
                    "; give a folder that can");
  return path.lexically_normal().string();
}

std::vector<std::string> environment_with(const std::vector<EnvSetting>& settings) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry; ++entry) entries.emplace_back(*entry);
  for (const EnvSetting& setting : settings)
    if (setting.value) entries.push_back(setting.name + "=" + *setting.value);
  return entries;
}

// --env NAME hands on the current value, so there must be one.
void check_env(const std::vector<EnvSetting>& settings) {
  for (const EnvSetting& setting : settings)
    if (!setting.value && !std::getenv(setting.name.c_str()))
      throw UserError("--env " + setting.name + ": the variable is not set; use --env " +
                      setting.name + "=VALUE");
}

MpirunRequest make_request(const Options& options, const Mpirun& mpirun) {
  MpirunRequest request;
  // A path with a slash makes mpirun change PATH and LD_LIBRARY_PATH of all ranks to its own
  // installation, so it is only given when the user gave it.
  request.mpirun = options.mpirun;
  request.version = mpirun.version;
  request.plan = make_plan(options, this_machine());
  request.forward = forwarded_names(environment_with(options.env), options.env);
  request.mpi_args = options.mpi_args;
  request.launcher = own_path();
  request.settings.job = new_job_id();
  request.settings.size = request.plan.ranks;
  request.settings.devices = request.plan.devices;
  request.settings.timeout = options.timeout;
  request.settings.start_timeout = options.start_timeout;
  request.settings.log_dir = options.dry_run ? options.log_dir : make_log_dir(options.log_dir);
  request.settings.terminal = terminal_size();
  request.settings.bind = options.bind;
  request.settings.grace = options.grace;
  request.settings.several_hosts = request.plan.several_hosts || !request.plan.hosts.empty();
  if (request.settings.several_hosts) request.settings.folder = working_folder();
  const McaParameters parameters(options.mpi_args, environment_with(options.env), mpirun.path);
  const bool in_allocation = request.plan.hosts.empty() && request.plan.several_hosts;
  const Network network = choose_network(request.plan.hosts, in_allocation, interfaces_here(),
                                         parameters, mpirun.version.major);
  request.settings_of_mpi = network.settings;
  request.networks = network.shared;
  request.program = options.program;
  return request;
}

// For the report of a job whose ranks did not find each other.
std::string describe_networks(const MpirunRequest& request) {
  if (!request.plan.several_hosts) return "";
  const std::string hint = "; --mpi-args '--mca btl_tcp_if_include 10.0.0.0/24' names another";
  if (request.networks.empty()) return "what Open MPI chooses" + hint;
  return join(request.networks, ", ") + ", where the names of the hosts lead" + hint;
}

void print_command(const Options& options, const MpirunRequest& request) {
  std::string line;
  for (const EnvSetting& setting : options.env)
    if (setting.value) line += setting.name + "=" + shell_quote(*setting.value) + " ";
  std::puts((line + shell_quote(mpirun_command(request))).c_str());
}

// Open MPI refuses this with less clear words.
void check_not_nested() {
  if (!std::getenv("OMPI_COMM_WORLD_RANK")) return;
  throw UserError(
      "this is already a rank of an mpirun or catena-run (OMPI_COMM_WORLD_RANK is set), which "
      "Open MPI cannot nest; start the program itself here, or catena-run from outside");
}

// For jobs of this machine: on other hosts nobody would remove it.
std::unique_ptr<SessionFolder> make_session_folder(const Options& options, const Plan& plan) {
  const bool here = plan.hosts.empty() && !plan.several_hosts;
  if (!here || names_session_folder(options.mpi_args, environment_with(options.env)))
    return nullptr;
  return std::make_unique<SessionFolder>();
}

int launch(const Options& options) {
  check_env(options.env);
  if (!options.dry_run) check_not_nested();
  SignalQueue signals = job_signals();
  const Mpirun mpirun = find_mpirun(options.mpirun);
  if (!options.dry_run) setenv(kBoardKey, new_board_key().c_str(), 1);
  MpirunRequest request = make_request(options, mpirun);
  if (options.dry_run) {
    // Missing is no mistake yet: the line may be for another machine.
    refuse_unrunnable(options.program.front());
    print_command(options, request);
    return 0;
  }
  require_executable(options.program.front());
  const std::unique_ptr<SessionFolder> session = make_session_folder(options, request.plan);
  if (session) request.session_folder = session->path();
  Job job;
  job.mpirun = mpirun.path;
  job.command = mpirun_command(request);
  for (const EnvSetting& setting : options.env)
    if (setting.value) job.environment.push_back(setting.name + "=" + *setting.value);
  job.id = request.settings.job;
  job.ranks = request.plan.ranks;
  job.planned_hosts = host_of_each_rank(request.plan.hosts, request.plan.ranks);
  job.start_timeout = options.start_timeout;
  job.terminal = !request.settings.terminal.empty();
  job.timeout = options.timeout;
  job.grace = options.grace.value_or(job.grace);
  job.network = describe_networks(request);
  return run_job(job, signals);
}

// A program that was started without them (by some daemons) would give the numbers of its standard
// streams to the next files it opens, and hand those on.
void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--rank-process")
    return run_rank_process(argc - 1, argv + 1);
  const auto parsed = parse_options(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
  const Options& options = std::get<Options>(parsed);
  if (options.prepare) run_prepare(own_path());
  return options.check ? run_check(options) : launch(options);
}

}  // namespace
}  // namespace catena::launch

int main(int argc, char** argv) {
  try {
    catena::launch::open_standard_streams();
    return catena::launch::run(argc, argv);
  } catch (const catena::launch::UserError& error) {
    std::fprintf(stderr, "catena-run: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "catena-run: %s\n", error.what());
    return 1;
  }
}
