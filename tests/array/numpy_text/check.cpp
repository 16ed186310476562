// Compares texts of arrays with those NumPy made of the same arrays: check CASES.npz FOLDER.
// Ends with "N texts equal, M differ" and status 1 when M is not 0 or N is.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "catena/array/format.h"
#include "catena/array/io.h"
#include "catena/array/text.h"

namespace {

using namespace catena;

std::string text_of(const Array& bytes) {
  const std::vector<uint8_t> values = bytes.to_vector<uint8_t>();
  return {values.begin(), values.end()};
}

PrintOptions options_of(const Array& numbers) {
  const std::vector<int64_t> n = numbers.to_vector<int64_t>();
  PrintOptions o;
  o.precision = static_cast<int>(n.at(0));
  o.threshold = n.at(1);
  o.edgeitems = static_cast<int>(n.at(2));
  o.linewidth = static_cast<int>(n.at(3));
  o.suppress = n.at(4) != 0;
  o.sign = static_cast<char>(n.at(5));
  o.floatmode = static_cast<FloatMode>(n.at(6));
  return o;
}

std::vector<std::string> words_of(const Array& bytes) {
  const std::string all = text_of(bytes);
  std::vector<std::string> words(1);
  for (const char c : all) {
    if (c == '\0')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string ours(const NpzFile& file, const std::string& number, const std::string& folder) {
  const int kind = file[number + "/kind"].item<int>();
  const Array a = file[number + "/a"];
  if (kind == 0) return array_repr(a, options_of(file[number + "/options"]));
  if (kind == 1) return array_str(a, options_of(file[number + "/options"]));
  const std::vector<std::string> words = words_of(file[number + "/words"]);
  const std::string path = folder + "/written.txt";
  if (kind == 2)
    savetxt(path, a, {.format = words.at(0), .delimiter = words.at(1), .header = words.at(2)});
  else
    tofile(path, a, words.at(1), words.at(0));
  return file_text(path);
}

int run(const std::string& cases, const std::string& folder) {
  const NpzFile file(cases);
  long equal = 0, different = 0;
  for (; file.contains(std::to_string(equal + different) + "/kind");) {
    const std::string number = std::to_string(equal + different);
    const std::string expected = text_of(file[number + "/text"]);
    std::string found;
    try {
      found = ours(file, number, folder);
    } catch (const Error& error) {
      found = std::string("exception: ") + error.what();
    }
    if (found == expected) {
      ++equal;
      continue;
    }
    if (++different <= 8)
      std::printf("case %s: NumPy wrote\n%s\ncatena wrote\n%s\n", number.c_str(), expected.c_str(),
                  found.c_str());
  }
  std::printf("%ld texts equal, %ld differ\n", equal, different);
  return equal > 0 && different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s CASES.npz FOLDER\n", argv[0]);
    return 2;
  }
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
