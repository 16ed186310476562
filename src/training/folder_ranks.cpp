#include "training/folder_ranks.h"

#include <algorithm>

#include "parallel/rank_difference.h"

namespace catena::training {

void require_alike(const char* who, const std::vector<std::string>& texts) {
  const auto groups = parallel::first_difference(texts);
  if (groups.empty()) return;
  fail<ValueError>(who, ": ", parallel::describe_values(groups),
                   "; all ranks make the same calls, with the same steps, entries and options");
}

std::string described(const std::exception& error) {
  const bool is_value_error = dynamic_cast<const ValueError*>(&error) != nullptr;
  return std::string(is_value_error ? "V" : "I") + error.what();
}

std::string advice_on_sharing(const std::string& folder) {
  return message("does this rank's host share the file system of '", folder,
                 "'? Give a folder on one that the hosts of all ranks share");
}

int first_with_error(const std::vector<std::string>& errors) {
  const auto first = std::find_if(errors.begin(), errors.end(),
                                  [](const std::string& error) { return !error.empty(); });
  return first == errors.end() ? -1 : int(first - errors.begin());
}

std::vector<std::string> FolderRanks::gather(const std::string& own) const {
  if (comm_ == nullptr) return {own};
  std::vector<std::string> all = comm_->all_gather_bytes(message(call_, "\n", own)), calls;
  for (std::string& text : all) {
    const size_t end = text.find('\n');
    calls.push_back("the function that is called\t" + text.substr(0, end));
    text.erase(0, end + 1);
  }
  require_alike("CheckpointFolder", calls);
  return all;
}

std::string FolderRanks::named(int rank, const std::string& error) const {
  return size() > 1 && !error.starts_with("rank ") ? message("rank ", rank, ": ", error) : error;
}

void FolderRanks::throw_first(const char* who, const std::vector<std::string>& errors) const {
  const int rank = first_with_error(errors);
  if (rank < 0) return;
  const std::string& error = errors[size_t(rank)];
  const std::string text = message(who, ": ", named(rank, error.substr(1)));
  if (error[0] == 'V') throw ValueError(text);
  throw IoError(text);
}

}  // namespace catena::training
