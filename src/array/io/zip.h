// Zip archives of named byte sequences, as .npz uses them: stored or deflated, zip64 when needed.
// The format is PKWARE's APPNOTE.TXT; offsets below are those of its records.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "array/io/file_io.h"

namespace catena::io {

// A field of 32 or 16 bits that holds this is continued in the zip64 records.
inline constexpr uint32_t kMax32 = 0xFFFFFFFF;
inline constexpr uint16_t kMax16 = 0xFFFF;
// Methods of compression.
inline constexpr uint16_t kStored = 0, kDeflated = 8;

// Writes members in order; finish() writes the directory. The same input gives the same bytes,
// because there are no time stamps.
class ZipWriter {
 public:
  // Sizes and offsets from `zip64_from` on use the 64-bit fields; tests pass a small number.
  explicit ZipWriter(AtomicFile& file, uint64_t zip64_from = kMax32)
      : file_(file), zip64_from_(zip64_from) {}

  // The member's content is the concatenation of the parts.
  void add(const std::string& name, std::span<const std::span<const char>> parts, bool deflate);
  void finish();

 private:
  struct Member {
    std::string name;
    uint16_t method;
    uint32_t crc;
    uint64_t stored, size, offset;
  };
  void write_local_header(const Member& member);
  std::string directory_record(const Member& member) const;

  AtomicFile& file_;
  uint64_t zip64_from_;
  std::vector<Member> members_;
};

// The directory of an archive, checked against the size of the file.
class ZipReader {
 public:
  // Throws IoError if the file is not an archive, its directory is damaged, or members share bytes,
  // with which small archives become large.
  explicit ZipReader(const InputFile& file);

  struct Member {
    std::string name;
    uint16_t flags, method;
    uint32_t crc;
    uint64_t stored, size, offset;  // offset: of the local header
  };
  const std::vector<Member>& members() const { return members_; }
  // Reads the content of a member, decompressed. Its checksum is compared when the last byte is
  // read, unless no member of the archive has one: writers may leave them out for speed.
  std::unique_ptr<Source> open(const Member& member) const;

 private:
  void read_directory(uint64_t offset, uint64_t bytes, uint64_t count);
  void check_overlaps() const;

  const InputFile& file_;
  std::vector<Member> members_;
  bool has_checksums_ = false;
};

}  // namespace catena::io
