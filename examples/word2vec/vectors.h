// Files of vectors of words, and the words whose vectors are close.
#pragma once

#include <string>
#include <vector>

#include "catena/array/array.h"

namespace word2vec {

// Words and their vectors, (words, units) float32 on a CPU, each of length 1.
struct Vectors {
  std::vector<std::string> words;
  catena::Array values;
};

// folder/vectors.npy and folder/words.txt, a word a line. IoError for files that are missing,
// damaged or do not fit.
void save_vectors(const std::string& folder, const std::vector<std::string>& words,
                  const catena::Array& values);
Vectors load_vectors(const std::string& folder);

// A word and the cosine of the angle between its vector and another.
struct Neighbour {
  std::string word;
  double cosine;
};
// The `count` closest to a word, without itself; empty if the word is not known.
std::vector<Neighbour> neighbours_of(const Vectors& vectors, const std::string& word, size_t count);

}  // namespace word2vec
