// The locale of a program that calls setlocale in a country with decimal commas.
#pragma once

#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace catena::test {

// In force while this lives. Where the machine has no such locale, one is made by localedef.
class CommaLocale {
 public:
  CommaLocale() {
    if (set()) return;
    folder_ =
        std::filesystem::temp_directory_path() / ("catena-locale-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    const std::string command =
        "localedef -i de_DE -f UTF-8 '" + folder_.string() + "/de_DE.UTF-8' >/dev/null 2>&1";
    if (std::system(command.c_str()) != 0) return;
    ::setenv("LOCPATH", folder_.c_str(), 1);
    set();
  }
  ~CommaLocale() {
    std::setlocale(LC_ALL, "C");
    if (folder_.empty()) return;
    ::unsetenv("LOCPATH");
    std::filesystem::remove_all(folder_);
  }
  CommaLocale(const CommaLocale&) = delete;

  // False where there is neither: the test can only be skipped.
  bool in_force() const {
    char text[8];
    std::snprintf(text, sizeof text, "%.1f", 0.5);
    return std::string(text) == "0,5";
  }

 private:
  static bool set() { return std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr; }

  std::filesystem::path folder_;
};

}  // namespace catena::test
