#include "common/picture_list.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <thread>

#include "catena/core/error.h"
#include "catena/core/printable.h"

namespace examples {

using catena::IoError;

namespace {

constexpr char kSpaces[] = " \t\r";

LabelledPath parse_line(const std::string& line, const std::string& where,
                        const std::filesystem::path& root, int64_t classes) {
  const size_t end = line.find_last_not_of(kSpaces) + 1;
  const size_t last = line.find_last_of(kSpaces, end - 1);
  const size_t begin = line.find_first_not_of(kSpaces);
  CATENA_CHECK(IoError, last != std::string::npos && last > begin, where,
               ": expected a path and a label, got '", line, "'");
  LabelledPath result;
  const char* const to = line.data() + end;
  const auto [rest, error] = std::from_chars(line.data() + last + 1, to, result.label);
  CATENA_CHECK(IoError,
               error == std::errc() && rest == to && result.label >= 0 && result.label < classes,
               where, ": the label is '", line.substr(last + 1, end - last - 1),
               "', expected a whole number from 0 to ", classes - 1);
  const size_t path_end = line.find_last_not_of(kSpaces, last) + 1;
  result.path = (root / line.substr(begin, path_end - begin)).string();
  return result;
}

}  // namespace

std::vector<LabelledPath> read_list(const std::string& file, const std::string& root,
                                    const ListRules& rules) {
  std::ifstream stream(file);
  CATENA_CHECK(IoError, stream.good(), "the list '", file, "' cannot be read");
  std::vector<LabelledPath> list;
  int64_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.find_first_not_of(kSpaces) == std::string::npos) continue;
    list.push_back(
        parse_line(line, "'" + file + "', line " + std::to_string(number), root, rules.classes));
  }
  CATENA_CHECK(IoError, !list.empty(), "the list '", file, "' has no pictures");
  const auto first_end = list.begin() + std::min<ptrdiff_t>(10, std::ssize(list));
  CATENA_CHECK(IoError,
               std::any_of(list.begin(), first_end,
                           [](const auto& p) { return std::filesystem::exists(p.path); }),
               "the first pictures of the list '", file, "' do not exist, such as '", list[0].path,
               "'; name the folder of the pictures with ", rules.option);
  return list;
}

void on_threads(int64_t count, int64_t threads, const std::function<void(int64_t)>& work) {
  std::atomic<int64_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto run = [&] {
    try {
      for (int64_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < std::min(threads, count); ++i) others.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

void Skipped::add(const std::string& path, const std::string& reason, int64_t size) {
  constexpr size_t kNamed = 20;
  const std::lock_guard lock(mutex_);
  if (!paths_.insert(path).second) return;
  if (paths_.size() <= kNamed)
    std::fprintf(stderr, "skipped '%s': %s\n", catena::printable_line(path).c_str(),
                 catena::printable_line(reason).c_str());
  if (paths_.size() == kNamed) std::fprintf(stderr, "further pictures are skipped silently\n");
  CATENA_CHECK(IoError, static_cast<int64_t>(paths_.size()) < size, "none of the ", size,
               " pictures of the list could be decoded; the first is '", path, "': ", reason);
}

int64_t Skipped::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(paths_.size());
}

}  // namespace examples
