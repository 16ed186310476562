#include "catena/training/output_folder.h"

#include <cstring>
#include <filesystem>

#include "catena/core/error.h"
#include "core/new_file.h"

namespace catena::training {

void prepare_output_folder(const std::string& path) {
  CATENA_CHECK(IoError, !path.empty(), "output folder: the name is empty");
  std::error_code error;
  std::filesystem::create_directories(path, error);
  // An existing folder behind a symbolic link is reported as an error by some library versions.
  CATENA_CHECK(IoError, !error || std::filesystem::is_directory(path), "output folder '", path,
               "': cannot create it: ", error.message(), "; give another folder");
  const NewFile probe(path + "/writable");  // goes at once
  CATENA_CHECK(IoError, probe.error() == 0, "output folder '", path,
               "': cannot create a file there: ", std::strerror(probe.error()),
               "; give another folder");
}

}  // namespace catena::training
