// Files in folders that other users, processes and containers may write too.
//
// Whoever knows a name before its file exists can put a link, a pipe or another file there. So a
// new file gets a random name, is created by this process alone, and only then renamed; a link is
// followed only if this user or root made it; and nothing but a regular file is opened for reading.
// Functions return errno numbers, 0 for success, because callers word their own errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace catena {

// Writes all bytes, or returns an error.
int write_all(int descriptor, const void* data, size_t bytes);

// A new, empty file beside `target`, named ".NAME.tmp.RANDOM" and open for writing. It is removed
// unless rename() succeeds. While it is open its lock shows other processes that it is in use.
class NewFile {
 public:
  // `mode` as for open(2): the umask applies. exact_mode sets it whatever the umask says.
  explicit NewFile(const std::string& target, unsigned mode = 0666, bool exact_mode = false);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // Why there is no file; 0 if there is one.
  int error() const { return error_; }
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  int write(const void* data, size_t bytes) { return write_all(descriptor_, data, bytes); }
  int sync();  // to the disk
  int close();
  // Puts the file at `target`, where it replaces what is there: a link, not what it leads to.
  int rename(const std::string& target);

 private:
  bool create(unsigned mode);

  std::string path_;
  int descriptor_ = -1;
  int error_ = 0;
};

// Removes what killed processes of this user were writing for `target`: regular files of such a
// name that nobody holds open as a NewFile and that were not written for a minute.
void remove_left_over_files(const std::string& target);

// Where `path` leads: the path itself, or the end of the symbolic links there, which need not
// exist. Sets *error to EPERM for a link that neither this user nor root made, with the link in
// *culprit, to ELOOP and others as the system does.
std::string follow_own_links(const std::string& path, int* error, std::string* culprit);

// Opens a regular file with open(2)'s flags, O_CREAT included: never through a link, and without
// waiting for a pipe. A descriptor, or -1 with the reason in errno (EINVAL: not a regular file).
int open_regular_file(const std::string& path, int flags, unsigned mode = 0666);

// Whether nobody but this user and root can have written the open file. Others may give its name to
// another file of this user: what a file is for must be in it.
bool is_trusted(int file);

// The folder of a path, for open(2): "." for a name alone.
std::string folder_of(const std::string& path);

}  // namespace catena
