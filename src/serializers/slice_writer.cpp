#include "serializers/slice_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "catena/array/indexing.h"
#include "catena/array/transfer.h"
#include "core/new_file.h"

namespace catena::serializers {
namespace {

constexpr int64_t kSliceAlignment = 64;        // bytes
constexpr int64_t kChunk = int64_t{1} << 20;   // bytes that are summed and written while in caches
constexpr size_t kHugePage = size_t{2} << 20;  // bytes

int64_t aligned(int64_t offset) {
  return (offset + kSliceAlignment - 1) / kSliceAlignment * kSliceAlignment;
}

bool has_gpu(const TensorParts& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [](const TensorPart& part) { return part.local.device().is_cuda(); });
}

// A new file, written from its beginning.
class SliceOutput {
 public:
  explicit SliceOutput(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (file_ < 0) fail_with("create", errno);
  }
  ~SliceOutput() {
    if (file_ >= 0) ::close(file_);
  }
  SliceOutput(const SliceOutput&) = delete;
  SliceOutput& operator=(const SliceOutput&) = delete;

  void write(const char* data, int64_t bytes) {
    if (const int error = write_all(file_, data, size_t(bytes))) fail_with("write", error);
    position_ += bytes;
  }
  void pad_to(int64_t offset) {
    static constexpr char kZeros[kSliceAlignment] = {};
    write(kZeros, offset - position_);
  }
  // Lets the disk begin, so that finish() has little to wait for.
  void flush_behind() { ::sync_file_range(file_, 0, position_, SYNC_FILE_RANGE_WRITE); }
  void finish() {
    if (::fsync(file_) != 0) fail_with("sync", errno);
    if (::close(std::exchange(file_, -1)) != 0) fail_with("close", errno);
  }

 private:
  [[noreturn]] void fail_with(const char* action, int error) const {
    fail<IoError>("cannot ", action, " '", path_, "': ", std::strerror(error),
                  error == ENOSPC || error == EDQUOT
                      ? "; make room there, or keep fewer checkpoints"
                      : "; check the folder and its permissions");
  }

  std::string path_;
  int file_;
  int64_t position_ = 0;
};

}  // namespace

// A block of host memory that is only replaced by a larger one.
class StagedSlices::Memory {
 public:
  ~Memory() { release(); }

  void reserve(size_t bytes, bool pinned) {
    if (bytes <= bytes_ && pinned == bool(pinned_)) return;
    release();
    if (pinned) {
      pinned_ = allocate_pinned(cpu(0), bytes);
      data_ = static_cast<char*>(pinned_->data);
    } else {
      map((bytes + kHugePage - 1) / kHugePage * kHugePage);
    }
    bytes_ = bytes;
  }
  // So that copies do not wait for pages.
  void touch() {
    for (size_t at = 0; at < bytes_; at += 4096) data_[at] = 0;
  }
  char* data() const { return data_; }

 private:
  void map(size_t bytes) {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CATENA_CHECK(
        OutOfMemoryError, memory != MAP_FAILED, "a checkpoint needs ", bytes,
        " bytes of host memory for a copy of what this rank writes: ", std::strerror(errno));
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    data_ = static_cast<char*>(memory);
    mapped_ = bytes;
  }
  void release() {
    if (mapped_ > 0) ::munmap(data_, mapped_);
    pinned_ = {};
    data_ = nullptr;
    bytes_ = mapped_ = 0;
  }

  StoragePtr pinned_;
  char* data_ = nullptr;
  size_t bytes_ = 0, mapped_ = 0;
};

StagedSlices::StagedSlices() : memory_(std::make_unique<Memory>()) {}
StagedSlices::~StagedSlices() {
  // Copies may still be on their way into the memory.
  for (const Event& event : copied_) event.synchronize();
}

char* StagedSlices::place(int64_t offset) const { return memory_->data() + offset; }

Stream StagedSlices::side_stream(Device device) {
  for (const Stream& stream : streams_)
    if (stream.device() == device) return stream;
  return streams_.emplace_back(Stream::create(device));
}

void StagedSlices::reserve(const TensorParts& parts, const std::vector<Piece>& pieces) {
  int64_t bytes = 0;
  for (const Piece& piece : pieces) bytes = aligned(bytes) + piece.slice.bytes();
  memory_->reserve(size_t(bytes), has_gpu(parts));
  memory_->touch();
}

void StagedSlices::copy(const TensorParts& parts, const std::vector<Piece>& pieces) {
  for (const Event& event : copied_) event.synchronize();
  copied_.clear();
  staged_.clear();
  bytes_ = written_ = 0;
  for (const Piece& piece : pieces) {
    const int64_t offset = aligned(bytes_);
    staged_.push_back({piece.slice, offset});
    bytes_ = offset + piece.slice.bytes();
  }
  memory_->reserve(size_t(bytes_), has_gpu(parts));
  Array flat;
  size_t flat_of = parts.size();  // none
  for (size_t k = 0; k < pieces.size(); ++k) {
    const Piece& piece = pieces[k];
    const TensorPart& part = parts[piece.part];
    if (flat_of != piece.part) flat = part.flat();
    flat_of = piece.part;
    if (piece.slice.bytes() == 0) continue;
    const int64_t first = part.slice.elements.begin;
    const Array elements =
        flat(Slice(piece.slice.elements.begin - first, piece.slice.elements.end - first));
    const Device device = flat.device();
    char* const target = place(staged_[k].offset);
    if (device.is_cpu()) {
      std::memcpy(target, elements.raw_data(), size_t(piece.slice.bytes()));
      continue;
    }
    copy_to_host_async(elements, target, side_stream(device));
  }
  for (const Stream& stream : streams_) {
    copied_.push_back(stream.record());
    current_stream(stream.device()).wait(copied_.back());
  }
}

std::vector<SliceRecord> StagedSlices::write(const std::string& path,
                                             const std::atomic<bool>& cancelled) {
  for (const Event& event : copied_) event.synchronize();
  std::vector<SliceRecord> records;
  SliceOutput out(path);
  for (const Staged& staged : staged_) {
    if (cancelled) return records;
    out.pad_to(staged.offset);
    SliceRecord record{staged.slice, 0, staged.offset, crc_of(nullptr, 0)};
    const int64_t bytes = staged.slice.bytes();
    for (int64_t at = 0; at < bytes; at += kChunk) {
      const int64_t chunk = std::min(kChunk, bytes - at);
      record.crc = crc_of(place(staged.offset + at), size_t(chunk), record.crc);
      out.write(place(staged.offset + at), chunk);
      written_ += chunk;
    }
    out.flush_behind();
    records.push_back(std::move(record));
  }
  out.finish();
  return records;
}

}  // namespace catena::serializers
