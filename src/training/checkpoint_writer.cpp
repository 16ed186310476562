#include "training/checkpoint_writer.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "array/io/file_io.h"
#include "catena/array/io.h"
#include "catena/core/log.h"

namespace catena::training {
namespace {

using serializers::SliceFile;
using serializers::SliceIndex;
using serializers::SliceRecord;

// Beside a computing thread the scheduler then gives it 3.4 % of the core.
constexpr int kNiceness = 15;

std::string name_of_part(int rank, const char* end) {
  char name[64];
  std::snprintf(name, sizeof name, "rank-%05d%s", rank, end);
  return name;
}
constexpr const char *kPartFile = ".slices", *kPartDone = ".done", *kPartFailed = ".failed";

std::optional<std::string> text_of_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return io::read_whole_file(path);
}

void lower_priority() {
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  (void)::setpriority(PRIO_PROCESS, thread, kNiceness);
}

}  // namespace

std::string late_part(int rank, const SavePlan& plan) {
  return message("rank ", rank, " has not written its part within ", plan.timeout,
                 " s of the others; does it share the file system of '", plan.names.path(),
                 "'? If its disk is slower, raise CheckpointFolderOptions::timeout");
}

CheckpointWriter::CheckpointWriter(SavePlan plan, std::shared_ptr<serializers::StagedSlices> staged,
                                   RankError staging_error)
    : plan_(std::move(plan)),
      staged_(std::move(staged)),
      error_(std::move(staging_error.text)),
      thread_([this] { run(); }) {}

CheckpointWriter::~CheckpointWriter() { thread_.join(); }

void CheckpointWriter::run() {
  if (plan_.is_behind) lower_priority();
  std::string error = error_;
  const auto go_on = [&](auto step) {
    try {
      if (error.empty()) step();
    } catch (const std::exception& e) {
      error = explained(e.what());
    }
  };
  go_on([&] { write_part(); });
  end_part(error);
  state_ = State::kCompletion;
  if (plan_.rank == 0) go_on([&] { complete(); });
  if (!error.empty() && plan_.rank == 0) {
    std::error_code ignored;
    std::filesystem::remove_all(plan_.unfinished, ignored);
  }
  plan_.owner.reset();
  seconds_ = std::chrono::duration<double>(Clock::now() - start_).count();
  const std::lock_guard lock(mutex_);
  error_ = error;
  state_ = State::kEnded;
  changed_.notify_all();
}

// An error, with its cause where that is known.
std::string CheckpointWriter::explained(const std::string& error) const {
  std::error_code ignored;
  if (std::filesystem::exists(plan_.unfinished, ignored) || ignored) return error;
  return message(error, "; '", plan_.unfinished, "' was removed while it was written",
                 advice_on_two_folders(plan_.names.path()));
}

void CheckpointWriter::write_part() {
  const std::string file = name_of_part(plan_.rank, kPartFile);
  const auto records = staged_->write(plan_.unfinished + "/" + file, cancelled_);
  if (cancelled_) return;
  write_file_atomically(plan_.unfinished + "/" + name_of_part(plan_.rank, kPartDone),
                        serializers::to_text(SliceFile{file, staged_->bytes()}, records));
}

// Says to the others how this rank's part has ended; where even that cannot be written, they learn
// it when the ranks next meet.
void CheckpointWriter::end_part(const std::string& error) {
  if (error.empty()) return;
  try {
    write_file_atomically(plan_.unfinished + "/" + name_of_part(plan_.rank, kPartFailed), error);
  } catch (const std::exception&) {
  }
}

// On rank 0 ---------------------------------------------------------------------------------------

void CheckpointWriter::complete() {
  SliceIndex index{.step = plan_.step,
                   .id = plan_.id,
                   .ranks = plan_.ranks,
                   .entries = plan_.entries,
                   .files = {},
                   .tensors = {}};
  gather_parts(index);
  write_index(index);
  require_not_cancelled();  // the ranks were told that it failed
  plan_.names.publish(plan_.unfinished, plan_.step);
  SaveOwner::remove_from(plan_.names.path_of(plan_.step));
  plan_.names.remove_others(plan_.step, plan_.keep);
}

void CheckpointWriter::require_not_cancelled() {
  const std::lock_guard lock(mutex_);
  if (cancelled_) fail<IoError>(cancel_reason_);
}

void CheckpointWriter::gather_parts(SliceIndex& index) {
  auto since = Clock::now();
  uintmax_t size = 0;  // of the file that is being written: a sign of life
  auto pause = std::chrono::milliseconds(1);
  for (int rank = 0; rank < plan_.ranks;) {
    if (take_part_of(rank, index)) {
      ++rank;
      since = Clock::now();
      continue;
    }
    std::error_code unknown;
    const bool is_there = std::filesystem::exists(plan_.unfinished, unknown) || unknown;
    const std::string file = plan_.unfinished + "/" + name_of_part(rank, kPartFile);
    if (const uintmax_t now = std::filesystem::file_size(file, unknown); now != size) {
      size = now;
      since = Clock::now();
    }
    CATENA_CHECK(IoError, is_there, "waited for the part of rank ", rank);
    const double patience = std::min<double>(patience_, plan_.timeout);
    CATENA_CHECK(IoError, Clock::now() < since + std::chrono::duration<double>(patience),
                 patience < plan_.timeout
                     ? message("the job has failed, and rank ", rank, " does not write its part")
                     : late_part(rank, plan_));
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, pause, [this] { return cancelled_.load(); }))
      fail<IoError>(cancel_reason_);
    pause = std::min(2 * pause, std::chrono::milliseconds(50));
  }
}

bool CheckpointWriter::take_part_of(int rank, SliceIndex& index) {
  const std::string failed = plan_.unfinished + "/" + name_of_part(rank, kPartFailed);
  if (const auto error = text_of_file(failed)) fail<IoError>("rank ", rank, ": ", *error);
  const std::string done = plan_.unfinished + "/" + name_of_part(rank, kPartDone);
  const auto text = text_of_file(done);
  if (!text) return false;
  SliceFile file;
  std::vector<SliceRecord> records;
  serializers::parse_records(*text, done, file, records);
  for (SliceRecord& record : records) {
    record.file = int64_t(index.files.size());
    index.tensors[record.slice.name].push_back(std::move(record));
  }
  index.files.push_back(file);
  return true;
}

void CheckpointWriter::write_index(const SliceIndex& index) const {
  const std::string text = serializers::to_text(index);
  const std::string path = plan_.unfinished + "/" + serializers::kIndexName;
  serializers::parse_index(text, path);  // what no load would take is not saved
  write_file_atomically(path, text);
  for (int rank = 0; rank < plan_.ranks; ++rank)
    ::unlink((plan_.unfinished + "/" + name_of_part(rank, kPartDone)).c_str());
  char line[64];
  std::snprintf(line, sizeof line, "%zu %08x\n", text.size(),
                serializers::crc_of(text.data(), text.size()));
  write_file_atomically(plan_.unfinished + "/" + serializers::kCompleteName, line);
}

// From other threads ------------------------------------------------------------------------------

std::optional<std::string> CheckpointWriter::wait_for_end(double seconds) {
  std::unique_lock lock(mutex_);
  const bool has_ended = changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                                           [this] { return !is_running(); });
  return has_ended ? std::optional(error_) : std::nullopt;
}

void CheckpointWriter::cancel(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  cancel_reason_ = reason;
  cancelled_ = true;
  changed_.notify_all();
}

}  // namespace catena::training
