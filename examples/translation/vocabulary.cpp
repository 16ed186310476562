#include "vocabulary.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "catena/array/io.h"
#include "common/corpus.h"

namespace translation {
namespace {

constexpr const char* kKinds[] = {"words", "letters"};

bool goes_on(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The bytes of the letter that begins at `at`.
size_t letter_at(const std::string& line, size_t at) {
  const auto first = static_cast<unsigned char>(line[at]);
  const size_t length = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  size_t found = 1;
  while (found < length && at + found < line.size() && goes_on(line[at + found])) ++found;
  return found == length ? length : 1;
}

}  // namespace

std::vector<std::string> cut(const std::string& line, Pieces kind) {
  if (kind == Pieces::kWords) return examples::cut_into_words(line);
  std::vector<std::string> letters;
  for (size_t at = 0; at < line.size(); at += letters.back().size())
    letters.push_back(line.substr(at, letter_at(line, at)));
  return letters;
}

Vocabulary::Vocabulary(Pieces kind) : kind_(kind) {
  for (const char* special : {"<begin>", "<end>", "<unk>"}) pieces_.emplace_back(special);
}

Vocabulary::Vocabulary(const std::vector<Lines>& texts, Pieces kind, int64_t most)
    : Vocabulary(kind) {
  CATENA_CHECK(ValueError, most > size(), "--vocabulary ", most,
               " has no room for pieces: ", size(),
               " tokens are the ends of sentences and pieces that are not known");
  std::vector<std::vector<std::string>> lines;
  for (const Lines& text : texts)
    for (const std::string& line : text) lines.push_back(cut(line, kind));
  for (const std::string& piece : examples::by_frequency(lines)) {
    if (size() == most) break;
    add(piece);
  }
}

void Vocabulary::add(const std::string& piece) {
  numbers_.emplace(piece, static_cast<int32_t>(pieces_.size()));
  pieces_.push_back(piece);
}

Vocabulary Vocabulary::load(const std::string& file) {
  std::ifstream lines(file);
  CATENA_CHECK(IoError, lines.good(), "there is no vocabulary '", file,
               "'; train a model first, or name the folder of one with --out");
  std::string line;
  std::getline(lines, line);
  const auto kind = std::find(std::begin(kKinds), std::end(kKinds), line) - std::begin(kKinds);
  CATENA_CHECK(IoError, kind < 2, "'", file, "' is not a vocabulary of train_translation");
  Vocabulary vocabulary(static_cast<Pieces>(kind));
  while (std::getline(lines, line)) vocabulary.add(line);
  return vocabulary;
}

void Vocabulary::save(const std::string& file) const {
  std::ostringstream lines;
  lines << kKinds[static_cast<size_t>(kind_)] << '\n';
  for (size_t i = 3; i < pieces_.size(); ++i) lines << pieces_[i] << '\n';
  catena::write_file_atomically(file, lines.str());
}

Tokens Vocabulary::tokens_of(const std::string& line) const {
  Tokens tokens;
  for (const std::string& piece : cut(line, kind_)) {
    const auto found = numbers_.find(piece);
    tokens.push_back(found == numbers_.end() ? kUnknown : found->second);
  }
  return tokens;
}

std::string Vocabulary::text_of(const Tokens& tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    if (token == kBegin || token == kEnd) continue;
    if (kind_ == Pieces::kWords && !text.empty()) text += ' ';
    text += pieces_.at(static_cast<size_t>(token));
  }
  return text;
}

}  // namespace translation
