#include "training/rank_talk.h"

#include "comm/agreement.h"

namespace catena::training {

void require_alike(const char* who, const std::vector<std::string>& texts) {
  if (const auto difference = comm::Agreement::compare(texts))
    fail<ValueError>(who, ": ", difference->text(),
                     "; all ranks make the same calls, with the same steps, entries and options");
}

RankError RankError::of(const std::exception& error) {
  const bool is_value_error = dynamic_cast<const ValueError*>(&error) != nullptr;
  return {is_value_error ? Kind::kValue : Kind::kIo, error.what()};
}

RankError& RankError::operator+=(const std::string& more) {
  if (!empty()) text += more;
  return *this;
}

std::string RankError::packed() const { return char(kind) + text; }

RankError RankError::unpacked(const std::string& bytes) {
  return {Kind(bytes.at(0)), bytes.substr(1)};
}

std::string advice_on_sharing(const std::string& folder) {
  return message("does this rank's host share the file system of '", folder,
                 "'? Give a folder on one that the hosts of all ranks share");
}

std::vector<std::string> RankTalk::gather(const std::string& own) const {
  if (comm_ == nullptr) return {own};
  std::vector<std::string> all = comm_->all_gather_bytes(message(call_, "\n", own)), calls;
  for (std::string& text : all) {
    const size_t end = text.find('\n');
    calls.push_back(
        comm::Agreement().add("the function that is called", text.substr(0, end)).text());
    text.erase(0, end + 1);
  }
  require_alike("CheckpointFolder", calls);
  return all;
}

std::string RankTalk::named(int rank, const std::string& error) const {
  return size() > 1 && !error.starts_with("rank ") ? message("rank ", rank, ": ", error) : error;
}

std::vector<RankError> RankTalk::gather_errors(const RankError& own) const {
  std::vector<RankError> errors;
  for (const std::string& bytes : gather(own.packed()))
    errors.push_back(RankError::unpacked(bytes));
  return errors;
}

void RankTalk::throw_first(const char* who, const std::vector<RankError>& errors) const {
  const int rank = first_with_error(errors);
  if (rank < 0) return;
  const RankError& error = errors[size_t(rank)];
  const std::string text = message(who, ": ", named(rank, error.text));
  if (error.kind == RankError::Kind::kValue) throw ValueError(text);
  throw IoError(text);
}

}  // namespace catena::training
