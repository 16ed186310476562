// NumPy's file formats and raw bytes, on the host. Text tables: text.h.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catena/array/array.h"
#include "catena/array/named_arrays.h"

namespace catena {

// One array in NumPy's .npy format (bfloat16 is stored as the raw 2-byte void type 'V2', as
// ml_dtypes does). The file is written under a temporary name and renamed, so that a full disk or a
// crash leaves the old file. Nothing is added to the path, where NumPy adds ".npy"; one that ends
// with ".npz" names an archive and is a ValueError. Throws IoError with the path and the system's
// reason.
void save(const std::string& path, const Array& a);
// Reads a .npy file onto `device`; C and Fortran order, either byte order. What stands behind the
// array is left alone, as in NumPy: of several arrays in one file this is the first.
// Throws IoError naming path, offset and what was expected.
Array load(const std::string& path, Device device = cpu(0));
// The bytes of a .npy file in memory, and back. Errors as above with "loads" for the path.
std::string dumps(const Array& a);
Array loads(std::string_view bytes, Device device = cpu(0));

// How a mapped file may be used. kRead: writes into the array are ValueErrors. kCopyOnWrite: they
// stay in memory. kReadWrite: they go to the file, at the latest when the last view goes.
enum class MmapMode { kRead, kCopyOnWrite, kReadWrite };
// Maps a .npy file: an array on cpu:0 that reads the file where it is used, and keeps the mapping
// until its last view goes. Throws IoError as load does, also when the elements are big-endian or
// not aligned. A file that is cut by others while it is mapped ends the program (SIGBUS).
Array load(const std::string& path, MmapMode mode);

// Named arrays in a .npz (zip of .npy), plain or deflated, in the given order; written by rename.
void save_npz(const std::string& path, const NamedArrays& arrays, bool compressed = false);
// NumPy's savez: arrays without names are called arr_0, arr_1, ... and come first. ValueError when
// one of the names is given as well.
void savez(const std::string& path, const std::vector<Array>& arrays,
           const NamedArrays& named = {});
void savez_compressed(const std::string& path, const std::vector<Array>& arrays,
                      const NamedArrays& named = {});
// A std::map of arrays by name whose at() and [] do not add and name what there is.
class LoadedArrays : public std::map<std::string, Array> {
 public:
  using map::map;
  // IndexError that lists the names when there is none of this one.
  const Array& at(const std::string& name) const;
  const Array& operator[](const std::string& name) const { return at(name); }
};
// All of them at once.
LoadedArrays load_npz(const std::string& path, Device device = cpu(0));

// An open .npz whose arrays are read when they are asked for, each time anew. May be moved, and
// read by several threads at once.
class NpzFile {
 public:
  // Reads the directory. IoError when the file is not an archive. Members that are not .npy files
  // are skipped with a warning.
  explicit NpzFile(const std::string& path, Device device = cpu(0));
  ~NpzFile();
  NpzFile(NpzFile&&) noexcept;
  NpzFile& operator=(NpzFile&&) noexcept;

  // Names without ".npy", in the order of the file.
  std::vector<std::string> names() const;
  size_t size() const;
  bool contains(std::string_view name) const;
  // Reads one array. IndexError naming those there are when it is missing, IoError when damaged.
  Array operator[](std::string_view name) const;
  // Lets the file go; every call but close() and the destructor is a ValueError then.
  void close();

 private:
  struct Impl;
  const Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

// The elements in C order, nothing else. With a separator: as text between separators, each element
// through `format`, one printf conversion (see text.h) where %s is the shortest text that reads
// back as the same double. Errors as save.
void tofile(const std::string& path, const Array& a, const std::string& separator = "",
            const std::string& format = "%s");

// How fromfile reads.
struct FromFileOptions {
  Dtype dtype = Dtype::kFloat64;
  int64_t count = -1;  // elements; -1: all of the file
  std::string separator =
      {};              // empty: raw bytes; else text, where white space matches any white space
  int64_t offset = 0;  // bytes to leave out at the start
  Device device = {};
};
// A 1-d array of what tofile wrote. Unlike NumPy, which returns what it could read, it throws
// IoError when the file has fewer elements than `count`, a part of an element at its end, or text
// that is not a number (with its offset).
Array fromfile(const std::string& path, const FromFileOptions& options = {});

// Writes a file so that readers see the old or the new content, never a part: a new file of a
// random name beside it, write, fsync, rename. All files of the library are written this way. A
// symbolic link that this user or root made leads to the file that is replaced. IoError for a link
// of another user, a pipe without a reader, and what the system refuses.
void write_file_atomically(const std::string& path, const std::string& bytes);

}  // namespace catena
