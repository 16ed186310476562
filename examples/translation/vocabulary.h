// The pieces of sentences, and their numbers.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace translation {

using Lines = std::vector<std::string>;
using Tokens = std::vector<int32_t>;

// What a line is cut into: words in lower case and marks, which blanks separate when they become a
// line again, or the letters of UTF-8, blanks included. A byte that is no UTF-8 is a letter.
enum class Pieces : uint8_t { kWords, kLetters };
std::vector<std::string> cut(const std::string& line, Pieces pieces);

// The pieces that have a number, the most frequent first, those of both languages together, so that
// a name is one number in both.
class Vocabulary {
 public:
  // Tokens that are not pieces: before a sentence, behind it, and for pieces without a number.
  static constexpr int32_t kBegin = 0, kEnd = 1, kUnknown = 2;

  // Of at most `most` tokens, equally frequent pieces in their order. ValueError for fewer than the
  // three above and one piece.
  Vocabulary(const std::vector<Lines>& texts, Pieces pieces, int64_t most);
  // A file that save() wrote: the kind of pieces, then a piece a line. IoError for others.
  static Vocabulary load(const std::string& file);
  void save(const std::string& file) const;

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  Tokens tokens_of(const std::string& line) const;
  // The opposite, without kBegin and kEnd.
  std::string text_of(const Tokens& tokens) const;

 private:
  explicit Vocabulary(Pieces kind);
  void add(const std::string& piece);

  Pieces kind_;
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t> numbers_;
};

}  // namespace translation
