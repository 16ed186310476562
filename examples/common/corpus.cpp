#include "common/corpus.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <unordered_map>

#include "catena/core/error.h"

namespace examples {
namespace {

namespace fs = std::filesystem;
using Line = std::vector<std::string>;
using Lines = std::vector<Line>;

Line split_at_spaces(const std::string& line) {
  std::istringstream stream(line);
  Line words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Lines read_lines(const fs::path& path, Line (*cut)(const std::string&)) {
  std::ifstream file(path);
  CATENA_CHECK(IoError, file.good(), "'", path.string(), "' cannot be read");
  Lines lines;
  for (std::string line; std::getline(file, line);)
    if (Line words = cut(line); !words.empty()) lines.push_back(std::move(words));
  CATENA_CHECK(IoError, !lines.empty(), "'", path.string(), "' has no words");
  return lines;
}

// A verse a line: "Ge1:1 In the beginning".
Lines read_bible() {
  constexpr const char* kCommand = "bible -f Genesis1:1-Revelation22:21 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(kCommand, "r"), pclose);
  Lines lines;
  std::string line;
  for (int c = pipe ? std::fgetc(pipe.get()) : EOF; c != EOF; c = std::fgetc(pipe.get())) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    Line words = cut_into_words(line.substr(std::min(line.find(' '), line.size())));
    if (!words.empty()) lines.push_back(std::move(words));
    line.clear();
  }
  CATENA_CHECK(IoError, !lines.empty(),
               "there is no text: the program 'bible' was not found; install it "
               "(apt-get install bible-kjv), or name a text file, or a folder with ptb.train.txt, "
               "ptb.valid.txt and ptb.test.txt, with --data");
  return lines;
}

std::vector<std::string> make_vocabulary(const Lines& lines, int64_t most_words) {
  std::vector<std::string> vocabulary{"<eos>", "<unk>"};
  for (const std::string& word : by_frequency(lines)) {
    if (static_cast<int64_t>(vocabulary.size()) >= most_words) break;
    if (word != "<eos>" && word != "<unk>") vocabulary.push_back(word);
  }
  return vocabulary;
}

std::vector<int32_t> numbers_of(const Lines& lines, const std::vector<std::string>& vocabulary) {
  std::unordered_map<std::string, int32_t> places;
  for (size_t i = 0; i < vocabulary.size(); ++i)
    places.emplace(vocabulary[i], static_cast<int32_t>(i));
  const int32_t end = places.at("<eos>"), unknown = places.at("<unk>");
  std::vector<int32_t> numbers;
  for (const Line& line : lines) {
    for (const std::string& word : line) {
      const auto found = places.find(word);
      numbers.push_back(found == places.end() ? unknown : found->second);
    }
    numbers.push_back(end);
  }
  return numbers;
}

struct Parts {
  Lines train, valid, test;
};

Parts divide(Lines lines) {
  const auto at = [&](double share) {
    return lines.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(lines.size()));
  };
  return {Lines(lines.begin(), at(0.9)), Lines(at(0.9), at(0.95)), Lines(at(0.95), lines.end())};
}

Parts read_parts(const std::string& data) {
  if (data.empty()) return divide(read_bible());
  CATENA_CHECK(IoError, fs::exists(data), "--data: there is no '", data, "'");
  if (!fs::is_directory(data)) return divide(read_lines(data, cut_into_words));
  const fs::path folder(data);
  for (const char* part : {"train", "valid", "test"}) {
    const fs::path file = folder / ("ptb." + std::string(part) + ".txt");
    CATENA_CHECK(IoError, fs::exists(file), "--data: the folder '", data, "' has no ",
                 file.filename().string(),
                 "; it needs ptb.train.txt, ptb.valid.txt and ptb.test.txt");
  }
  return {read_lines(folder / "ptb.train.txt", split_at_spaces),
          read_lines(folder / "ptb.valid.txt", split_at_spaces),
          read_lines(folder / "ptb.test.txt", split_at_spaces)};
}

bool is_part_of_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 127 || std::isalnum(byte) || c == '\'';
}

}  // namespace

std::vector<std::string> by_frequency(const Lines& lines) {
  std::unordered_map<std::string, size_t> places;
  std::vector<std::pair<int64_t, std::string>> counted;
  for (const Line& line : lines) {
    for (const std::string& word : line) {
      const auto [at, is_new] = places.try_emplace(word, counted.size());
      if (is_new) counted.emplace_back(0, word);
      ++counted[at->second].first;
    }
  }
  std::stable_sort(counted.begin(), counted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> words;
  for (auto& [count, word] : counted) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> cut_into_words(const std::string& line) {
  std::vector<std::string> words;
  bool goes_on = false;
  for (const char c : line) {
    const bool part = is_part_of_word(c);
    if (part && goes_on) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (part || std::isgraph(static_cast<unsigned char>(c))) {
      words.emplace_back(1, static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    }
    goes_on = part;
  }
  return words;
}

Corpus load_corpus(const std::string& data, int64_t most_words) {
  const Parts parts = read_parts(data);
  Corpus corpus{.source = data.empty() ? "the King James Bible" : data,
                .vocabulary = make_vocabulary(parts.train, most_words)};
  corpus.train = numbers_of(parts.train, corpus.vocabulary);
  corpus.valid = numbers_of(parts.valid, corpus.vocabulary);
  corpus.test = numbers_of(parts.test, corpus.vocabulary);
  return corpus;
}

}  // namespace examples
