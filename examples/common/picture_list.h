// Lists of pictures, and work on all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace examples {

struct LabelledPath {
  std::string path;
  int32_t label = 0;
};

// What is allowed in a list.
struct ListRules {
  int64_t classes = 1000;         // labels are from 0 to classes - 1
  const char* option = "--root";  // of the command line, that names the root
};
// A text file with a path and a label in each line; paths are relative to `root`. IoError, with the
// number of the line, for what is otherwise, for a list without lines, and where none of the first
// ten pictures exists.
std::vector<LabelledPath> read_list(const std::string& file, const std::string& root,
                                    const ListRules& rules = {});

// Calls work(0) to work(count - 1), each once, on up to `threads` threads. The first exception is
// thrown again when all have ended.
void on_threads(int64_t count, int64_t threads, const std::function<void(int64_t)>& work);

// Pictures that did not decode: each is named once on the standard error stream, the first twenty
// at least.
class Skipped {
 public:
  // May be called by several threads. IoError once these are all `size` pictures of the list.
  void add(const std::string& path, const std::string& reason, int64_t size);
  int64_t count() const;  // different paths

 private:
  mutable std::mutex mutex_;
  std::set<std::string> paths_;
};

}  // namespace examples
