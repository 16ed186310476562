// Files for the readers and writers of the array layer: bounded reads, all-or-nothing writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/new_file.h"

namespace catena::io {

// A file that appears under its name complete or not at all.
//
// Bytes are written to a temporary file in the same folder; commit() makes them durable and renames
// it to `path`. Without commit() the destructor removes it, and an existing file keeps its content.
// What a killed process has left behind is removed when the file is next replaced
// (core/new_file.h).
//
// A symbolic link that this user or root made leads to the file that is replaced; one of another
// user is an IoError. A device, or a pipe that somebody reads, is written directly; a pipe without
// a reader, or of another user, is an IoError. All failures are IoErrors with the path and the
// system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  uint64_t position() const { return position_; }  // bytes written so far
  void commit();

 private:
  void follow_links();
  void abandon();
  [[noreturn]] void fail_with(const char* action, int error_number);

  std::string path_;                    // as the user gave it, for messages
  std::string target_;                  // after symbolic links
  std::unique_ptr<NewFile> temporary_;  // null: written directly
  int descriptor_ = -1;                 // then
  uint64_t position_ = 0;
};

// A regular file that is read at given offsets.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // Reads exactly `bytes` bytes from `offset`. Throws IoError naming the offset if the file ends
  // earlier.
  void read_at(uint64_t offset, void* destination, size_t bytes) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// A sequence of bytes of known length, with a name for messages ("m.npz: member 'l1/W.npy'").
class Source {
 public:
  Source(std::string name, uint64_t size) : name_(std::move(name)), size_(size) {}
  virtual ~Source() = default;

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  uint64_t position() const { return position_; }
  uint64_t remaining() const { return size_ - position_; }
  // Reads exactly `bytes` bytes. Throws IoError if fewer remain.
  void read(void* destination, size_t bytes);

 protected:
  virtual void read_some(void* destination, size_t bytes) = 0;  // reads all of them

 private:
  std::string name_;
  uint64_t size_;
  uint64_t position_ = 0;
};

// A whole file as a source.
class FileSource final : public Source {
 public:
  explicit FileSource(const InputFile& file) : Source(file.path(), file.size()), file_(file) {}

 private:
  void read_some(void* destination, size_t bytes) override {
    file_.read_at(position(), destination, bytes);
  }
  const InputFile& file_;
};

// Bytes in memory as a source.
class MemorySource final : public Source {
 public:
  MemorySource(std::string name, std::string_view bytes)
      : Source(std::move(name), bytes.size()), bytes_(bytes) {}

 private:
  void read_some(void* destination, size_t bytes) override {
    std::memcpy(destination, bytes_.data() + position(), bytes);
  }
  std::string_view bytes_;
};

// All bytes of a file.
std::string read_whole_file(const std::string& path);

}  // namespace catena::io
