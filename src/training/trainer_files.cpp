// What a Trainer saves and resumes, and the files in its folder.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "catena/core/log.h"
#include "catena/parallel/from_rank0.h"
#include "catena/parallel/persistents.h"
#include "catena/training/trainer.h"
#include "parallel/equal_states.h"
#include "training/checkpoint_parts.h"
#include "training/rank_states.h"

namespace catena::training {
namespace {

// Entries of the checkpoint that versions of before 2026-11-24 did not have.
const std::string kRanks = "rank_states", kExtensions = "extensions", kRow = "row",
                  kRowColumns = "row_columns";

Array no_bytes() { return zeros({0}, {dtype::uint8, cpu(0)}); }

bool has_entry(const NamedArrays& arrays, const std::string& entry) {
  return std::any_of(arrays.begin(), arrays.end(), [&](const auto& named) {
    return named.first == entry || named.first.starts_with(entry + "/");
  });
}

}  // namespace

void Trainer::list_state() {
  datasets::BatchIterator& batches = updater_.batches();
  checkpoint_.add("model", model_);
  for (size_t k = 0; k < optimizers_.size(); ++k)
    checkpoint_.add(k == 0 ? "optimizer" : message("optimizer", k + 1), optimizers_[k].get());
  checkpoint_.add("iteration", iteration_);
  checkpoint_.add("elapsed", elapsed_);
  checkpoint_.add(
      "iterator", [&batches] { return batches.state(); },
      [&batches](const datasets::IteratorState& state) { batches.set_state(state); });
  checkpoint_.add("random", random::default_state(batches.device()));
  checkpoint_.add(kRanks, rank_states_);
  checkpoint_.add(kExtensions, extension_states_);
  checkpoint_.add(kRowColumns, row_columns_);
  checkpoint_.add(kRow, row_numbers_);
}

// Earlier versions had the record of keep_best as an entry and no states of extensions.
NamedArrays Trainer::upgraded(NamedArrays arrays) const {
  for (auto& [name, array] : arrays)
    for (const Added& added : extensions_)
      if (name == added.extension->name()) name = kExtensions + "/" + name + "/record";
  for (const std::string& entry : {kRanks, kExtensions})
    if (!has_entry(arrays, entry)) arrays.emplace_back(entry + "/none", no_bytes());
  for (const std::string& entry : {kRowColumns, kRow})
    if (!has_entry(arrays, entry)) arrays.emplace_back(entry, no_bytes());
  return arrays;
}

// Slices may be declared after the constructor, too.
void Trainer::check_slices() const {
  const SliceCounts counts = slices_over(checkpoint_);
  const int64_t count = counts.most();
  if (count == 1 || options_.out.empty()) return;
  const int64_t least =
      std::max(counts.parameters * (comm_ ? comm_->size() : 1), counts.persistents);
  CATENA_CHECK(ValueError, options_.ranks && options_.ranks->size() >= least,
               "Trainer: the model has slices of its tensors over ", count,
               " ranks, which would all write the same files; set .ranks to the communicator of "
               "all ranks, such as &grid.comm(), and .checkpoints",
               options_.ranks ? message(", got one of ", options_.ranks->size(), " ranks") : "");
  CATENA_CHECK(ValueError, options_.checkpoints || !options_.snapshot.is_set(),
               "Trainer: the model has slices of its tensors over ", count,
               " ranks, and checkpoint.npz would have those of rank 0 only; set .checkpoints = "
               "training::CheckpointFolderOptions{}, for checkpoints that all ranks write");
}

std::string Trainer::folder(const char* who, const std::string& file) const {
  CATENA_CHECK(ValueError, !options_.out.empty(), who, ": there is no folder for '", file,
               "'; set .out");
  return options_.out + "/" + file;
}

std::string Trainer::path_for_model(const char* who, const std::string& file) const {
  const std::string path = folder(who, file);
  const int64_t count = slices_over(checkpoint_).most();
  CATENA_CHECK(ValueError, count == 1, who, ": the model has slices of its tensors over ", count,
               " ranks, and the file would have those of rank 0 only; save it with a "
               "CheckpointFolder of all ranks");
  return path;
}

std::string Trainer::file_path() const { return options_.out + "/checkpoint.npz"; }
std::string Trainer::folder_path() const { return options_.out + "/checkpoints"; }

std::string Trainer::checkpoint_path() const {
  if (options_.out.empty()) return {};
  return folder_ ? folder_path() : file_path();
}

bool Trainer::has_checkpoint() const {
  const bool exists = !options_.out.empty() && (std::filesystem::exists(file_path()) ||
                                                !CheckpointFolder(folder_path()).steps().empty());
  return all_ ? all_->broadcast_object(int(exists)) != 0 : exists;
}

void Trainer::remove_checkpoints() {
  if (options_.out.empty()) return;
  std::error_code ignored;
  if (is_root()) std::filesystem::remove(file_path(), ignored);
  if (folder_)  // which may be saving
    folder_->clear();
  else
    CheckpointFolder(folder_path(), all_).clear();
}

// On rank 0: whether the newest checkpoint is in the folder, and not in the file.
bool Trainer::folder_is_newest() const {
  namespace fs = std::filesystem;
  const std::vector<int64_t> steps = CheckpointFolder(folder_path()).steps();
  if (steps.empty() || !fs::exists(file_path())) return !steps.empty();
  fs::file_time_type newest = fs::file_time_type::min();
  for (const auto& entry : fs::directory_iterator(folder_path()))
    newest = std::max(newest, entry.last_write_time());
  return newest > fs::last_write_time(file_path());
}

// Files that this run would write and that exist before it has written any.
std::vector<std::string> Trainer::files_in_the_way() const {
  std::vector<std::string> files, found;
  if (options_.snapshot.is_set() && !folder_) files.push_back("checkpoint.npz");
  if (options_.report.is_set()) files.push_back("log.json");
  for (const Added& added : extensions_)
    for (const std::string& file : added.extension->files()) files.push_back(file);
  for (const std::string& file : files)
    if (std::filesystem::exists(options_.out + "/" + file)) found.push_back(file);
  if (options_.snapshot.is_set() && folder_ && !CheckpointFolder(folder_path()).steps().empty())
    found.insert(found.begin(), "checkpoints");
  return found;
}

namespace {

// Started again by catena-run: an earlier attempt of this run has written what is there.
bool is_restarted() {
  const char* const restart = std::getenv("CATENA_RESTART");
  return restart != nullptr && std::atoi(restart) > 0;
}

}  // namespace

void Trainer::take_folder() {
  if (options_.out.empty() || resumed_ || iteration_ > 0) return;
  if (options_.overwrite) return remove_checkpoints();
  if (is_restarted() && !has_checkpoint()) return;  // it came to none
  std::string names;
  if (is_root())
    for (const std::string& file : files_in_the_way()) names += (names.empty() ? "" : ", ") + file;
  if (all_) names = all_->broadcast_object(names);
  CATENA_CHECK(ValueError, names.empty(), "Trainer::run: the folder '", options_.out, "' has ",
               names,
               " of an earlier run, which this one would overwrite; call resume() first to "
               "go on from it, give another folder as .out, or set .overwrite = true");
}

// Rows of the log are read before anything is restored.
void Trainer::read_checkpoint(std::vector<Row>& rows) {
  const std::string path = folder("Trainer::resume", "checkpoint.npz");
  const auto share = parallel::from_rank_0(all_);
  int in_folder = is_root() && folder_is_newest();
  if (all_) in_folder = all_->broadcast_object(in_folder);
  // Values are gathered to be written.
  if (in_folder) {
    gather_values_for_folder();
    share([&] {
      rows = report_.read_log();
      return NamedArrays();
    });
    if (folder_)
      folder_->load(checkpoint_);
    else
      CheckpointFolder(folder_path(), all_).load(checkpoint_);
    return;
  }
  gather_values();
  const int64_t count = slices_over(checkpoint_).most();
  CATENA_CHECK(IoError, count == 1, "Trainer::resume: '", path,
               "' is the newest checkpoint and has what one rank has, while this model has slices "
               "over ",
               count, " ranks; remove the file, and go on from out/checkpoints");
  checkpoint_.load(path, [&](const auto& read) {
    return share([&] {
      CATENA_CHECK(IoError, std::filesystem::exists(path), "Trainer::resume: there is no '", path,
                   "' to go on from; start without resume(), or give the folder of the earlier "
                   "run as .out");
      rows = report_.read_log();
      return upgraded(read());
    });
  });
}

void Trainer::resume() {
  check_slices();
  std::vector<Row> rows;  // of the log, on rank 0
  read_checkpoint(rows);
  updater_.settle(means_);  // of an earlier run of this trainer
  means_.clear();
  restore_rank_state(rank_states_, own_state(), comm_);
  rank_states_.clear();
  restore_extensions();
  restore_row();
  reported_ = saved_ = iteration_;
  averaged_ = -1;
  resumed_ = true;
  report_.restore(std::move(rows), epoch_detail());
}

void Trainer::restore_row() {
  row_.clear();
  std::istringstream columns(row_columns_);
  for (std::string name; std::getline(columns, name);) {
    const size_t k = row_.size();
    row_.emplace_back(name, k < row_numbers_.size() ? row_numbers_[k] : std::nan(""));
  }
}

void Trainer::restore_extensions() {
  std::map<std::string, NamedArrays> saved;
  for (const auto& [name, array] : extension_states_) {
    const size_t slash = name.find('/');
    if (slash != std::string::npos)
      saved[name.substr(0, slash)].emplace_back(name.substr(slash + 1), array);
  }
  extension_states_.clear();
  for (Added& added : extensions_) {
    const auto found = saved.find(added.extension->name());
    if (found == saved.end()) continue;
    added.state.from_arrays(found->second,
                            checkpoint_path() + ", extension '" + found->first + "'");
    saved.erase(found);
  }
  for (const auto& [name, arrays] : saved)
    if (is_root())
      logging::warning("Trainer::resume: the checkpoint has the state of an extension '", name,
                       "', which this run does not have; it is dropped");
}

RankState Trainer::own_state() {
  const bool draws_alike = std::any_of(
      ranks_.begin(), ranks_.end(), [](const auto& each) { return each.get().slice_count() > 0; });
  return {random::default_state(updater_.batches().device()), means_, options_.metrics, model_,
          draws_alike};
}

void Trainer::gather_values() {
  for (parallel::MultiNodeOptimizer& each : ranks_) each.gather_parameters();
}

// A folder takes the others in parts, from the ranks that keep them.
void Trainer::gather_values_for_folder() {
  for (parallel::MultiNodeOptimizer& each : ranks_)
    if (!each.gathers_in_use()) each.gather_parameters();
}

void Trainer::average_statistics() {
  if (averaged_ == iteration_) return;
  parallel::average_persistents(model_, comm_);
  averaged_ = iteration_;
}

void Trainer::save_model(const std::string& file) {
  const std::string path = path_for_model("Trainer::save_model", file);
  gather_values();
  average_statistics();
  if (is_root()) serializers::save(path, model_);
}

bool Trainer::write_checkpoint() {
  if (folder_ && options_.async) {
    return folder_->save_async(checkpoint_, iteration_);
  } else if (folder_) {
    folder_->save(checkpoint_, iteration_);
  } else {
    if (is_root()) checkpoint_.save(file_path());
    for (Optimizer& each : optimizers_)
      if (!is_root() && each.is_sharded()) each.state();  // takes part in gathering for the root
  }
  return true;
}

void Trainer::save_snapshot() {
  folder_ ? gather_values_for_folder() : gather_values();
  for (parallel::MultiNodeOptimizer& each : ranks_)
    parallel::check_equal_states(*comm_, each.actual_optimizer(), "check_state");
  if (options_.out.empty()) {
    saved_ = iteration_;
    return;
  }
  average_statistics();
  count_time();
  updater_.settle(means_);
  if (!options_.allow_nonfinite_loss) check_losses_since_row();
  rank_states_ = gather_rank_states(own_state(), comm_);
  for (const Added& added : extensions_)
    for (const auto& [name, array] : added.state.to_arrays())
      extension_states_[added.extension->name() + "/" + name] = array;
  row_columns_.clear();
  row_numbers_.clear();
  for (const auto& [name, number] : row_) {
    row_columns_ += name + "\n";
    row_numbers_.push_back(number);
  }
  if (write_checkpoint()) saved_ = iteration_;
  rank_states_.clear();
  extension_states_.clear();
}

}  // namespace catena::training
