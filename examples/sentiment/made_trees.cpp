#include "made_trees.h"

#include <algorithm>
#include <array>
#include <random>

#include "catena/core/error.h"

namespace sentiment {
namespace {

constexpr int kNeutral = 2;  // the label of the value 0

struct Word {
  const char* text;
  int value;  // from -2 to 2
};
constexpr std::array<Word, 12> kWords{{{"awful", -2},
                                       {"dreadful", -2},
                                       {"bad", -1},
                                       {"dull", -1},
                                       {"film", 0},
                                       {"plot", 0},
                                       {"music", 0},
                                       {"actors", 0},
                                       {"good", 1},
                                       {"funny", 1},
                                       {"great", 2},
                                       {"brilliant", 2}}};

int clipped(int value) { return std::clamp(value, -2, 2); }

// Appends phrases to a tree. Functions return the value of what they appended, whose root is then
// the last node of the tree.
class PhraseMaker {
 public:
  PhraseMaker(Vocabulary& vocabulary, uint64_t seed) : vocabulary_(vocabulary), random_(seed) {}

  Tree make() {
    constexpr int kDepth = 6;
    tree_.clear();
    phrase(kDepth);
    return tree_;
  }

 private:
  int phrase(int depth) {
    const uint64_t kind = depth == 0 ? 0 : draw(10);
    if (kind < 3) return any_word();
    if (kind < 5)
      return behind(
          "not", [](int value) { return -value; }, depth);
    if (kind < 7)
      return behind(
          "very", [](int value) { return clipped(2 * value); }, depth);
    const int left_value = phrase(depth - 1);
    const int32_t left = last();
    if (kind < 9) return join(left, clipped(left_value + phrase(depth - 1)));
    return join(left, behind(
                          "but", [](int value) { return value; }, depth));
  }
  // A word and the phrase whose value it changes.
  int behind(const char* text, int (*change)(int), int depth) {
    word({text, 0});
    const int32_t left = last();
    return join(left, change(phrase(depth - 1)));
  }
  int any_word() { return word(kWords[draw(kWords.size())]); }
  int word(const Word& word) {
    tree_.push_back({word.value + kNeutral, vocabulary_.add(word.text)});
    return word.value;
  }
  // The node of `left` and the last node.
  int join(int32_t left, int value) {
    tree_.push_back({value + kNeutral, -1, left, last()});
    return value;
  }
  int32_t last() const { return static_cast<int32_t>(tree_.size()) - 1; }
  // Equal with every standard library, as its distributions are not.
  uint64_t draw(uint64_t count) { return random_() % count; }

  Vocabulary& vocabulary_;
  std::mt19937_64 random_;
  Tree tree_;
};

}  // namespace

Data make_data(int64_t count, int64_t labels, uint64_t seed) {
  CATENA_CHECK(ValueError, labels >= 5, "--label ", labels,
               ": the trees that are made have labels from 0 to 4; give at least 5, or name a "
               "folder of trees with --data");
  Data data{.source = "made phrases"};
  PhraseMaker maker(data.vocabulary, seed);
  const auto fill = [&](std::vector<Tree>& trees, int64_t size) {
    while (std::ssize(trees) < size) trees.push_back(maker.make());
  };
  fill(data.train, count);
  fill(data.dev, (count + 3) / 4);
  fill(data.test, (count + 3) / 4);
  return data;
}

}  // namespace sentiment
