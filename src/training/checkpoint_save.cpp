#include "training/checkpoint_save.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "catena/comm/transport.h"
#include "catena/core/log.h"
#include "comm/agreement.h"
#include "parallel/array_digest.h"
#include "serializers/slice_plan.h"
#include "training/checkpoint_parts.h"
#include "training/save_owner.h"

namespace catena::training {
namespace {

using serializers::SharedSlice;

constexpr size_t kDigestDigits = 16;  // of a digest in a text

// What several ranks have, of which each would write some elements (TensorSlice::is_equal).
std::vector<SharedSlice> held_in_common(
    const std::vector<std::vector<serializers::TensorSlice>>& slices) {
  std::vector<SharedSlice> shared = serializers::shared_slices(slices);
  std::erase_if(shared, [](const SharedSlice& one) {
    return one.holders.size() < 2 || !one.slice.is_equal || one.slice.is_value;
  });
  return shared;
}

// What this rank's parts are among those, as a text to exchange. Reads each of them once, on its
// device, and waits for that.
std::string digests_of(const serializers::TensorParts& parts,
                       const std::vector<SharedSlice>& common, int rank) {
  std::string text;
  for (const SharedSlice& one : common) {
    for (const SharedSlice::Holder& holder : one.holders) {
      if (holder.process != size_t(rank)) continue;
      char digits[kDigestDigits + 1];
      std::snprintf(
          digits, sizeof digits, "%016llx",
          static_cast<unsigned long long>(parallel::digest_of(parts[holder.part].flat())));
      text += digits;
    }
  }
  return text;
}

// ValueError, given the texts of all ranks, that names the first tensor that differs and the ranks.
void require_equal(const char* who, const std::vector<SharedSlice>& common,
                   const std::vector<std::string>& digests) {
  std::vector<size_t> next(digests.size(), 0);  // in each text
  for (const SharedSlice& one : common) {
    std::vector<int> others;  // that differ from the first
    std::string first;
    for (const SharedSlice::Holder& holder : one.holders) {
      size_t& at = next[holder.process];
      const std::string digest = digests[holder.process].substr(at, kDigestDigits);
      at += kDigestDigits;
      if (&holder == &one.holders[0]) first = digest;
      if (digest != first) others.push_back(int(holder.process));
    }
    CATENA_CHECK(
        ValueError, others.empty(), who, ": '", one.slice.name, "' on ", comm::list_ranks(others),
        others.size() == 1 ? " differs" : " differ", " from that on rank ", one.holders[0].process,
        ", but has the same name and shape, so that they would be saved as one tensor. If each "
        "rank has a slice of a whole, call Checkpoint::declare_slice; if each has a model of its "
        "own, give each rank a CheckpointFolder with a path of its own and without a communicator. "
        "Otherwise all ranks must start from the same state and make the same updates");
  }
}

using serializers::Checkpoint;
using serializers::Piece;
using serializers::TensorParts;

constexpr double kMoment = 0.25;     // seconds between two looks at others
constexpr double kAfterFailure = 5;  // seconds for which a rank may write nothing then
constexpr double kForever = 1e9;     // seconds
// Seconds that the thread has to end, once it waits for nothing but the disk.
constexpr double kToEndItself = 10, kAfterGivingUp = 1;
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

CheckpointSaves::~CheckpointSaves() {
  if (!writer_) return;
  const bool is_noted = ranks_.comm() && writer_->is_running();
  if (is_noted) ranks_.comm()->note("~CheckpointFolder, which waits for the save to end");
  std::optional<std::string> end;
  while (!(end = writer_->wait_for_end(kMoment)))
    if (ranks_.comm() && has_failed(*ranks_.comm())) writer_->job_has_failed(kAfterFailure);
  const std::string& error = *end;
  if (is_noted) ranks_.comm()->note("");
  if (!error.empty())
    logging::warning("CheckpointFolder: the checkpoint of step ", step_, " in '", names_.path(),
                     "' was not written: ", error);
}

// Saving ------------------------------------------------------------------------------------------

CheckpointSaves::Coming CheckpointSaves::come_with(const Checkpoint& state) const {
  Coming own;
  own.arrival.error = error_of_call([&] {
    own.parts = parts_to_save(state, ranks_.is_first());
    own.arrival.hash = serializers::hash_of(slices_of(own.parts));
  });
  return own;
}

std::vector<std::vector<serializers::TensorSlice>> CheckpointSaves::slices_of_all(
    const TensorParts& parts) const {
  std::vector<std::vector<serializers::TensorSlice>> slices;
  for (const std::string& text : ranks_.gather(serializers::pack(slices_of(parts))))
    slices.push_back(serializers::unpack(text));
  return slices;
}

void CheckpointSaves::make_plan(const TensorParts& parts, const std::vector<Arrival>& all) {
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
void CheckpointSaves::compare_at(int64_t step, const TensorParts& parts) {
  constexpr size_t kComparedSteps = 2;
  const bool is_known = std::count(compared_.begin(), compared_.end(), step) > 0;
  if (ranks_.size() == 1 || is_known || compared_.size() == kComparedSteps) return;
  const auto common = held_in_common(slices_of_all(parts));
  std::string digests;
  ranks_.throw_if_any(ranks_.call(),
                      error_of_call([&] { digests = digests_of(parts, common, ranks_.rank()); }));
  require_equal(ranks_.call(), common, ranks_.gather(digests));
  compared_.push_back(step);
}

// Makes the folder that the ranks write to, on rank 0, which owns it; its id.
std::string CheckpointSaves::begin_folder(int64_t step, std::shared_ptr<SaveOwner>& owner) const {
  return ranks_.decided_by_first("CheckpointFolder", [&] {
    namespace fs = std::filesystem;
    std::error_code code;
    const std::vector<int64_t> earlier = names_.complete_steps();
    const bool is_latest = earlier.empty() || earlier.back() <= step;
    CATENA_CHECK(ValueError, is_latest || last_ == Last::kLoad, "'", names_.path(),
                 "' has a checkpoint of step ", earlier.back(), ", after this one of step ", step,
                 "; load it first to go on from it, call clear() to begin anew, or give another "
                 "folder");
    require_no_other_save(names_);
    fs::create_directories(names_.path(), code);
    // Some versions of the library call a folder behind a link an error.
    CATENA_CHECK(IoError, !code || fs::is_directory(names_.path()), "cannot make the folder '",
                 names_.path(), "': ", code.message(), kCheckPath);
    for (const std::string& old : names_.all_unfinished()) fs::remove_all(old, code);
    const std::string id = random_id(), folder = names_.unfinished(step, id);
    CATENA_CHECK(IoError, fs::create_directory(folder, code), "cannot make the folder '", folder,
                 "': ", code.message(), kCheckPath);
    owner = std::make_shared<SaveOwner>(folder);
    return id;
  });
}

// In the first save, and behind a load: whether all ranks see what rank 0 has made.
void CheckpointSaves::require_shared(const std::string& unfinished) const {
  if (last_ == Last::kSave || ranks_.size() == 1) return;
  std::error_code code;
  RankError error;
  if (!std::filesystem::exists(unfinished, code) && !code)
    error = {RankError::Kind::kIo,
             message("there is no '", unfinished, "' here, which rank 0 has made; ",
                     advice_on_sharing(names_.path()))};
  const std::vector<RankError> errors = ranks_.gather_errors(error);
  if (first_with_error(errors) >= 0 && ranks_.is_first())
    std::filesystem::remove_all(unfinished, code);
  ranks_.throw_first(ranks_.call(), errors);
}

// Those of all ranks.
std::vector<Arrival> CheckpointSaves::meet(const Arrival& own) const {
  std::vector<Arrival> all;
  for (const std::string& text : ranks_.gather(own.text())) all.push_back(Arrival::of(text));
  return all;
}

bool CheckpointSaves::begin(const Checkpoint& state, int64_t step, bool is_behind) {
  const auto start = CheckpointWriter::Clock::now();
  auto [parts, own] = come_with(state);
  own.alike = comm::Agreement()
                  .add("the step", step)
                  .add(".when_busy", options_.when_busy == WhenBusy::kSkip ? "kSkip" : "kWait")
                  .add(".keep", options_.keep)
                  .add(".timeout", options_.timeout)
                  .add("the list of entries", list_of_entries(state))
                  .text();
  if (step < 0)
    own.error = {RankError::Kind::kValue, message("expected a step of at least 0, got ", step)};
  own.is_busy = writer_ && writer_->is_running();
  if (writer_ && !own.is_busy) own.save_error = writer_->wait_for_end(0).value();
  const std::vector<Arrival> all = meet(own);
  const std::vector<std::string> save_errors = parts_of(all, &Arrival::save_error);
  if (first_with_error(save_errors) >= 0) fail_with(save_errors, kToEndItself);
  ranks_.throw_first("CheckpointFolder", parts_of(all, &Arrival::error));
  require_alike(ranks_.call(), parts_of(all, &Arrival::alike));
  const bool is_busy =
      std::any_of(all.begin(), all.end(), [](const Arrival& one) { return one.is_busy; });
  if (is_busy && is_behind && options_.when_busy == WhenBusy::kSkip) return false;
  if (is_busy) wait();
  writer_.reset();
  make_plan(parts, all);
  compare_at(step, parts);
  std::shared_ptr<SaveOwner> owner;
  const std::string id = begin_folder(step, owner);
  require_shared(names_.unfinished(step, id));
  step_ = step;
  last_ = Last::kSave;
  start_writer(parts, {.names = names_,
                       .unfinished = names_.unfinished(step, id),
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
void CheckpointSaves::start_writer(const TensorParts& parts, SavePlan plan) {
  RankError error = error_of_call([&] { staged_->copy(parts, pieces_); });
  times_.bytes = staged_->bytes();
  writer_ = std::make_unique<CheckpointWriter>(std::move(plan), staged_, std::move(error));
}

// The ranks meet while they wait: the limit of a job for calls that make no progress (catena-run
// --timeout) is not one for saves, and an error of one rank ends the others' waiting.
CheckpointSaves::End CheckpointSaves::meet_until_end() {
  if (ranks_.comm() == nullptr && !writer_) return {};
  Patience patience(options_.timeout);
  for (;;) {
    const Ending own = ending_here();
    const std::vector<Ending> all = endings_of(ranks_.gather(own.text(patience.is_over())));
    std::vector<std::string> errors = parts_of(all, &Ending::error);
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

void CheckpointSaves::wait() {
  const std::vector<std::string> errors = meet_until_end().errors;
  if (first_with_error(errors) >= 0) fail_with(errors, kAfterGivingUp);
  if (writer_) times_.written = writer_->seconds();
  writer_.reset();
}

// Whether the save of this rank has ended, after a moment of waiting for it.
Ending CheckpointSaves::ending_here() const {
  using State = CheckpointWriter::State;
  if (!writer_) return {.state = State::kEnded};
  const auto error = writer_->wait_for_end(ranks_.comm() ? kMoment : kForever);
  const State before = writer_->state() == State::kPart ? State::kPart : State::kCompletion;
  return {.state = error ? State::kEnded : before,
          .written = writer_->written(),
          .error = error.value_or("")};
}

// Throws, on all ranks; those that wait for others do not any longer. A thread whose disk does not
// answer is left to itself, with the memory that it writes.
void CheckpointSaves::fail_with(const std::vector<std::string>& errors, double to_end) {
  const int first = first_with_error(errors);
  const std::string text = ranks_.named(first, errors[size_t(first)]);
  if (writer_) writer_->cancel(text);
  if (writer_ && !writer_->wait_for_end(to_end)) {
    std::thread([left = std::move(writer_)]() mutable { left.reset(); }).detach();
    staged_ = std::make_shared<serializers::StagedSlices>();
  }
  writer_.reset();
  fail<IoError>("CheckpointFolder: the checkpoint of step ", step_, " in '", names_.path(),
                "' was not written: ", text, "; those before it are still there");
}

void CheckpointSaves::reserve(const Checkpoint& state) {
  wait();  // a save that is being written reads the memory
  const Coming own = come_with(state);
  const std::vector<Arrival> all = meet(own.arrival);
  ranks_.throw_first("CheckpointFolder", parts_of(all, &Arrival::error));
  make_plan(own.parts, all);
  ranks_.throw_if_any("CheckpointFolder",
                      error_of_call([&] { staged_->reserve(own.parts, pieces_); }));
}

void CheckpointSaves::abandon() {
  const End end = meet_until_end();
  if (end.is_given_up) fail_with(end.errors, kAfterGivingUp);
  writer_.reset();
}

CheckpointFolder::Times CheckpointSaves::times() const {
  CheckpointFolder::Times times = times_;
  if (writer_) times.written = writer_->seconds();
  return times;
}

}  // namespace catena::training
