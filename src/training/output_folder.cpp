#include "catena/training/output_folder.h"

#include <unistd.h>

#include <filesystem>

#include "catena/array/io.h"
#include "catena/core/error.h"

namespace catena::training {

void prepare_output_folder(const std::string& path) {
  CATENA_CHECK(IoError, !path.empty(), "output folder: the name is empty");
  std::error_code error;
  std::filesystem::create_directories(path, error);
  // An existing folder behind a symbolic link is reported as an error by some library versions.
  CATENA_CHECK(IoError, !error || std::filesystem::is_directory(path), "output folder '", path,
               "': cannot create it: ", error.message(), "; choose another one with --out");
  const std::string probe = path + "/.writable." + std::to_string(::getpid());
  try {
    write_file_atomically(probe, "");
  } catch (const IoError& reason) {
    fail<IoError>("output folder '", path, "' cannot be written (", reason.what(),
                  "); choose another one with --out");
  }
  std::filesystem::remove(probe, error);
}

}  // namespace catena::training
