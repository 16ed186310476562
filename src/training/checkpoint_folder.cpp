#include "catena/training/checkpoint_folder.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>

#include "catena/comm/internals.h"
#include "catena/core/log.h"
#include "training/checkpoint_equality.h"
#include "training/checkpoint_loader.h"
#include "training/checkpoint_meeting.h"
#include "training/checkpoint_names.h"
#include "training/checkpoint_parts.h"
#include "training/checkpoint_writer.h"
#include "training/folder_ranks.h"
#include "training/save_owner.h"

namespace catena::training {
namespace {

using serializers::Checkpoint;
using serializers::Piece;
using serializers::StagedSlices;
using serializers::TensorParts;

constexpr const char* kCheckPath = "; check the path and its permissions";

std::string random_id() {
  std::random_device device;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", unsigned(device()), unsigned(device()));
  return text;
}

std::string list_of_entries(const Checkpoint& state) {
  std::string list;
  for (const std::string& name : entries_of(state)) list += (list.empty() ? "" : ", ") + name;
  return "(" + list + ")";
}

}  // namespace

class CheckpointFolder::Impl {
 public:
  Impl(const std::string& path, Communicator* comm, const CheckpointFolderOptions& options)
      : path_(path), ranks_(comm), options_(options) {
    CATENA_CHECK(ValueError, !path.empty(), "CheckpointFolder: the path is empty");
    CATENA_CHECK(ValueError, options.keep >= 1, "CheckpointFolder: .keep is ", options.keep,
                 ", expected at least 1");
    CATENA_CHECK(ValueError, options.timeout > 0, "CheckpointFolder: .timeout is ", options.timeout,
                 ", expected seconds above 0");
  }
  ~Impl();

  const std::string& path() const { return path_; }
  FolderRanks& ranks() { return ranks_; }
  // Begins a save, and returns whether it did. `is_behind`: training goes on meanwhile.
  bool begin(const Checkpoint& state, int64_t step, bool is_behind);
  void wait();
  void reserve(const Checkpoint& state);
  bool has_checkpoint() const;
  std::vector<int64_t> steps() const { return complete_steps_in(path_); }
  int64_t load(const Checkpoint& state) {
    const int64_t step = CheckpointLoader(path_, ranks_).load(state);
    went_back_ = true;  // newer ones that are not whole may be there, and may be replaced
    return step;
  }
  void load(const Checkpoint& state, int64_t step) {
    CheckpointLoader(path_, ranks_).load(state, step);
    went_back_ = true;
  }
  void clear();
  Times times() const {
    Times times = times_;
    if (writer_) times.written = writer_->seconds();
    return times;
  }

 private:
  std::vector<Arrival> meet(const Arrival& own) const;
  TensorParts parts_for_save(const Checkpoint& state, Arrival& own) const;
  std::vector<std::vector<serializers::TensorSlice>> slices_of_all(const TensorParts& parts) const;
  void make_plan(const TensorParts& parts, const std::vector<Arrival>& all);
  void compare_at(int64_t step, const TensorParts& parts);
  std::string begin_folder(int64_t step, std::shared_ptr<SaveOwner>& owner) const;
  void require_shared(const std::string& unfinished);
  void start_writer(const TensorParts& parts, SavePlan plan);
  // How a save has ended on all ranks. Given up: a rank has not ended.
  struct SaveEnd {
    std::vector<std::string> errors;
    bool is_given_up = false;
  };
  SaveEnd meet_until_end();
  Ending ending_here() const;
  static constexpr double kMoment = 0.25;     // seconds between two looks at others
  static constexpr double kAfterFailure = 5;  // seconds for which a rank may write nothing then
  // `to_end`: seconds that the thread has to end, once it waits for nothing but the disk.
  static constexpr double kToEndItself = 10, kAfterGivingUp = 1;
  [[noreturn]] void end_writer(const std::vector<std::string>& errors,
                               double to_end = kAfterGivingUp);

  std::string path_;
  FolderRanks ranks_;
  CheckpointFolderOptions options_;
  std::shared_ptr<StagedSlices> staged_ = std::make_shared<StagedSlices>();
  std::unique_ptr<CheckpointWriter> writer_;
  int64_t step_ = 0;          // of the last save
  int compared_steps_ = 0;    // saves that compared what ranks hold in common
  int64_t compared_at_ = -1;  // the last of their steps
  bool is_shared_ = false;    // all ranks see the same folder
  bool went_back_ = false;    // a step was loaded that may not be the newest
  Times times_;
  // The pieces of this rank, as long as all ranks come with these slices.
  std::vector<uint64_t> hashes_;
  std::vector<Piece> pieces_;
};

namespace {

// Whether a rank of the communicator has failed, although this one makes no call.
bool has_failed(const Communicator& comm) {
  try {
    comm::internals(comm).throw_if_failed();
  } catch (const CommError&) {
    return true;
  }
  return !comm::internals(comm).find_problem(0).empty();
}

}  // namespace

CheckpointFolder::Impl::~Impl() {
  if (!writer_) return;
  const bool is_noted = ranks_.comm() && writer_->is_running();
  if (is_noted) ranks_.comm()->note("~CheckpointFolder, which waits for the save to end");
  std::optional<std::string> end;
  while (!(end = writer_->wait_for_end(kMoment)))
    if (ranks_.comm() && has_failed(*ranks_.comm())) writer_->job_has_failed(kAfterFailure);
  const std::string& error = *end;
  if (is_noted) ranks_.comm()->note("");
  if (!error.empty())
    logging::warning("CheckpointFolder: the checkpoint of step ", step_, " in '", path_,
                     "' was not written: ", error);
}

// Saving ------------------------------------------------------------------------------------------

TensorParts CheckpointFolder::Impl::parts_for_save(const Checkpoint& state, Arrival& own) const {
  TensorParts parts;
  own.error = error_of_call([&] {
    parts = parts_to_save(state, ranks_.is_first());
    own.hash = serializers::hash_of(slices_of(parts));
  });
  return parts;
}

std::vector<std::vector<serializers::TensorSlice>> CheckpointFolder::Impl::slices_of_all(
    const TensorParts& parts) const {
  std::vector<std::vector<serializers::TensorSlice>> slices;
  for (const std::string& text : ranks_.gather(serializers::pack(slices_of(parts))))
    slices.push_back(serializers::unpack(text));
  return slices;
}

void CheckpointFolder::Impl::make_plan(const TensorParts& parts, const std::vector<Arrival>& all) {
  std::vector<uint64_t> hashes;
  for (const Arrival& one : all) hashes.push_back(one.hash);
  if (hashes == hashes_) return;
  hashes_.clear();
  const auto slices = slices_of_all(parts);
  try {
    pieces_ = std::move(serializers::plan_pieces(slices)[size_t(ranks_.rank())]);
  } catch (const ValueError& error) {  // on all ranks
    fail<ValueError>("CheckpointFolder: ", error.what());
  }
  hashes_ = std::move(hashes);
}

// Ranks that name different values alike have a fault in how the program is set up. So first saves
// see it, and later ones need not read everything. One is not enough: slices may begin equal.
void CheckpointFolder::Impl::compare_at(int64_t step, const TensorParts& parts) {
  constexpr int kComparedSteps = 2;
  if (ranks_.size() == 1 || step == compared_at_ || compared_steps_ == kComparedSteps) return;
  const auto common = held_in_common(slices_of_all(parts));
  std::string digests;
  const std::string error =
      error_of_call([&] { digests = digests_of(parts, common, ranks_.rank()); });
  ranks_.throw_first(ranks_.call(), ranks_.gather(error));
  require_equal(ranks_.call(), common, ranks_.gather(digests));
  compared_at_ = step;
  ++compared_steps_;
}

// Makes the folder that the ranks write to, on rank 0, which owns it; its id.
std::string CheckpointFolder::Impl::begin_folder(int64_t step,
                                                 std::shared_ptr<SaveOwner>& owner) const {
  return ranks_.decided_by_first("CheckpointFolder", [&] {
    namespace fs = std::filesystem;
    std::error_code code;
    const std::vector<int64_t> earlier = steps();
    CATENA_CHECK(ValueError, went_back_ || earlier.empty() || earlier.back() <= step, "'", path_,
                 "' has a checkpoint of step ", earlier.back(), ", after this one of step ", step,
                 "; load it first to go on from it, call clear() to begin anew, or give another "
                 "folder");
    require_no_other_save(path_);
    fs::create_directories(path_, code);
    // Some versions of the library call a folder behind a link an error.
    CATENA_CHECK(IoError, !code || fs::is_directory(path_), "cannot make the folder '", path_,
                 "': ", code.message(), kCheckPath);
    for (const std::string& old : unfinished_in(path_)) fs::remove_all(old, code);
    const std::string id = random_id(), folder = path_ + "/" + name_of_unfinished(step, id);
    CATENA_CHECK(IoError, fs::create_directory(folder, code), "cannot make the folder '", folder,
                 "': ", code.message(), kCheckPath);
    owner = std::make_shared<SaveOwner>(folder);
    return id;
  });
}

// In the first save: whether all ranks see what rank 0 has made.
void CheckpointFolder::Impl::require_shared(const std::string& unfinished) {
  if (is_shared_ || ranks_.size() == 1) return;
  std::error_code code;
  std::string error;
  if (!std::filesystem::exists(unfinished, code) && !code)
    error = message("Ithere is no '", unfinished, "' here, which rank 0 has made; ",
                    advice_on_sharing(path_));
  const std::vector<std::string> errors = ranks_.gather(error);
  if (first_with_error(errors) >= 0 && ranks_.is_first())
    std::filesystem::remove_all(unfinished, code);
  ranks_.throw_first(ranks_.call(), errors);
  is_shared_ = true;
}

// Those of all ranks.
std::vector<Arrival> CheckpointFolder::Impl::meet(const Arrival& own) const {
  std::vector<Arrival> all;
  for (const std::string& text : ranks_.gather(own.text())) all.push_back(Arrival::of(text));
  return all;
}

bool CheckpointFolder::Impl::begin(const Checkpoint& state, int64_t step, bool is_behind) {
  const auto start = CheckpointWriter::Clock::now();
  Arrival own;
  own.alike =
      message("the step\t", step, "\n.when_busy\t",
              options_.when_busy == WhenBusy::kSkip ? "kSkip" : "kWait", "\n.keep\t", options_.keep,
              "\n.timeout\t", options_.timeout, "\nthe list of entries\t", list_of_entries(state));
  const TensorParts parts = parts_for_save(state, own);
  if (step < 0) own.error = message("Vexpected a step of at least 0, got ", step);
  own.is_busy = writer_ && writer_->is_running();
  if (writer_ && !own.is_busy) own.save_error = writer_->wait_for_end();
  const std::vector<Arrival> all = meet(own);
  const std::vector<std::string> save_errors = texts_of(all, &Arrival::save_error);
  if (first_with_error(save_errors) >= 0) end_writer(save_errors, kToEndItself);
  ranks_.throw_first("CheckpointFolder", texts_of(all, &Arrival::error));
  require_alike(ranks_.call(), texts_of(all, &Arrival::alike));
  const bool is_busy =
      std::any_of(all.begin(), all.end(), [](const Arrival& one) { return one.is_busy; });
  if (is_busy && is_behind && options_.when_busy == WhenBusy::kSkip) return false;
  if (is_busy) wait();
  writer_.reset();
  make_plan(parts, all);
  compare_at(step, parts);
  std::shared_ptr<SaveOwner> owner;
  const std::string id = begin_folder(step, owner);
  require_shared(path_ + "/" + name_of_unfinished(step, id));
  step_ = step;
  went_back_ = false;
  start_writer(parts, {.folder = path_,
                       .unfinished = path_ + "/" + name_of_unfinished(step, id),
                       .id = id,
                       .step = step,
                       .rank = ranks_.rank(),
                       .ranks = ranks_.size(),
                       .entries = entries_of(state),
                       .keep = options_.keep,
                       .timeout = options_.timeout,
                       .is_behind = is_behind,
                       .owner = std::move(owner)});
  times_.blocked = seconds_since(start);
  return true;
}

// What goes wrong here on one rank is heard of when the ranks next meet.
void CheckpointFolder::Impl::start_writer(const TensorParts& parts, SavePlan plan) {
  const std::string error = error_of_call([&] { staged_->copy(parts, pieces_); });
  times_.bytes = staged_->bytes();
  writer_ = error.empty() ? std::make_unique<CheckpointWriter>(std::move(plan), staged_)
                          : std::make_unique<CheckpointWriter>(std::move(plan), error.substr(1));
}

// The ranks meet while they wait: the limit of a job for calls that make no progress (catena-run
// --timeout) is not one for saves, and an error of one rank ends the others' waiting.
CheckpointFolder::Impl::SaveEnd CheckpointFolder::Impl::meet_until_end() {
  if (ranks_.comm() == nullptr && !writer_) return {};
  Patience patience(options_.timeout);
  for (;;) {
    const Ending own = ending_here();
    const std::vector<Ending> all = endings_of(ranks_.gather(own.text(patience.is_over())));
    std::vector<std::string> errors = texts_of(all, &Ending::error);
    const int failed = first_with_error(errors);
    const bool has_failed = failed >= 0;
    if (has_failed && writer_) writer_->cancel(ranks_.named(failed, errors[size_t(failed)]));
    const int late = first_late(all);
    if (late < 0) return {errors, false};
    if (all[0].gives_up) {
      if (!has_failed) errors[size_t(late)] = text_of_late(late, all, writer_->plan());
      return {errors, true};
    }
    patience.look(all, has_failed);
  }
}

void CheckpointFolder::Impl::wait() {
  const std::vector<std::string> errors = meet_until_end().errors;
  if (first_with_error(errors) >= 0) end_writer(errors);
  if (writer_) times_.written = writer_->seconds();
  writer_.reset();
}

// Whether the save of this rank has ended, after a moment of waiting for it.
Ending CheckpointFolder::Impl::ending_here() const {
  std::optional<std::string> error = "";
  if (writer_ && ranks_.comm()) error = writer_->wait_for_end(kMoment);
  if (writer_ && !ranks_.comm()) error = writer_->wait_for_end();
  return {.has_ended = error.has_value(),
          .has_part = !writer_ || writer_->has_part(),
          .written = writer_ ? writer_->written() : 0,
          .error = error.value_or("")};
}

// Throws, on all ranks; those that wait for others do not any longer. A thread whose disk does not
// answer is left to itself, with the memory that it writes.
void CheckpointFolder::Impl::end_writer(const std::vector<std::string>& errors, double to_end) {
  const int first = first_with_error(errors);
  const std::string text = ranks_.named(first, errors[size_t(first)]);
  if (writer_) writer_->cancel(text);
  if (writer_ && !writer_->wait_for_end(to_end)) {
    std::thread([left = std::move(writer_)]() mutable { left.reset(); }).detach();
    staged_ = std::make_shared<StagedSlices>();
  }
  writer_.reset();
  fail<IoError>("CheckpointFolder: the checkpoint of step ", step_, " in '", path_,
                "' was not written: ", text, "; those before it are still there");
}

void CheckpointFolder::Impl::reserve(const Checkpoint& state) {
  wait();  // a save that is being written reads the memory
  Arrival own;
  const TensorParts parts = parts_for_save(state, own);
  const std::vector<Arrival> all = meet(own);
  ranks_.throw_first("CheckpointFolder", texts_of(all, &Arrival::error));
  make_plan(parts, all);
  ranks_.throw_first("CheckpointFolder",
                     ranks_.gather(error_of_call([&] { staged_->reserve(parts, pieces_); })));
}

// Loading -----------------------------------------------------------------------------------------

bool CheckpointFolder::Impl::has_checkpoint() const {
  return ranks_.decided_by_first("CheckpointFolder::has_checkpoint", [&] {
    return std::string(steps().empty() ? "no" : "yes");
  }) == "yes";
}

void CheckpointFolder::Impl::clear() {
  const SaveEnd end = meet_until_end();
  if (end.is_given_up) end_writer(end.errors);
  writer_.reset();    // how it has ended does not matter: its checkpoint is removed too
  ranks_.gather("");  // nobody writes any more
  ranks_.decided_by_first("CheckpointFolder::clear", [&] {
    remove_all_steps(path_);
    return std::string();
  });
}

// The public face ---------------------------------------------------------------------------------

CheckpointFolder::CheckpointFolder(const std::string& path, Communicator* comm,
                                   const CheckpointFolderOptions& options)
    : impl_(std::make_unique<Impl>(path, comm, options)) {}
CheckpointFolder::~CheckpointFolder() = default;

const std::string& CheckpointFolder::path() const { return impl_->path(); }

void CheckpointFolder::save(const Checkpoint& state, int64_t step) {
  const FolderRanks::Call call(impl_->ranks(), "CheckpointFolder::save");
  impl_->begin(state, step, false);
  impl_->wait();
}
bool CheckpointFolder::save_async(const Checkpoint& state, int64_t step) {
  const FolderRanks::Call call(impl_->ranks(), "CheckpointFolder::save_async");
  return impl_->begin(state, step, true);
}
void CheckpointFolder::wait() {
  const FolderRanks::Call call(impl_->ranks(), "CheckpointFolder::wait");
  impl_->wait();
}
void CheckpointFolder::reserve(const Checkpoint& state) {
  const FolderRanks::Call call(impl_->ranks(), "CheckpointFolder::reserve");
  impl_->reserve(state);
}
bool CheckpointFolder::has_checkpoint() const {
  const FolderRanks::Call call(impl_->ranks(), "CheckpointFolder::has_checkpoint");
  return impl_->has_checkpoint();
}
std::vector<int64_t> CheckpointFolder::steps() const { return impl_->steps(); }
int64_t CheckpointFolder::load(const Checkpoint& state) {
  const FolderRanks::Call call(impl_->ranks(), "CheckpointFolder::load");
  return impl_->load(state);
}
void CheckpointFolder::load(const Checkpoint& state, int64_t step) {
  const FolderRanks::Call call(impl_->ranks(), "CheckpointFolder::load");
  impl_->load(state, step);
}
void CheckpointFolder::clear() {
  const FolderRanks::Call call(impl_->ranks(), "CheckpointFolder::clear");
  impl_->clear();
}
CheckpointFolder::Times CheckpointFolder::times() const { return impl_->times(); }

}  // namespace catena::training
