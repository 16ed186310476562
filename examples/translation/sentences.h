// Pairs of sentences as samples, in batches of similar lengths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catena/datasets/dataset.h"
#include "catena/datasets/order.h"
#include "vocabulary.h"

namespace translation {

// Lines that are translations of each other.
struct Parallel {
  Lines source, target;
};
// Those of two files. IoError for a file that cannot be read, ValueError for other numbers of lines
// and for files without lines.
Parallel read_lines(const std::string& source, const std::string& target);
// Made ones: random letters, from 3 to 10 of them, and the same letters backwards.
Parallel make_reversed(int64_t count, uint64_t seed);
// Takes every `every`th pair out of the lines.
Parallel hold_out(Parallel& lines, size_t every);

struct Pair {
  Tokens source, target;
};
// Without those that are empty, or longer than `longest` tokens, in one of the languages.
std::vector<Pair> pairs_of(const Parallel& lines, const Vocabulary& vocabulary, int64_t longest);

// A sample is the tokens of the source, and kBegin, those of the target, kEnd; both of int32. Their
// batches, with pad_with_nothing: (n, tokens of the longest) each, padded by kNothing, and the
// lengths of the sources, int64 (n).
constexpr int32_t kNothing = -1;
catena::datasets::DatasetPtr dataset_of(const std::vector<Pair>& pairs);
catena::datasets::Collate pad_with_nothing();

// Batches of sentences that are about equally long, so that little is padding: shuffled pairs are
// sorted by length in stretches of 50 batches, and the batches come in random order. A last batch
// that is not full stays the last one.
class SimilarLengths final : public catena::datasets::Order {
 public:
  SimilarLengths(const std::vector<Pair>& pairs, int64_t batch);

 private:
  catena::Array positions(uint64_t seed, int64_t epoch, catena::Device device) const override;
  std::vector<size_t> lengths_;
  int64_t batch_;
};

}  // namespace translation
