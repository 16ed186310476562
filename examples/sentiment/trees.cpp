#include "trees.h"

#include <charconv>
#include <filesystem>
#include <fstream>

#include "catena/core/error.h"

namespace sentiment {
namespace {

using catena::IoError;

// Reads one line. Nodes that are not closed yet are on a stack: a file decides how deep it is.
class Parser {
 public:
  Parser(const std::string& line, std::string where, int64_t labels, const NumberOfWord& number)
      : line_(line), where_(std::move(where)), labels_(labels), number_(number) {}

  Tree parse() {
    for (skip_spaces(); at_ < line_.size(); skip_spaces()) {
      if (!tree_.empty() && open_.empty()) refuse("expected the end of the line behind the tree");
      if (line_[at_] == '(')
        open();
      else if (line_[at_] == ')')
        close();
      else
        take_word();
    }
    if (!open_.empty())
      refuse(catena::message("the line ends with ", open_.size(), " node(s) not closed by ')'"));
    return std::move(tree_);
  }

 private:
  // What is known of a node before its ')'.
  struct Open {
    int32_t label;
    int32_t word = -1;
    std::vector<int32_t> parts = {};
  };

  [[noreturn]] void refuse(const std::string& why) const {
    catena::fail<IoError>(where_, ", column ", at_ + 1, ": ", why,
                          "; a node is (LABEL WORD) or (LABEL NODE NODE)");
  }
  void skip_spaces() { at_ = std::min(line_.find_first_not_of(" \t\r", at_), line_.size()); }
  std::string token() const { return line_.substr(at_, line_.find_first_of(" \t\r()", at_) - at_); }

  void open() {
    if (!open_.empty() && open_.back().word >= 0) refuse("a node has a word and a part");
    if (!open_.empty() && open_.back().parts.size() == 2) refuse("a node has three parts");
    ++at_;
    skip_spaces();
    const std::string text = token();
    Open node{};
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), node.label);
    if (error != std::errc() || rest != text.data() + text.size() || node.label < 0 ||
        node.label >= labels_)
      refuse(catena::message("the label is '", text, "', expected a whole number from 0 to ",
                             labels_ - 1));
    open_.push_back(std::move(node));
    at_ += text.size();
  }

  void take_word() {
    const std::string text = token();
    if (open_.empty()) refuse("expected '(', got '" + text + "'");
    if (!open_.back().parts.empty()) refuse("a node has a part and the word '" + text + "'");
    if (open_.back().word >= 0) refuse("a node has a second word, '" + text + "'");
    open_.back().word = number_(text);
    at_ += text.size();
  }

  void close() {
    if (open_.empty()) refuse("')' without '('");
    const Open& node = open_.back();
    if (node.word < 0 && node.parts.size() != 2)
      refuse(node.parts.empty() ? "a node has neither a word nor parts" : "a node has one part");
    tree_.push_back(node.word >= 0 ? Node{node.label, node.word}
                                   : Node{node.label, -1, node.parts[0], node.parts[1]});
    open_.pop_back();
    if (!open_.empty()) open_.back().parts.push_back(static_cast<int32_t>(tree_.size()) - 1);
    ++at_;
  }

  const std::string& line_;
  std::string where_;
  int64_t labels_;
  const NumberOfWord& number_;
  size_t at_ = 0;
  std::vector<Open> open_;
  Tree tree_;
};

}  // namespace

int32_t Vocabulary::add(const std::string& word) {
  const auto [at, is_new] = numbers_.try_emplace(word, static_cast<int32_t>(words_.size()));
  if (is_new) words_.push_back(word);
  return at->second;
}

int32_t Vocabulary::find(const std::string& word) const {
  const auto found = numbers_.find(word);
  return found == numbers_.end() ? 0 : found->second;
}

std::vector<Tree> read_trees(const std::string& file, int64_t labels, const NumberOfWord& number) {
  std::ifstream stream(file);
  CATENA_CHECK(IoError, stream.good(), "'", file, "' cannot be read");
  std::vector<Tree> trees;
  int64_t count = 0;
  for (std::string line; std::getline(stream, line);) {
    const std::string where = catena::message("'", file, "', line ", ++count);
    Tree tree = Parser(line, where, labels, number).parse();
    if (!tree.empty()) trees.push_back(std::move(tree));
  }
  CATENA_CHECK(IoError, !trees.empty(), "'", file, "' has no trees");
  return trees;
}

std::string text_of(const Tree& tree, const Vocabulary& vocabulary) {
  std::vector<std::string> texts;
  for (const Node& node : tree) {
    const std::string rest = node.is_leaf()
                                 ? vocabulary.word(node.word)
                                 : texts[size_t(node.left)] + " " + texts[size_t(node.right)];
    texts.push_back("(" + std::to_string(node.label) + " " + rest + ")");
  }
  return texts.back();
}

Data load_data(const std::string& folder, int64_t labels) {
  namespace fs = std::filesystem;
  for (const char* name : {"train.txt", "dev.txt", "test.txt"})
    CATENA_CHECK(IoError, fs::exists(fs::path(folder) / name),
                 "--data: ", fs::is_directory(folder) ? "the folder '" : "there is no folder '",
                 folder, fs::is_directory(folder) ? catena::message("' has no ", name) : "'",
                 "; it needs train.txt, dev.txt and test.txt with a tree in each line, such as "
                 "(3 (2 very) (3 good)); without --data trees are made");
  const auto file = [&](const char* name) { return (fs::path(folder) / name).string(); };
  Data data{.source = folder};
  data.train = read_trees(file("train.txt"), labels,
                          [&](const std::string& word) { return data.vocabulary.add(word); });
  const auto find = [&](const std::string& word) { return data.vocabulary.find(word); };
  data.dev = read_trees(file("dev.txt"), labels, find);
  data.test = read_trees(file("test.txt"), labels, find);
  return data;
}

}  // namespace sentiment
