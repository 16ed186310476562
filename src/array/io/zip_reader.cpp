// Reads zip archives, including those larger than 4 GiB: the directory, then members on demand.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "array/io/zip.h"
#include "catena/core/error.h"
#include "core/read_budget.h"

namespace catena::io {
namespace {

constexpr uint64_t kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20;
constexpr uint64_t kDirectoryRecord = 46, kLocalHeader = 30;
constexpr uint64_t kLargestRatio = 1032;  // deflate cannot shrink further than this

uint64_t get(const char* data, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= uint64_t{static_cast<unsigned char>(data[i])} << (8 * i);
  return value;
}

// The CRC-32 of a member while it is read.
class Checksum {
 public:
  // Nothing is compared where none is expected.
  explicit Checksum(std::optional<uint32_t> expected) : expected_(expected) {}

  void add(const std::string& name, const void* data, size_t bytes, bool is_last) {
    if (!expected_) return;
    crc_ = crc32_z(crc_, static_cast<const Bytef*>(data), bytes);
    CATENA_CHECK(IoError, !is_last || crc_ == *expected_, "reading ", name,
                 ": the checksum does not match: the file is damaged");
  }

 private:
  std::optional<uint32_t> expected_;
  uLong crc_ = crc32_z(0, nullptr, 0);
};

// The bytes of a member as stored in the file, with their checksum.
class StoredSource final : public Source {
 public:
  StoredSource(const InputFile& file, std::string name, uint64_t offset, uint64_t size,
               Checksum crc)
      : Source(std::move(name), size), file_(file), offset_(offset), crc_(crc) {}

 private:
  void read_some(void* destination, size_t bytes) override {
    file_.read_at(offset_ + position(), destination, bytes);
    crc_.add(name(), destination, bytes, position() + bytes == size());
  }
  const InputFile& file_;
  uint64_t offset_;
  Checksum crc_;
};

class InflatedSource final : public Source {
 public:
  InflatedSource(const InputFile& file, std::string name, uint64_t offset, uint64_t stored,
                 uint64_t size, Checksum crc)
      : Source(std::move(name), size),
        file_(file),
        next_(offset),
        left_(stored),
        crc_(crc),
        buffer_(static_cast<size_t>(std::min<uint64_t>(std::max<uint64_t>(stored, 1), 1 << 18))) {
    CATENA_CHECK(IoError, inflateInit2(&stream_, -MAX_WBITS) == Z_OK, "reading ", this->name(),
                 ": zlib could not start (out of memory)");
  }
  ~InflatedSource() override { inflateEnd(&stream_); }

 private:
  void read_some(void* destination, size_t bytes) override {
    char* out = static_cast<char*>(destination);
    size_t wanted = bytes;
    while (wanted > 0) {
      refill();
      const size_t chunk = std::min(wanted, size_t{1} << 30);  // avail_out has 32 bits
      stream_.next_out = reinterpret_cast<Bytef*>(out);
      stream_.avail_out = static_cast<uInt>(chunk);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      const size_t done = chunk - stream_.avail_out;
      out += done;
      wanted -= done;
      const bool stuck =
          status == Z_STREAM_END || (done == 0 && left_ == 0 && stream_.avail_in == 0);
      CATENA_CHECK(IoError,
                   (status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR) &&
                       (wanted == 0 || !stuck),
                   "reading ", name(), ": the compressed data is damaged after ",
                   position() + bytes - wanted, " of ", size(), " bytes");
    }
    crc_.add(name(), destination, bytes, position() + bytes == size());
  }
  void refill() {
    if (stream_.avail_in > 0 || left_ == 0) return;
    const size_t chunk = static_cast<size_t>(std::min<uint64_t>(left_, buffer_.size()));
    file_.read_at(next_, buffer_.data(), chunk);
    next_ += chunk;
    left_ -= chunk;
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(chunk);
  }

  const InputFile& file_;
  uint64_t next_, left_;
  Checksum crc_;
  std::vector<char> buffer_;
  z_stream stream_{};
};

// The position of the last "end of central directory" record; a comment may follow it.
uint64_t find_end(const InputFile& file) {
  const uint64_t window = std::min<uint64_t>(file.size(), kEndSize + kMax16);
  std::vector<char> tail(static_cast<size_t>(window));
  file.read_at(file.size() - window, tail.data(), tail.size());
  for (uint64_t back = kEndSize; back <= window; ++back) {
    const char* record = tail.data() + (window - back);
    if (get(record, 4) == 0x06054b50 && get(record + 20, 2) == back - kEndSize) {
      return file.size() - back;
    }
  }
  fail<IoError>("reading '", file.path(),
                "': expected a zip archive (.npz, .pt), but no zip directory was ",
                "found at its end: it is cut or of another format");
}

// Replaces fields that are all ones by those of the zip64 extra field, in the order of the format.
bool apply_zip64(const char* extra, uint64_t extra_size, std::initializer_list<uint64_t*> fields) {
  for (uint64_t at = 0; extra_size - at >= 4;) {
    const uint64_t id = get(extra + at, 2), bytes = get(extra + at + 2, 2);
    at += 4;
    if (bytes > extra_size - at) return false;
    if (id == 1) {
      uint64_t used = 0;
      for (uint64_t* field : fields) {
        if (*field != kMax32) continue;
        if (bytes - used < 8) return false;
        *field = get(extra + at + used, 8);
        used += 8;
      }
      return true;
    }
    at += bytes;
  }
  return true;  // no such field: the 32-bit values hold
}

}  // namespace

ZipReader::ZipReader(const InputFile& file) : file_(file) {
  const uint64_t end_at = find_end(file);
  char end[kEndSize];
  file.read_at(end_at, end, sizeof end);
  uint64_t count = get(end + 10, 2), bytes = get(end + 12, 4), offset = get(end + 16, 4);
  const bool large = count == kMax16 || bytes == kMax32 || offset == kMax32;
  if (large && end_at >= kLocatorSize) {
    char locator[kLocatorSize];
    file.read_at(end_at - kLocatorSize, locator, sizeof locator);
    if (get(locator, 4) == 0x07064b50) {
      char end64[kEnd64Size];
      file.read_at(get(locator + 8, 8), end64, sizeof end64);
      CATENA_CHECK(IoError, get(end64, 4) == 0x06064b50, "reading '", file.path(),
                   "': the zip64 directory end is damaged");
      count = get(end64 + 32, 8);
      bytes = get(end64 + 40, 8);
      offset = get(end64 + 48, 8);
    }
  }
  CATENA_CHECK(IoError,
               offset <= end_at && bytes <= end_at - offset && count <= bytes / kDirectoryRecord,
               "reading '", file.path(), "': the zip directory (", count, " members in ", bytes,
               " bytes at offset ", offset, ") does not fit the file of ", file.size(), " bytes");
  read_directory(offset, bytes, count);
  check_overlaps();
  has_checksums_ = std::any_of(members_.begin(), members_.end(),
                               [](const Member& member) { return member.crc != 0; });
}

void ZipReader::read_directory(uint64_t offset, uint64_t bytes, uint64_t count) {
  ReadBudget budget(message("reading '", file_.path(), "'"));
  budget.charge_bytes(bytes);
  std::vector<char> directory(static_cast<size_t>(bytes));
  file_.read_at(offset, directory.data(), directory.size());
  uint64_t at = 0;
  const auto damaged = [&](const char* what) {
    fail<IoError>("reading '", file_.path(), "': the zip directory is damaged at offset ",
                  offset + at, ": ", what);
  };
  for (uint64_t i = 0; i < count; ++i) {
    const char* record = directory.data() + at;
    if (bytes - at < kDirectoryRecord || get(record, 4) != 0x02014b50) damaged("no member record");
    const uint64_t name_size = get(record + 28, 2), extra_size = get(record + 30, 2);
    const uint64_t total = kDirectoryRecord + name_size + extra_size + get(record + 32, 2);
    if (bytes - at < total) damaged("a member record is cut");
    Member member;
    member.flags = static_cast<uint16_t>(get(record + 8, 2));
    member.method = static_cast<uint16_t>(get(record + 10, 2));
    member.crc = static_cast<uint32_t>(get(record + 16, 4));
    member.stored = get(record + 20, 4);
    member.size = get(record + 24, 4);
    member.offset = get(record + 42, 4);
    member.name.assign(record + kDirectoryRecord, static_cast<size_t>(name_size));
    if (!apply_zip64(record + kDirectoryRecord + name_size, extra_size,
                     {&member.size, &member.stored, &member.offset})) {
      damaged("a zip64 field is cut");
    }
    at += total;
    budget.charge_entry(member.name);
    members_.push_back(std::move(member));
  }
}

void ZipReader::check_overlaps() const {
  std::vector<const Member*> ordered;
  for (const Member& member : members_) ordered.push_back(&member);
  std::sort(ordered.begin(), ordered.end(),
            [](const Member* a, const Member* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < ordered.size(); ++i) {
    const Member &before = *ordered[i - 1], &member = *ordered[i];
    CATENA_CHECK(IoError,
                 member.offset - before.offset >= kLocalHeader &&
                     member.offset - before.offset - kLocalHeader >= before.stored,
                 "reading '", file_.path(), "': members '", before.name, "' and '", member.name,
                 "' share bytes of the archive: it is damaged or made to do harm");
  }
}

std::unique_ptr<Source> ZipReader::open(const Member& member) const {
  std::string name = message("'", file_.path(), "': member '", member.name, "'");
  CATENA_CHECK(IoError, (member.flags & 1) == 0, "reading ", name, ": it is encrypted");
  CATENA_CHECK(IoError, member.method == kStored || member.method == kDeflated, "reading ", name,
               ": compression method ", int{member.method},
               ", expected 0 (stored) or 8 (deflated)");
  char header[kLocalHeader];
  file_.read_at(member.offset, header, sizeof header);
  CATENA_CHECK(IoError, get(header, 4) == 0x04034b50, "reading ", name,
               ": no member begins at offset ", member.offset);
  const uint64_t start = member.offset + kLocalHeader + get(header + 26, 2) + get(header + 28, 2);
  CATENA_CHECK(IoError, start <= file_.size() && member.stored <= file_.size() - start, "reading ",
               name, ": its ", member.stored, " bytes at offset ", start,
               " do not fit the file of ", file_.size(), " bytes");
  const Checksum crc(has_checksums_ ? std::optional(member.crc) : std::nullopt);
  if (member.method == kStored) {
    CATENA_CHECK(IoError, member.size == member.stored, "reading ", name, ": ", member.size,
                 " bytes are stored as ", member.stored);
    return std::make_unique<StoredSource>(file_, std::move(name), start, member.size, crc);
  }
  CATENA_CHECK(IoError, member.size / kLargestRatio <= member.stored, "reading ", name, ": ",
               member.stored, " bytes cannot hold ", member.size, " compressed ones");
  return std::make_unique<InflatedSource>(file_, std::move(name), start, member.stored, member.size,
                                          crc);
}

}  // namespace catena::io
