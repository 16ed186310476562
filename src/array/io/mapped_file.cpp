// Arrays in files that are mapped into memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <system_error>

#include "array/io/npy.h"
#include "catena/array/io.h"

namespace catena {
namespace io {
namespace {

std::string mapping_text(int error_number) { return std::generic_category().message(error_number); }

// Maps a whole regular file; the destructor unmaps it. IoErrors name the path and the system's
// reason.
class MappedFile {
 public:
  MappedFile(const std::string& path, MmapMode mode);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  char* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  std::string path_;
  char* data_ = nullptr;
  uint64_t size_ = 0;
};

MappedFile::MappedFile(const std::string& path, MmapMode mode) : path_(path) {
  const int access = mode == MmapMode::kReadWrite ? O_RDWR : O_RDONLY;
  const int descriptor = ::open(path.c_str(), access | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const int reason = errno;
    fail<IoError>("mapping '", path, "': cannot open it for ",
                  mode == MmapMode::kReadWrite ? "reading and writing" : "reading", ": ",
                  mapping_text(reason));
  }
  struct stat status {};
  const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  void* memory = nullptr;
  int reason = 0;
  if (regular && status.st_size > 0) {
    size_ = static_cast<uint64_t>(status.st_size);
    const int protection = mode == MmapMode::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
    memory = ::mmap(nullptr, size_, protection,
                    mode == MmapMode::kCopyOnWrite ? MAP_PRIVATE : MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) reason = errno;
  }
  ::close(descriptor);
  CATENA_CHECK(IoError, regular, "mapping '", path, "': expected a regular file");
  CATENA_CHECK(IoError, reason == 0, "mapping '", path, "': ", size_,
               " bytes cannot be mapped: ", mapping_text(reason), "; load it without a mapping");
  data_ = static_cast<char*>(memory);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
}

}  // namespace
}  // namespace io

Array load(const std::string& path, MmapMode mode) {
  auto file = std::make_shared<io::MappedFile>(path, mode);
  io::MemorySource source(path, {file->data(), static_cast<size_t>(file->size())});
  io::NpyHeader header = io::read_npy_header(source);
  const uint64_t offset = source.position(), bytes = header.bytes;
  const auto item = static_cast<int64_t>(itemsize(header.dtype));
  CATENA_CHECK(IoError, !header.swapped, "mapping '", path, "': its ", header.dtype,
               " elements are big-endian; load it without a mapping");
  CATENA_CHECK(IoError, offset % static_cast<uint64_t>(item) == 0, "mapping '", path,
               "': its elements begin at offset ", offset, ", no multiple of their ", item,
               " bytes; load it without a mapping");
  const char* first = file->data() + offset;
  if (header.dtype == Dtype::kBool) {
    const auto odd = std::find_if(first, first + bytes, [](char b) { return b != 0 && b != 1; });
    CATENA_CHECK(IoError, odd == first + bytes, "mapping '", path, "': the bool at offset ",
                 odd - file->data(), " is ", int{*odd},
                 ", expected 0 or 1; load it without a "
                 "mapping");
  }
  if (header.fortran) std::reverse(header.shape.begin(), header.shape.end());
  char* data = file->data() + offset;
  StoragePtr storage = mode == MmapMode::kRead
                           ? borrow_read_only(cpu(0), data, bytes, std::move(file))
                           : borrow(cpu(0), data, bytes, std::move(file));
  const Array result = Array::from_storage(std::move(storage), 0, header.shape,
                                           contiguous_strides(header.shape, item), header.dtype);
  return header.fortran ? result.transpose() : result;
}

}  // namespace catena
