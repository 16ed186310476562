#include "catena/training/checkpoint_folder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "catena/comm/internals.h"
#include "catena/core/log.h"
#include "parallel/rank_difference.h"
#include "training/checkpoint_names.h"
#include "training/checkpoint_parts.h"
#include "training/checkpoint_writer.h"
#include "training/save_owner.h"

namespace catena::training {
namespace {

using serializers::Checkpoint;
using serializers::Piece;
using serializers::SliceReader;
using serializers::StagedSlices;
using serializers::TensorParts;

double seconds_since(CheckpointWriter::Clock::time_point start) {
  return std::chrono::duration<double>(CheckpointWriter::Clock::now() - start).count();
}

std::string random_id() {
  std::random_device device;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", unsigned(device()), unsigned(device()));
  return text;
}

// How a rank comes to a save. Exchanged as text.
struct Arrival {
  bool is_busy = false;    // still writes the last one
  std::string save_error;  // of the last one
  std::string error;       // of this one
  uint64_t hash = 0;       // of its slices
  std::string alike;       // what must be alike on all ranks, "name\tvalue" lines

  std::string text() const {
    return message(int(is_busy), " ", hash, " ", save_error.size(), " ", alike.size(), " ",
                   save_error, alike, error);
  }
  static Arrival of(const std::string& text) {
    Arrival arrival;
    int busy = 0, used = 0;
    unsigned long long hash = 0;
    size_t size = 0, alike = 0;
    std::sscanf(text.c_str(), "%d %llu %zu %zu%n", &busy, &hash, &size, &alike, &used);
    arrival.is_busy = busy != 0;
    arrival.hash = hash;
    arrival.save_error = text.substr(size_t(used) + 1, size);
    arrival.alike = text.substr(size_t(used) + 1 + size, alike);
    arrival.error = text.substr(size_t(used) + 1 + size + alike);
    return arrival;
  }
};

// How a save goes on one rank. Exchanged as text.
struct Ending {
  bool has_ended = false;
  bool gives_up = false;  // of rank 0: nobody waits any longer
  std::string error;

  std::string text(bool gives_up) const { return message(int(has_ended), int(gives_up), error); }
};

std::vector<Ending> endings_of(const std::vector<std::string>& texts) {
  std::vector<Ending> all;
  for (const std::string& text : texts)
    all.push_back({text.at(0) == '1', text.at(1) == '1', text.substr(2)});
  return all;
}

// The first rank that the others wait for; rank 0, which waits for them itself, if there is no
// other. -1: none.
int first_late(const std::vector<Ending>& all) {
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (!all[rank].has_ended) return int(rank);
  return all[0].has_ended ? -1 : 0;
}

// How long rank 0 lets ranks wait for others that neither end nor fail: a disk that does not answer
// would keep them for ever.
class Patience {
 public:
  explicit Patience(double seconds) : seconds_(seconds) {}

  bool is_over() const { return has_begun_ && seconds_since(since_) > seconds_; }
  // Begins anew with each rank that ends.
  void look(const std::vector<Ending>& all, bool has_failed) {
    constexpr double kAfterAFailure = 10;
    if (has_failed) seconds_ = std::min(seconds_, kAfterAFailure);
    const auto ended =
        std::count_if(all.begin(), all.end(), [](const Ending& one) { return one.has_ended; });
    if (ended == ended_) return;
    ended_ = ended;
    has_begun_ = true;
    since_ = CheckpointWriter::Clock::now();
  }

 private:
  double seconds_;
  std::ptrdiff_t ended_ = 0;
  bool has_begun_ = false;  // with the first rank that has ended
  CheckpointWriter::Clock::time_point since_;
};

// How a rank says to the others why it cannot go on: the kind of the error, and its text.
std::string described(const std::exception& error) {
  const bool is_value_error = dynamic_cast<const ValueError*>(&error) != nullptr;
  return std::string(is_value_error ? "V" : "I") + error.what();
}

// ValueError, on all ranks, unless their lines are equal.
void require_alike(const char* who, const std::vector<std::string>& lines) {
  const auto groups = parallel::first_difference(lines);
  if (groups.empty()) return;
  fail<ValueError>(who, ": ", parallel::describe_values(groups),
                   "; all ranks make the same calls, with the same steps, entries and options");
}

void require_alike(const char* who, const std::vector<Arrival>& all) {
  std::vector<std::string> lines;
  for (const Arrival& one : all) lines.push_back(one.alike);
  require_alike(who, lines);
}

std::string list_of_entries(const Checkpoint& state) {
  std::string list;
  for (const std::string& name : entries_of(state)) list += (list.empty() ? "" : ", ") + name;
  return "(" + list + ")";
}

std::vector<std::string> errors_of(const std::vector<Arrival>& all) {
  std::vector<std::string> errors;
  for (const Arrival& one : all) errors.push_back(one.error);
  return errors;
}

template <class F>
std::string error_of_call(F f) {
  try {
    f();
  } catch (const std::exception& error) {
    return described(error);
  }
  return "";
}

}  // namespace

class CheckpointFolder::Impl {
 public:
  Impl(const std::string& path, Communicator* comm, const CheckpointFolderOptions& options)
      : path_(path), comm_(comm), options_(options) {
    CATENA_CHECK(ValueError, !path.empty(), "CheckpointFolder: the path is empty");
    CATENA_CHECK(ValueError, options.keep >= 1, "CheckpointFolder: .keep is ", options.keep,
                 ", expected at least 1");
    CATENA_CHECK(ValueError, options.timeout > 0, "CheckpointFolder: .timeout is ", options.timeout,
                 ", expected seconds above 0");
  }
  ~Impl();

  const std::string& path() const { return path_; }
  // While it lives, this function of the folder exchanges texts.
  class Call {
   public:
    Call(Impl& folder, const char* name)
        : folder_(folder), purpose_(folder.comm_, name), before_(folder.call_) {
      folder.call_ = name;
    }
    ~Call() { folder_.call_ = before_; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Impl& folder_;
    comm::PurposeScope purpose_;
    const char* before_;
  };
  // Begins a save, and returns whether it did. `is_behind`: training goes on meanwhile.
  bool begin(const Checkpoint& state, int64_t step, bool is_behind);
  void wait();
  void reserve(const Checkpoint& state);
  bool has_checkpoint() const;
  std::vector<int64_t> steps() const { return complete_steps_in(path_); }
  int64_t load(const Checkpoint& state);
  void load(const Checkpoint& state, int64_t step);
  void clear();
  std::string folder_of_step(int64_t step) const { return path_ + "/" + name_of_step(step); }
  Times times() const {
    Times times = times_;
    if (writer_) times.written = writer_->seconds();
    return times;
  }

 private:
  int rank() const { return comm_ ? comm_->rank() : 0; }
  int size() const { return comm_ ? comm_->size() : 1; }
  bool is_first() const { return rank() == 0; }
  // Texts of all ranks. ValueError where they are in different functions of the folder.
  std::vector<std::string> gather(const std::string& own) const {
    if (comm_ == nullptr) return {own};
    std::vector<std::string> all = comm_->all_gather_bytes(message(call_, "\n", own)), calls;
    for (std::string& text : all) {
      const size_t end = text.find('\n');
      calls.push_back("the function that is called\t" + text.substr(0, end));
      text.erase(0, end + 1);
    }
    require_alike("CheckpointFolder", calls);
    return all;
  }
  std::string of_first(const std::string& own) const {
    return comm_ ? comm_->broadcast_bytes(own, 0) : own;
  }
  std::string named(int rank, const std::string& error) const {
    // Rank 0 may say what another one has said.
    return size() > 1 && !error.starts_with("rank ") ? message("rank ", rank, ": ", error) : error;
  }
  void throw_first(const char* who, const std::vector<std::string>& errors) const;
  // What rank 0 decides, on all ranks; they throw what it throws.
  template <class F>
  std::string decided_by_first(const char* who, F decide) const {
    std::string said;
    if (is_first()) {
      const std::string error = error_of_call([&] { said = "=" + decide(); });
      if (!error.empty()) said = error;
    }
    said = of_first(said);
    if (said[0] != '=') throw_first(who, {said});
    return said.substr(1);
  }

  std::vector<Arrival> meet(const Arrival& own) const;
  TensorParts parts_for_save(const Checkpoint& state, Arrival& own) const;
  void make_plan(const TensorParts& parts, const std::vector<Arrival>& all);
  std::string begin_folder(int64_t step, std::shared_ptr<SaveOwner>& owner) const;
  void start_writer(const TensorParts& parts, SavePlan plan);
  Ending ending_here() const;
  void end_writer(const std::vector<std::string>& errors);
  // By folders: what is wrong with their bytes.
  using Damaged = std::map<std::string, std::string>;
  std::string newest(const Damaged& damaged, std::vector<std::string>& skipped) const;
  // A checkpoint that is about to be loaded.
  struct Opened {
    std::unique_ptr<SliceReader> reader;
    std::unique_ptr<PartsToLoad> parts;
  };
  Opened open(const Checkpoint& state, const std::string& folder, const char* hint) const;
  std::string damage_of(const SliceReader& reader) const;
  void restore(const Opened& opened) const;

  std::string path_;
  Communicator* comm_;
  CheckpointFolderOptions options_;
  std::shared_ptr<StagedSlices> staged_ = std::make_shared<StagedSlices>();
  std::unique_ptr<CheckpointWriter> writer_;
  const char* call_ = "";   // the function that runs
  int64_t step_ = 0;        // of the last save
  bool went_back_ = false;  // a step was loaded that may not be the newest
  Times times_;
  // The pieces of this rank, as long as all ranks come with these slices.
  std::vector<uint64_t> hashes_;
  std::vector<Piece> pieces_;
};

CheckpointFolder::Impl::~Impl() {
  if (!writer_) return;
  const bool is_noted = comm_ && writer_->is_running();
  if (is_noted) comm_->note("~CheckpointFolder, which waits for the save to end");
  const std::string error = writer_->wait_for_end();
  if (is_noted) comm_->note("");
  if (!error.empty())
    logging::warning("CheckpointFolder: the checkpoint of step ", step_, " in '", path_,
                     "' was not written: ", error);
}

// Throws, on all ranks, what the first of those with an error has said.
void CheckpointFolder::Impl::throw_first(const char* who,
                                         const std::vector<std::string>& errors) const {
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    if (errors[rank].empty()) continue;
    const std::string text = message(who, ": ", named(int(rank), errors[rank].substr(1)));
    if (errors[rank][0] == 'V') throw ValueError(text);
    throw IoError(text);
  }
}

// Saving ------------------------------------------------------------------------------------------

TensorParts CheckpointFolder::Impl::parts_for_save(const Checkpoint& state, Arrival& own) const {
  TensorParts parts;
  own.error = error_of_call([&] {
    parts = parts_to_save(state, is_first());
    own.hash = serializers::hash_of(slices_of(parts));
  });
  return parts;
}

void CheckpointFolder::Impl::make_plan(const TensorParts& parts, const std::vector<Arrival>& all) {
  std::vector<uint64_t> hashes;
  for (const Arrival& one : all) hashes.push_back(one.hash);
  if (hashes == hashes_) return;
  hashes_.clear();
  std::vector<std::vector<serializers::TensorSlice>> slices;
  for (const std::string& text : gather(serializers::pack(slices_of(parts))))
    slices.push_back(serializers::unpack(text));
  try {
    pieces_ = std::move(serializers::plan_pieces(slices)[size_t(rank())]);
  } catch (const ValueError& error) {  // on all ranks
    fail<ValueError>("CheckpointFolder: ", error.what());
  }
  hashes_ = std::move(hashes);
}

// Makes the folder that the ranks write to, on rank 0, which owns it; its id.
std::string CheckpointFolder::Impl::begin_folder(int64_t step,
                                                 std::shared_ptr<SaveOwner>& owner) const {
  return decided_by_first("CheckpointFolder", [&] {
    namespace fs = std::filesystem;
    std::error_code code;
    const std::vector<int64_t> earlier = steps();
    CATENA_CHECK(ValueError, went_back_ || earlier.empty() || earlier.back() <= step, "'", path_,
                 "' has a checkpoint of step ", earlier.back(), ", after this one of step ", step,
                 "; load it first to go on from it, call clear() to begin anew, or give another "
                 "folder");
    require_no_other_save(path_);
    fs::create_directories(path_, code);
    for (const std::string& old : unfinished_in(path_)) fs::remove_all(old, code);
    const std::string id = random_id(), folder = path_ + "/" + name_of_unfinished(step, id);
    CATENA_CHECK(IoError, fs::create_directory(folder, code), "cannot make the folder '", folder,
                 "': ", code.message(), "; check the path and its permissions");
    owner = std::make_shared<SaveOwner>(folder);
    return id;
  });
}

// Those of all ranks.
std::vector<Arrival> CheckpointFolder::Impl::meet(const Arrival& own) const {
  std::vector<Arrival> all;
  for (const std::string& text : gather(own.text())) all.push_back(Arrival::of(text));
  return all;
}

bool CheckpointFolder::Impl::begin(const Checkpoint& state, int64_t step, bool is_behind) {
  const auto start = CheckpointWriter::Clock::now();
  Arrival own;
  own.alike = message("the step\t", step, "\n.when_busy\t",
                      options_.when_busy == WhenBusy::kSkip ? "kSkip" : "kWait",
                      "\nthe list of entries\t", list_of_entries(state));
  const TensorParts parts = parts_for_save(state, own);
  if (step < 0) own.error = message("Vexpected a step of at least 0, got ", step);
  own.is_busy = writer_ && writer_->is_running();
  if (writer_ && !own.is_busy) own.save_error = writer_->wait_for_end();
  const std::vector<Arrival> all = meet(own);
  std::vector<std::string> save_errors;
  bool is_busy = false;
  for (const Arrival& one : all) {
    save_errors.push_back(one.save_error);
    is_busy = is_busy || one.is_busy;
  }
  const bool failed = std::any_of(save_errors.begin(), save_errors.end(),
                                  [](const std::string& error) { return !error.empty(); });
  if (failed) end_writer(save_errors);
  throw_first("CheckpointFolder", errors_of(all));
  require_alike(call_, all);
  if (is_busy && is_behind && options_.when_busy == WhenBusy::kSkip) return false;
  if (is_busy) wait();
  writer_.reset();
  make_plan(parts, all);
  std::shared_ptr<SaveOwner> owner;
  const std::string id = begin_folder(step, owner);
  step_ = step;
  went_back_ = false;
  start_writer(parts, {.folder = path_,
                       .unfinished = path_ + "/" + name_of_unfinished(step, id),
                       .id = id,
                       .step = step,
                       .rank = rank(),
                       .ranks = size(),
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
void CheckpointFolder::Impl::wait() {
  if (comm_ == nullptr && !writer_) return;
  Patience patience(options_.timeout);
  std::vector<std::string> errors;
  for (bool is_over = false; !is_over;) {
    const Ending own = ending_here();
    const std::vector<Ending> all = endings_of(gather(own.text(patience.is_over())));
    errors.clear();
    for (const Ending& one : all) errors.push_back(one.error);
    const auto failed = std::find_if(errors.begin(), errors.end(),
                                     [](const std::string& error) { return !error.empty(); });
    const bool has_failed = failed != errors.end();
    if (has_failed && writer_) writer_->cancel(named(int(failed - errors.begin()), *failed));
    const int late = first_late(all);
    is_over = late < 0 || all[0].gives_up;
    if (is_over && late >= 0 && !has_failed)
      errors[size_t(late)] = late_part(late, writer_->plan());
    patience.look(all, has_failed);
  }
  const bool has_failed = std::any_of(errors.begin(), errors.end(),
                                      [](const std::string& error) { return !error.empty(); });
  if (has_failed) end_writer(errors);
  if (writer_) times_.written = writer_->seconds();
  writer_.reset();
}

// Whether the save of this rank has ended, after a moment of waiting for it.
Ending CheckpointFolder::Impl::ending_here() const {
  constexpr double kMoment = 0.25;
  std::optional<std::string> error = "";
  if (writer_ && comm_) error = writer_->wait_for_end(kMoment);
  if (writer_ && !comm_) error = writer_->wait_for_end();
  return {error.has_value(), false, error.value_or("")};
}

// Throws, on all ranks; those that wait for others do not any longer.
void CheckpointFolder::Impl::end_writer(const std::vector<std::string>& errors) {
  const auto first = std::find_if(errors.begin(), errors.end(),
                                  [](const std::string& error) { return !error.empty(); });
  const std::string text = named(int(first - errors.begin()), *first);
  if (writer_) writer_->cancel(text);
  writer_.reset();
  fail<IoError>("CheckpointFolder: the checkpoint of step ", step_, " in '", path_,
                "' was not written: ", text, "; those before it are still there");
}

void CheckpointFolder::Impl::reserve(const Checkpoint& state) {
  wait();  // a save that is being written reads the memory
  Arrival own;
  const TensorParts parts = parts_for_save(state, own);
  const std::vector<Arrival> all = meet(own);
  throw_first("CheckpointFolder", errors_of(all));
  make_plan(parts, all);
  throw_first("CheckpointFolder", gather(error_of_call([&] { staged_->reserve(parts, pieces_); })));
}

// Loading -----------------------------------------------------------------------------------------

bool CheckpointFolder::Impl::has_checkpoint() const {
  return decided_by_first("CheckpointFolder::has_checkpoint",
                          [&] { return std::string(steps().empty() ? "no" : "yes"); }) == "yes";
}

// The newest folder that is whole, as far as its index and the sizes of its files tell, and why
// newer ones are not. `damaged`: the bytes of these were read, and what is wrong with them.
std::string CheckpointFolder::Impl::newest(const Damaged& damaged,
                                           std::vector<std::string>& skipped) const {
  skipped.clear();
  for (const std::string& unfinished : unfinished_in(path_))
    skipped.push_back("'" + unfinished + "': its save did not end");
  std::vector<int64_t> steps = steps_in(path_);
  std::reverse(steps.begin(), steps.end());
  for (const int64_t step : steps) {
    const std::string folder = folder_of_step(step);
    const auto known = damaged.find(folder);
    try {
      CATENA_CHECK(IoError, known == damaged.end(), known->second);
      return SliceReader(folder).folder();
    } catch (const IoError& error) {
      skipped.push_back(error.what());
    }
  }
  return "";
}

int64_t CheckpointFolder::Impl::load(const Checkpoint& state) {
  constexpr const char* kWho = "CheckpointFolder::load";
  require_alike(kWho, gather("the checkpoint to load\tthe newest"));
  Damaged damaged;
  std::vector<std::string> skipped;  // on rank 0
  std::set<std::string> warned;
  for (;;) {
    const std::string found = decided_by_first(kWho, [&] {
      const std::string whole = newest(damaged, skipped);
      std::string list;
      for (const std::string& each : skipped) list += "\n  " + each;
      CATENA_CHECK(IoError, !whole.empty(), "there is no complete checkpoint in '", path_, "'",
                   list.empty() ? "; start without one, or give another folder" : ":" + list);
      return whole;
    });
    for (const std::string& each : skipped)
      if (warned.insert(each).second)
        logging::warning("CheckpointFolder: leaves out a checkpoint: ", each);
    const Opened opened = open(state, found, "");
    const std::string damage = damage_of(*opened.reader);
    if (!damage.empty()) {
      damaged[found] = damage;
      continue;
    }
    restore(opened);
    int64_t step = 0;
    std::sscanf(found.c_str() + found.rfind('-') + 1, "%lld", reinterpret_cast<long long*>(&step));
    went_back_ = true;  // newer ones that are not whole may be there, and may be replaced
    return step;
  }
}

void CheckpointFolder::Impl::load(const Checkpoint& state, int64_t step) {
  require_alike("CheckpointFolder::load",
                gather(message("the checkpoint to load\tthat of step ", step)));
  CATENA_CHECK(ValueError, step >= 0, "CheckpointFolder::load: expected a step of at least 0, got ",
               step);
  constexpr const char* kHint =
      "; nothing was loaded; load(state) takes the newest checkpoint that is whole";
  const Opened opened = open(state, folder_of_step(step), kHint);
  const std::string damage = damage_of(*opened.reader);
  CATENA_CHECK(IoError, damage.empty(), "CheckpointFolder::load: ", damage, kHint);
  restore(opened);
  went_back_ = true;
}

// Reads the index. Throws, on all ranks, unless the checkpoint fits what is to be loaded; `hint`
// ends the error of a folder that is not whole.
CheckpointFolder::Impl::Opened CheckpointFolder::Impl::open(const Checkpoint& state,
                                                            const std::string& folder,
                                                            const char* hint) const {
  Opened opened;
  std::string error = error_of_call([&] { opened.reader = std::make_unique<SliceReader>(folder); });
  if (!error.empty())
    error += hint;
  else
    error = error_of_call([&] { opened.parts = std::make_unique<PartsToLoad>(state); });
  throw_first("CheckpointFolder::load", gather(error));
  std::vector<std::string> names;
  std::string own_names;
  for (const std::string& name : opened.parts->names()) own_names += name + "\n";
  for (const std::string& all : gather(own_names))
    for (size_t at = 0, end; (end = all.find('\n', at)) != std::string::npos; at = end + 1)
      names.push_back(all.substr(at, end - at));
  const serializers::SliceIndex& index = opened.reader->index();
  const std::string unknown = unknown_in(index, entries_of(state), names);
  std::vector<std::string> problems = gather(opened.parts->problems(index));
  for (std::string& each : problems)
    if (!(each += unknown).empty())
      each = message("I'", folder, "' is not a checkpoint of this program:", each);
  throw_first("CheckpointFolder::load", problems);
  return opened;
}

// What is wrong with the bytes of a checkpoint, which the ranks read in shares, before anything of
// it is loaded; "" if they are what was written. The same on all ranks.
std::string CheckpointFolder::Impl::damage_of(const SliceReader& reader) const {
  const std::vector<std::string> errors =
      gather(error_of_call([&] { reader.check_pieces(rank(), size()); }));
  for (size_t rank = 0; rank < errors.size(); ++rank)
    if (!errors[rank].empty()) return named(int(rank), errors[rank].substr(1));
  return "";
}

// What fails from here on, on any rank, leaves a state that is neither the old nor the new one.
void CheckpointFolder::Impl::restore(const Opened& opened) const {
  std::vector<std::string> errors =
      gather(error_of_call([&] { opened.parts->load(*opened.reader); }));
  for (std::string& each : errors)
    if (!each.empty())
      each += message("; a part of '", opened.reader->folder(),
                      "' was loaded: load another checkpoint before the state is used");
  throw_first("CheckpointFolder::load", errors);
}

void CheckpointFolder::Impl::clear() {
  if (writer_) writer_->wait_for_end();
  writer_.reset();
  gather("");  // nobody writes any more
  decided_by_first("CheckpointFolder::clear", [&] {
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
  const Impl::Call call(*impl_, "CheckpointFolder::save");
  impl_->begin(state, step, false);
  impl_->wait();
}
bool CheckpointFolder::save_async(const Checkpoint& state, int64_t step) {
  const Impl::Call call(*impl_, "CheckpointFolder::save_async");
  return impl_->begin(state, step, true);
}
void CheckpointFolder::wait() {
  const Impl::Call call(*impl_, "CheckpointFolder::wait");
  impl_->wait();
}
void CheckpointFolder::reserve(const Checkpoint& state) {
  const Impl::Call call(*impl_, "CheckpointFolder::reserve");
  impl_->reserve(state);
}
bool CheckpointFolder::has_checkpoint() const {
  const Impl::Call call(*impl_, "CheckpointFolder::has_checkpoint");
  return impl_->has_checkpoint();
}
std::vector<int64_t> CheckpointFolder::steps() const { return impl_->steps(); }
int64_t CheckpointFolder::load(const Checkpoint& state) {
  const Impl::Call call(*impl_, "CheckpointFolder::load");
  return impl_->load(state);
}
void CheckpointFolder::load(const Checkpoint& state, int64_t step) {
  const Impl::Call call(*impl_, "CheckpointFolder::load");
  impl_->load(state, step);
}
void CheckpointFolder::clear() {
  const Impl::Call call(*impl_, "CheckpointFolder::clear");
  impl_->clear();
}
CheckpointFolder::Times CheckpointFolder::times() const { return impl_->times(); }

}  // namespace catena::training
