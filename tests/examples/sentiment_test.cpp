// The network over parse trees: files become trees, levels give what nodes one by one give, on a
// GPU too, and training finds the rules of made phrases, over ranks as in one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/random.h"
#include "catena/comm/factory.h"
#include "catena/functions/array/concat.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/testing.h"
#include "catena/testing_markers.h"
#include "error_text.h"
#include "examples.h"
#include "sentiment/made_trees.h"
#include "sentiment/model.h"

namespace catena::test {
namespace {

namespace F = functions;
using sentiment::Data;
using sentiment::Tree;

const char* const kThree =
    "(3 (2 It) (4 (2 's) (4 great)))\n"
    "\n"
    "  ( 1(2 not)(3 \t good) ) \r\n"
    "(0 awful)\n";

class TreeFiles {
 public:
  TreeFiles() {
    for (const char* name : {"train.txt", "dev.txt", "test.txt"})
      write_file(folder_ / name, kThree);
  }
  std::string path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  TempFolder folder_;
};

TEST(SentimentExample, ReadsTrees) {
  const TreeFiles files;
  write_file(files / "dev.txt", "(4 (4 great) (1 unheard))");
  const Data data = sentiment::load_data(files.path(), 5);
  ASSERT_EQ(data.train.size(), 3u);
  EXPECT_EQ(sentiment::text_of(data.train[0], data.vocabulary), "(3 (2 It) (4 (2 's) (4 great)))");
  EXPECT_EQ(sentiment::text_of(data.train[1], data.vocabulary), "(1 (2 not) (3 good))");
  EXPECT_EQ(sentiment::text_of(data.train[2], data.vocabulary), "(0 awful)");
  const Tree& first = data.train[0];
  ASSERT_EQ(first.size(), 5u);
  EXPECT_EQ(first.back().label, 3);
  EXPECT_EQ(first.back().left, 0);
  EXPECT_EQ(first.back().right, 3);
  EXPECT_TRUE(first[0].is_leaf());
  EXPECT_FALSE(first[3].is_leaf());
  EXPECT_EQ(data.vocabulary.size(), 7);
  // The vocabulary is that of train.txt.
  EXPECT_EQ(sentiment::text_of(data.dev[0], data.vocabulary), "(4 (4 great) (1 <unk>))");
  // Any depth: nothing recurses.
  std::string deep = "(1 x)";
  for (int i = 0; i < 20000; ++i) deep.insert(0, "(1 (1 x) ") += ")";
  write_file(files / "test.txt", deep);
  EXPECT_EQ(sentiment::load_data(files.path(), 5).test[0].size(), 40001u);
}

TEST(SentimentExample, SaysWhatIsWrongWithATree) {
  const TreeFiles files;
  const auto refusal_of = [&](const std::string& text) {
    write_file(files / "test.txt", text);
    return error_of<IoError>([&] { sentiment::load_data(files.path(), 5); });
  };
  const auto refuses = [&](const std::string& line, const char* column, const char* why) {
    const std::string text = refusal_of("(0 awful)\n" + line + "\n");
    expect_contains(text, {"test.txt', line 2, ", column, why, "(LABEL NODE NODE)"});
  };
  refuses("good", "column 1:", "expected '(', got 'good'");
  refuses("(x good)", "column 2:", "the label is 'x', expected a whole number from 0 to 4");
  refuses("(good)", "column 2:", "the label is 'good'");
  refuses("(5 good)", "column 2:", "the label is '5'");
  refuses("(-1 good)", "column 2:", "the label is '-1'");
  refuses("(3 (2 very) (9 good))", "column 14:", "the label is '9'");
  refuses("(3 (2 very) (3 good)", "column 21:", "1 node(s) not closed");
  refuses("(3 (2 very) (3 good)))", "column 22:", "end of the line");
  refuses(")", "column 1:", "')' without '('");
  refuses("(3 good) (3 good)", "column 10:", "end of the line");
  refuses("(3)", "column 3:", "neither a word nor parts");
  refuses("(3 (2 very))", "column 12:", "one part");
  refuses("(3 (2 a) (2 b) (2 c))", "column 16:", "three parts");
  refuses("(3 a b)", "column 6:", "a second word, 'b'");
  refuses("(3 a (2 b))", "column 6:", "a word and a part");
  refuses("(3 (2 b) a)", "column 10:", "a part and the word 'a'");
  expect_contains(refusal_of(" \n\n"), {"test.txt' has no trees"});
  std::filesystem::remove(files / "test.txt");
  const auto load = [](const std::string& folder) {
    return error_of<IoError>([&] { sentiment::load_data(folder, 5); });
  };
  expect_contains(load(files.path()), {"--data: the folder '", "' has no test.txt", "a tree in"});
  expect_contains(load(files / "no"), {"--data: there is no folder '", "no'", "trees are made"});
}

// What the comment of make_data says, node by node.
int label_of(const Tree& tree, const sentiment::Node& node, const sentiment::Vocabulary& words) {
  const sentiment::Node &left = tree[size_t(node.left)], &right = tree[size_t(node.right)];
  const std::string word = left.is_leaf() ? words.word(left.word) : "";
  if (word == "not") return 4 - right.label;
  if (word == "very") return std::clamp(2 * right.label - 2, 0, 4);
  const auto is_but = [&] {
    return !right.is_leaf() && tree[size_t(right.left)].is_leaf() &&
           words.word(tree[size_t(right.left)].word) == "but";
  };
  if (word == "but" || is_but()) return right.label;
  return std::clamp(left.label + right.label - 2, 0, 4);
}

TEST(SentimentExample, MadeTreesFollowTheirRules) {
  const Data data = sentiment::make_data(200, 5, 7);
  EXPECT_EQ(data.train.size(), 200u);
  EXPECT_EQ(data.dev.size(), 50u);
  EXPECT_EQ(data.test.size(), 50u);
  std::string text;
  for (const Tree& tree : data.train) {
    for (const sentiment::Node& node : tree)
      if (!node.is_leaf()) {
        ASSERT_EQ(node.label, label_of(tree, node, data.vocabulary));
      }
    text += sentiment::text_of(tree, data.vocabulary) + "\n";
  }
  expect_contains(text, {"(0 awful)", "(1 dull)", "(2 film)", "(3 good)", "(4 great)", "(2 very)",
                         "(2 not)", "(2 but)"});
  const auto first_of = [](uint64_t seed) {
    const Data made = sentiment::make_data(1, 5, seed);
    return sentiment::text_of(made.train[0], made.vocabulary);
  };
  EXPECT_EQ(first_of(7), text.substr(0, text.find('\n')));
  EXPECT_NE(first_of(7), first_of(8));
  expect_contains(error_of<ValueError>([] { sentiment::make_data(1, 4, 7); }),
                  {"--label 4", "at least 5", "--data"});
}

// The loss as the original computes it: a call for each node, and a graph for each tree.
class OneByOne {
 public:
  OneByOne(const sentiment::RecursiveNet& net, Device device) : net_(net), device_(device) {}
  Variable loss(const std::vector<Tree>& trees) {
    for (const Tree& tree : trees) vector(tree, tree.back());
    return loss_;
  }

 private:
  Array one(int32_t number) const { return array(std::vector<int32_t>{number}).to(device_); }
  Variable vector(const Tree& tree, const sentiment::Node& node) {
    const auto part = [&](int32_t at) { return vector(tree, tree[size_t(at)]); };
    const Variable v = node.is_leaf()
                           ? net_.leaves(one(node.word))
                           : net_.nodes(F::concat({part(node.left), part(node.right)}, 1));
    const Variable own = F::softmax_cross_entropy(net_.scores(v), one(node.label));
    loss_ = loss_.defined() ? loss_ + own : own;
    return v;
  }

  const sentiment::RecursiveNet& net_;
  Device device_;
  Variable loss_;
};

// A batch as an iterator on the device makes it, a quarter of a global one.
datasets::Batch batch_of(const std::vector<Tree>& trees, Device device) {
  std::vector<datasets::Arrays> samples;
  const auto data = sentiment::dataset_of(trees);
  for (int64_t i = 0; i < data->size(); ++i) samples.push_back(data->sample(i));
  datasets::Batch batch{.arrays = sentiment::by_level(samples),
                        .global_count = 4 * std::ssize(trees),
                        .weight = 0.25,
                        .count = std::ssize(trees)};
  for (Array& a : batch.arrays) a = a.to(device);
  return batch;
}

void expect_by_level_as_one_by_one(Device device) {
  const DeviceScope scope(device);
  random::seed(3);
  Data data = sentiment::make_data(30, 5, 11);
  // A word alone, in the midst of others, and a tree that leans to one side.
  const auto number = [&](const std::string& word) { return data.vocabulary.add(word); };
  const TempFolder folder;
  write_file(folder / "more", "(4 great)\n(1 (1 (3 good) (0 (2 film) (2 plot))) (2 x))\n");
  for (Tree& tree : sentiment::read_trees(folder / "more", 5, number))
    data.train.insert(data.train.begin() + 9, std::move(tree));
  sentiment::RecursiveNet net(data.vocabulary.size(), 6, 5);
  const auto gradients_of = [&](const Variable& loss) {
    net.zero_grads();
    loss.backward();
    std::vector<Array> copies;
    for (const Array& gradient : net.gradients()) copies.push_back(gradient.copy());
    return copies;
  };
  for (const std::vector<Tree>& trees : {data.train, {data.train[9]}, {data.train[10]}}) {
    const Variable all = sentiment::score_of(net, batch_of(trees, device))[0] / 4.0;
    const Variable one = OneByOne(net, device).loss(trees);
    EXPECT_EQ(testing::difference(all.data(), one.data(), 1e-5, 1e-5), "");
    const auto expected = gradients_of(one), found = gradients_of(all);
    for (size_t k = 0; k < expected.size(); ++k)
      EXPECT_EQ(testing::difference(found[k], expected[k], 1e-4, 1e-4), "") << k;
  }
}

TEST(SentimentExample, ByLevelIsAsOneByOne) { expect_by_level_as_one_by_one(cpu(0)); }
TEST(SentimentExample, ByLevelIsAsOneByOneOnAGpu) {
  CATENA_NEEDS_GPU();
  expect_by_level_as_one_by_one(cuda_device(0));
}

// Roots are the first rows, of trees of any form.
TEST(SentimentExample, CountsNodesAndRoots) {
  const TreeFiles files;
  Data data = sentiment::load_data(files.path(), 5);
  sentiment::RecursiveNet net(data.vocabulary.size(), 4, 5);
  // Every node is taken for 4: three nodes, none of them a root, but the one that is added.
  for (Parameter& p : net.w.parameters()) p.copy_from(zeros(p.shape(), {dtype::float32}));
  net.w.b.data()(4).fill(1);
  data.train.push_back({{.label = 4, .word = 1}});
  datasets::PrefetchIterator batches(sentiment::dataset_of(data.train),
                                     datasets::SerialIterator(4, 3), cpu(0), {},
                                     {.collate = sentiment::by_level});
  const CommunicatorPtr alone = create_communicator();
  const sentiment::Accuracies found = sentiment::accuracies_of(net, batches, *alone);
  EXPECT_EQ(found.nodes.right, 3);
  EXPECT_EQ(found.nodes.count, 10);
  EXPECT_EQ(found.roots.right, 1);
  EXPECT_EQ(found.roots.count, 4);
}

Words train(const std::string& out, const Words& more = {}) {
  return with({program("train_sentiment"), "--device=cpu", "--out=" + out}, more);
}

double number_behind(const std::string& text, const std::string& before) {
  const size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << text << " lacks " << before;
  return at == std::string::npos ? 0 : std::stod(text.substr(at + before.size()));
}

// With five seeds 0.943 to 0.966 of the nodes and 0.85 to 0.93 of the roots were right. Label 2 for
// all would be right for 0.48 and 0.32.
TEST(SentimentExample, Trains) {
  const TempFolder folder;
  const Finished result = run(train(folder / "out", {"--trees=1000", "--epoch=20"}));
  ASSERT_EQ(result.status, 0) << result.all();
  EXPECT_GT(number_behind(result.out, "test accuracy of nodes "), 0.9) << result.out;
  EXPECT_GT(number_behind(result.out, "test accuracy of roots "), 0.75) << result.out;
  expect_contains(read_file(folder / "out/log.json"), {"train_loss", "dev_nodes", "dev_roots"});
  EXPECT_EQ(load_npz(folder / "out/model.npz").at("l/W").shape(), (Shape{30, 60}));
}

TEST(SentimentExample, TrainsOnFiles) {
  const TreeFiles files;
  const TempFolder folder;
  const Finished result =
      run(train(folder / "out", {"--data=" + files.path(), "--epoch=60", "--unit=8"}));
  ASSERT_EQ(result.status, 0) << result.all();
  expect_contains(result.out, {"3 trees of training with 9 nodes, 7 words", "(2 It)",
                               "test accuracy of nodes 1.0000 (9 of 9)",
                               "test accuracy of roots 1.0000 (3 of 3)"});
}

#ifdef CATENA_RUN
TEST(SentimentExample, RanksTrainAsOneProcess) {
  const TempFolder folder;
  const Words few{"--trees=90", "--epoch=2", "--epocheval=1"};  // a last batch of 15
  Words many = train(folder / "many", few);
  many.erase(many.begin() + 1);
  const Finished one = run(train(folder / "one", few)), three = run(on_ranks(3, many));
  ASSERT_EQ(one.status, 0) << one.all();
  ASSERT_EQ(three.status, 0) << three.all();
  expect_equal_arrays(folder / "one/model.npz", folder / "many/model.npz", 1e-3);
  EXPECT_EQ(one.last_line(), three.last_line());
}
#endif

TEST(SentimentExample, SaysWhatIsWrong) {
  const TempFolder folder;
  const auto problem = [&](const Words& more) {
    const Finished result = run(train(folder / "out", more));
    EXPECT_NE(result.status, 0) << result.all();
    EXPECT_LT(result.status, 128) << result.all();
    return result.err;
  };
  expect_contains(problem({"--data=" + (folder / "no")}), {"there is no folder '", "train.txt"});
  expect_contains(problem({"--label=3"}), {"--label 3", "at least 5"});
  expect_contains(problem({"--trees=0"}), {"--trees", "above 0"});
  expect_contains(problem({"--data=x", "--trees=3"}), {"--data", "--trees"});
}

}  // namespace
}  // namespace catena::test
