#include "core/report_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "catena/core/error.h"
#include "core/new_file.h"

namespace catena {
namespace {

void check_written(const char* what, const std::string& path, int error) {
  CATENA_CHECK(IoError, error == 0, what, ": ", path, " cannot be written: ", std::strerror(error),
               "; give a file in a folder that can");
}

// A device or a pipe would be gone afterwards.
std::string end_of_links(const char* what, const std::string& name) {
  struct stat status {};
  const bool exists = ::stat(name.c_str(), &status) == 0;
  CATENA_CHECK(IoError, !exists || S_ISREG(status.st_mode), what, ": ", name,
               " is not a regular file, and would be replaced; give another file");
  int error = 0;
  std::string link;
  const std::string path = follow_own_links(name, &error, &link);
  CATENA_CHECK(IoError, error == 0, what, ": ", name, " cannot be written: the symbolic link ",
               link, error == EPERM ? " is of another user" : " leads nowhere",
               "; give another file");
  return path;
}

}  // namespace

void check_report(const char* what, const std::string& name) {
  const std::string path = end_of_links(what, name);
  check_written(what, path, NewFile(path).error());
}

void write_report(const char* what, const std::string& name, const std::string& text) {
  const std::string path = end_of_links(what, name);
  NewFile file(path);
  check_written(what, path, file.error());
  check_written(what, path, file.write(text.data(), text.size()));
  check_written(what, path, file.close());
  check_written(what, path, file.rename(path));
}

}  // namespace catena
