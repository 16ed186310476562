// Check of a shared library for damage that the loader would not survive: it maps a shared library
// without a look at the file's size, and the process gets SIGBUS when it touches what is missing.
// Used by the library and by `catena-run --check`, which is not linked with it.
#pragma once

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace catena {

// Reads the headers of an ELF file of 64 bits, to learn how long it must be.
class LibraryFile {
 public:
  explicit LibraryFile(const std::string& path)
      : file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    struct stat status {};
    if (file_ < 0 || ::fstat(file_, &status) != 0) return;
    regular_ = S_ISREG(status.st_mode);
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~LibraryFile() {
    if (file_ >= 0) ::close(file_);
  }
  LibraryFile(const LibraryFile&) = delete;

  bool open() const { return file_ >= 0; }
  bool regular() const { return regular_; }
  std::uint64_t size() const { return size_; }

  // Where the last header, segment or section ends. 0 for what is no ELF file, which the loader
  // refuses by itself.
  std::uint64_t needed() const {
    Elf64_Ehdr header{};
    if (!read(0, &header, sizeof(header)) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64)
      return 0;
    std::uint64_t end = 0;
    for (const auto& segment : table<Elf64_Phdr>(header.e_phoff, header.e_phnum, end))
      end = std::max(end, segment.p_offset + segment.p_filesz);
    for (const auto& section : table<Elf64_Shdr>(header.e_shoff, header.e_shnum, end))
      if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
    return end;
  }

 private:
  bool read(std::uint64_t offset, void* bytes, std::size_t count) const {
    return ::pread(file_, bytes, count, static_cast<off_t>(offset)) == static_cast<ssize_t>(count);
  }
  // Empty when the file ends before; `end` is moved to the table's end in any case.
  template <class Entry>
  std::vector<Entry> table(std::uint64_t offset, std::uint64_t count, std::uint64_t& end) const {
    const std::uint64_t bytes = count * sizeof(Entry);
    end = std::max(end, offset + bytes);
    std::vector<Entry> entries(count);
    if (!read(offset, entries.data(), bytes)) entries.clear();
    return entries;
  }

  int file_;
  bool regular_ = false;
  std::uint64_t size_ = 0;
};

// Why this file must not be given to dlopen; "" when it may be. The loader names what is left.
inline std::string problem_of_library_file(const std::string& path) {
  const LibraryFile file(path);
  if (!file.open()) return "";
  if (!file.regular())
    return path + " is not a regular file; remove it, or install the library again";
  const std::uint64_t needed = file.needed();
  if (file.size() >= needed) return "";
  return path + " is cut off: it has " + std::to_string(file.size()) + " of " +
         std::to_string(needed) + " bytes; was the disk full? Install it again";
}

}  // namespace catena
