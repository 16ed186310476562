// Text as numbers of words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace examples {

// Three parts of one text. A word is its place in `vocabulary`; lines end with "<eos>", and words
// that the vocabulary has no place for are "<unk>".
struct Corpus {
  std::string source;  // what it was read from, for people
  std::vector<std::string> vocabulary;
  std::vector<int32_t> train, valid, test;
};

// `data` is a folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt, whose words are separated
// by white space; or a text file, whose lines are cut into words (cut_into_words) and divided, the
// last tenth into validation and test; or "" for the King James Bible of the Debian package
// bible-kjv. The vocabulary holds at most `most_words` of the words of the training part, the most
// frequent ones. IoError, which says what is missing, for files that are not there or have no
// words.
Corpus load_corpus(const std::string& data, int64_t most_words);

// The words of the lines, the most frequent first, equally frequent ones in their order.
std::vector<std::string> by_frequency(const std::vector<std::vector<std::string>>& lines);

// Letters (bytes above 127 as well), digits and apostrophes make words, in lower case; every other
// visible character is a word by itself.
std::vector<std::string> cut_into_words(const std::string& line);

}  // namespace examples
