// Parse trees of phrases, whose nodes have labels, and files of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace sentiment {

// A word (a leaf), or two parts that are nodes of the same tree (an inner node).
struct Node {
  int32_t label = 0;
  int32_t word = -1;              // its number in a vocabulary; -1: an inner node
  int32_t left = -1, right = -1;  // positions in the tree; -1: a leaf

  bool is_leaf() const { return word >= 0; }
};
// At least one node. Parts come before the node that they are parts of, so the root is the last.
using Tree = std::vector<Node>;

// Words and their numbers, which begin with 0 for "<unk>".
class Vocabulary {
 public:
  Vocabulary() { add("<unk>"); }
  int32_t add(const std::string& word);         // its number, a new one for a new word
  int32_t find(const std::string& word) const;  // 0 for a word that was not added
  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const std::string& word(int32_t number) const { return words_.at(static_cast<size_t>(number)); }

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> numbers_;
};
// Vocabulary::add or Vocabulary::find.
using NumberOfWord = std::function<int32_t(const std::string& word)>;

// A file in the format of the Stanford Sentiment Treebank: a tree in each line, of which a node is
// (LABEL WORD) or (LABEL NODE NODE), with labels from 0 to labels - 1. Empty lines are left out.
// IoError, with line and column, for what is otherwise, and for a file that cannot be read or has
// no trees.
std::vector<Tree> read_trees(const std::string& file, int64_t labels, const NumberOfWord& number);
// The line of a tree in such a file.
std::string text_of(const Tree& tree, const Vocabulary& vocabulary);

struct Data {
  std::string source;  // for people
  Vocabulary vocabulary;
  std::vector<Tree> train, dev, test;
};
// The files train.txt, dev.txt and test.txt of a folder. The vocabulary has the words of train.txt.
// IoError as of read_trees, and where a file or the folder is missing.
Data load_data(const std::string& folder, int64_t labels);

}  // namespace sentiment
