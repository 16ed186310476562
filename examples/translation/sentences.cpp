#include "sentences.h"

#include <algorithm>
#include <fstream>
#include <random>

#include "catena/array/creation.h"
#include "catena/core/device.h"
#include "catena/datasets/collate.h"

namespace translation {
namespace {

namespace ds = catena::datasets;
using catena::Array;

Lines lines_of(const std::string& file) {
  std::ifstream stream(file);
  CATENA_CHECK(IoError, stream.good(), "'", file, "' cannot be read");
  Lines lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool fits(const Tokens& tokens, int64_t longest) {
  return !tokens.empty() && std::ssize(tokens) <= longest;
}

}  // namespace

Parallel read_lines(const std::string& source, const std::string& target) {
  Parallel lines{lines_of(source), lines_of(target)};
  CATENA_CHECK(ValueError, lines.source.size() == lines.target.size(), "'", source, "' has ",
               lines.source.size(), " lines, '", target, "' ", lines.target.size(),
               "; line by line they are to be translations of each other");
  CATENA_CHECK(ValueError, !lines.source.empty(), "'", source, "' has no lines");
  return lines;
}

Parallel make_reversed(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Parallel lines;
  for (int64_t i = 0; i < count; ++i) {
    std::string letters(3 + random() % 8, ' ');
    for (char& letter : letters) letter = static_cast<char>('a' + random() % 26);
    lines.source.push_back(letters);
    lines.target.emplace_back(letters.rbegin(), letters.rend());
  }
  return lines;
}

Parallel hold_out(Parallel& lines, size_t every) {
  Parallel rest, out;
  for (size_t i = 0; i < lines.source.size(); ++i) {
    Parallel& to = i % every == every - 1 ? out : rest;
    to.source.push_back(lines.source[i]);
    to.target.push_back(lines.target[i]);
  }
  lines = std::move(rest);
  return out;
}

std::vector<Pair> pairs_of(const Parallel& lines, const Vocabulary& vocabulary, int64_t longest) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i < lines.source.size(); ++i) {
    Pair pair{vocabulary.tokens_of(lines.source[i]), vocabulary.tokens_of(lines.target[i])};
    if (fits(pair.source, longest) && fits(pair.target, longest)) pairs.push_back(std::move(pair));
  }
  return pairs;
}

ds::DatasetPtr dataset_of(const std::vector<Pair>& pairs) {
  const catena::DeviceScope host("cpu:0");
  std::vector<ds::Arrays> samples;
  for (const Pair& pair : pairs) {
    Tokens target{Vocabulary::kBegin};
    target.insert(target.end(), pair.target.begin(), pair.target.end());
    target.push_back(Vocabulary::kEnd);
    samples.push_back({catena::array(pair.source), catena::array(target)});
  }
  return std::make_shared<ds::ListDataset>(std::move(samples));
}

ds::Collate pad_with_nothing() { return ds::pad_samples({.value = kNothing}); }

SimilarLengths::SimilarLengths(const std::vector<Pair>& pairs, int64_t batch)
    : Order(std::ssize(pairs)), batch_(batch) {
  for (const Pair& pair : pairs) lengths_.push_back(pair.source.size() + pair.target.size());
}

Array SimilarLengths::positions(uint64_t seed, int64_t epoch, catena::Device device) const {
  auto shuffled = ds::epoch_order(seed, epoch, size()).to_vector<int64_t>();
  const int64_t stretch = 50 * batch_;
  for (int64_t first = 0; first < size(); first += stretch)
    std::stable_sort(
        shuffled.begin() + first, shuffled.begin() + std::min(first + stretch, size()),
        [&](int64_t a, int64_t b) { return lengths_[size_t(a)] < lengths_[size_t(b)]; });
  const int64_t batches = size() / batch_;
  std::vector<int64_t> result;
  if (batches > 0)
    for (const int64_t i : ds::epoch_order(~seed, epoch, batches).to_vector<int64_t>())
      result.insert(result.end(), shuffled.begin() + i * batch_,
                    shuffled.begin() + (i + 1) * batch_);
  result.insert(result.end(), shuffled.begin() + batches * batch_, shuffled.end());
  return catena::array(result, device);
}

}  // namespace translation
