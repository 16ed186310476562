#include "vectors.h"

#include <algorithm>
#include <fstream>

#include "catena/array/io.h"
#include "catena/array/linalg.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"

namespace word2vec {

using catena::Array;

void save_vectors(const std::string& folder, const std::vector<std::string>& words,
                  const Array& values) {
  catena::save(folder + "/vectors.npy", values.to_cpu());
  std::ofstream file(folder + "/words.txt");
  for (const std::string& word : words) file << word << "\n";
  file.close();
  CATENA_CHECK(IoError, file.good(), "'", folder, "/words.txt' cannot be written");
}

Vectors load_vectors(const std::string& folder) {
  Vectors vectors;
  const Array values = catena::load(folder + "/vectors.npy");
  std::ifstream file(folder + "/words.txt");
  CATENA_CHECK(IoError, file.good(), "'", folder, "/words.txt' cannot be read");
  for (std::string word; std::getline(file, word);) vectors.words.push_back(word);
  CATENA_CHECK(IoError,
               values.ndim() == 2 && values.length() == static_cast<int64_t>(vectors.words.size()),
               "'", folder, "': vectors.npy has shape ", values.shape(), ", words.txt ",
               vectors.words.size(), " words; both must be of one run of train_word2vec");
  const Array lengths = catena::sqrt(catena::sum(catena::square(values), 1, true));
  vectors.values = catena::divide(values, catena::maximum(lengths, 1e-30));
  return vectors;
}

std::vector<Neighbour> neighbours_of(const Vectors& vectors, const std::string& word,
                                     size_t count) {
  const auto found = std::find(vectors.words.begin(), vectors.words.end(), word);
  if (found == vectors.words.end()) return {};
  const int64_t own = found - vectors.words.begin();
  const Array cosines = catena::matmul(vectors.values, vectors.values(own));
  std::vector<Neighbour> list;
  for (size_t i = 0; i < vectors.words.size(); ++i)
    if (static_cast<int64_t>(i) != own)
      list.push_back({vectors.words[i], double(cosines.data<float>()[i])});
  count = std::min(count, list.size());
  std::partial_sort(list.begin(), list.begin() + static_cast<ptrdiff_t>(count), list.end(),
                    [](const Neighbour& a, const Neighbour& b) { return a.cosine > b.cosine; });
  list.resize(count);
  return list;
}

}  // namespace word2vec
