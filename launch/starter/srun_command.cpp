#include "starter/srun_command.h"

#include <algorithm>
#include <cctype>

#include "base/answer.h"
#include "base/program.h"
#include "base/text.h"
#include "wire/job_words.h"

namespace catena::launch {
namespace {

bool names_mpi(const std::string& word) { return word.starts_with("--mpi"); }

// A lone ":" begins another program of the same job.
bool is_separator(const std::string& word) { return word == ":"; }

}  // namespace

std::string parse_srun_version(const std::string& output) {
  const std::vector<std::string> words = split_words(output);
  if (words.size() < 2 || !words[0].starts_with("slurm")) return "";
  return std::isdigit(static_cast<unsigned char>(words[1][0])) ? words[1] : "";
}

std::vector<std::string> parse_mpi_kinds(const std::string& output) {
  std::vector<std::string> kinds;
  for (const std::string& line : split(output, '\n')) {
    // Before Slurm 22 each line began with "srun: ".
    std::string_view text = trim(line);
    if (text.starts_with("srun: ")) text = trim(text.substr(6));
    const bool word = !text.empty() && text.find_first_of(" :") == std::string_view::npos;
    if (word && text != "none") kinds.emplace_back(text);
  }
  return kinds;
}

std::string choose_mpi_kind(const std::vector<std::string>& kinds) {
  for (const char* wanted : {"pmix", "pmix_v5", "pmix_v4", "pmix_v3", "pmi2"})
    if (std::find(kinds.begin(), kinds.end(), wanted) != kinds.end()) return wanted;
  return "";
}

Srun find_srun() {
  const std::optional<std::string> path = find_executable("srun");
  if (!path)
    throw UserError(
        "srun not found (it is not an executable in PATH); on a node of a cluster load the module "
        "of Slurm, elsewhere: apt-get install slurm-client",
        127);
  Srun srun{*path, parse_srun_version(answer_of({*path, "--version"})), {}};
  if (srun.version.empty())
    throw UserError("'" + *path + " --version' does not answer as Slurm's srun does", 127);
  srun.mpi_kinds = parse_mpi_kinds(answer_of({*path, "--mpi=list"}));
  return srun;
}

std::vector<std::string> srun_command(const JobSpec& spec, const SlurmAllocation& allocation,
                                      const std::string& mpi) {
  std::vector<std::string> words = {"srun", "--ntasks=" + std::to_string(spec.ranks)};
  const auto add = [&](const std::string& word) { words.push_back(word); };
  // srun says that it does this by itself, in a line that nobody needs.
  const int nodes = spec.nodes.empty() ? allocation.nodes : static_cast<int>(spec.nodes.size());
  if (spec.ranks < nodes || !spec.nodes.empty())
    add("--nodes=" + std::to_string(std::min(spec.ranks, nodes)));
  if (!spec.nodes.empty() && spec.ranks >= nodes) add("--nodelist=" + join(spec.nodes, ","));
  const bool chosen = std::any_of(spec.srun_args.begin(), spec.srun_args.end(), names_mpi) ||
                      !variable_of_process("SLURM_MPI_TYPE").empty();
  if (!chosen && !mpi.empty()) add("--mpi=" + mpi);
  // Binding is the rank processes' business. One that is killed must end the others.
  for (const char* word :
       {"--kill-on-bad-exit=1", "--wait=0", "--cpu-bind=none", "--input=0", "--export=ALL"})
    add(word);
  if (allocation.processors > 0 && spec.ranks > allocation.processors) add("--overcommit");
  // Of a shell that was itself started by srun, the processors are taken; so they are by a step
  // that lost a node, until Slurm has noticed.
  if (allocation.tasks_of_own_step > 0 || !spec.nodes.empty()) add("--overlap");
  for (const auto& more : {spec.srun_args, rank_process_command(spec, is_separator)})
    words.insert(words.end(), more.begin(), more.end());
  return words;
}

void refuse_to_be_a_task(const SlurmAllocation& allocation) {
  if (allocation.tasks_of_own_step <= 1) return;
  throw UserError("catena-run was started by srun as one of " +
                  std::to_string(allocation.tasks_of_own_step) +
                  " tasks (SLURM_STEP_NUM_TASKS); call it once, without srun, or start the program "
                  "itself by srun --mpi=pmix");
}

std::vector<std::string> variables_to_hide(const JobSpec& spec, const SlurmAllocation& allocation) {
  std::vector<std::string> names;
  // Labels and terminals tear the blocks in which output travels; the modes lead it elsewhere.
  for (const char* name : {"SLURM_LABELIO", "SLURM_UNBUFFEREDIO", "SLURM_STDOUTMODE",
                           "SLURM_STDERRMODE", "SLURM_STDINMODE"})
    if (!variable_of_process(name).empty()) names.emplace_back(name);
  // With another number of ranks srun warns that it cannot keep to it.
  const char* per_node = "SLURM_NTASKS_PER_NODE";
  if (spec.ranks != allocation.tasks && !variable_of_process(per_node).empty())
    names.emplace_back(per_node);
  // What the allocation was when all its nodes were there.
  if (!spec.nodes.empty())
    for (const char* name : {"SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_GPUS"})
      if (!variable_of_process(name).empty()) names.emplace_back(name);
  return names;
}

}  // namespace catena::launch
