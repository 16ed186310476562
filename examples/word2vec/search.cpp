// Reads words and prints the five whose vectors are closest:
//   echo king | search_word2vec result
#include <cstdio>
#include <iostream>

#include "catena/comm/run_main.h"
#include "catena/core/printable.h"
#include "vectors.h"

namespace {

int body(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER, that of train_word2vec --out\n", argv[0]);
    return 2;
  }
  const word2vec::Vectors vectors = word2vec::load_vectors(argv[1]);
  for (std::string word; std::cin >> word;) {
    const auto neighbours = word2vec::neighbours_of(vectors, word, 5);
    if (neighbours.empty())
      std::printf("'%s' is not in the vocabulary\n", catena::printable_line(word).c_str());
    else
      std::printf("%s\n", catena::printable_line(word).c_str());
    for (const auto& [other, cosine] : neighbours)
      std::printf("  %-20s %.4f\n", catena::printable_line(other).c_str(), cosine);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
