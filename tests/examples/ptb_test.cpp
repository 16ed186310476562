// The language model: text becomes windows in the order of its words, training finds what is
// regular in it, over ranks as in one process, and says what is wrong with a text.
#include <gtest/gtest.h>

#include <filesystem>

#include "catena/array/io.h"
#include "catena/array/math.h"
#include "catena/comm/factory.h"
#include "catena/testing.h"
#include "common/corpus.h"
#include "error_text.h"
#include "examples.h"
#include "ptb/training.h"

namespace catena::test {
namespace {

// Lines of four words, of which each but the first follows from the one before it.
std::string regular_text(int lines) {
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < lines; ++i) {
    const auto first = static_cast<char>('a' + random() % 4);
    for (int k = 0; k < 4; ++k) text += std::string(1, static_cast<char>(first + 4 * k)) + " ";
    text += "\n";
  }
  return text;
}

class Text {
 public:
  explicit Text(int lines = 400) { write_file(path(), regular_text(lines)); }
  std::string path() const { return folder_ / "text.txt"; }

 private:
  TempFolder folder_;
};

struct How {
  const char* epochs = "6";
  const char* dropout = "0.1";
  Words more = {};
};

Words train(const Text& text, const std::string& out, const How& how = {}) {
  return with({program("train_ptb"), "--device=cpu", "--unit=16", "--batchsize=4", "--window=5",
               "--data=" + text.path(), "--out=" + out, std::string("--epoch=") + how.epochs,
               std::string("--dropout=") + how.dropout},
              how.more);
}

double perplexity(const Finished& result) { return number_behind("test perplexity ", result); }

TEST(PtbExample, CutsLinesIntoWords) {
  EXPECT_EQ(examples::cut_into_words("  And God said, \"Let there be Light\": don't!"),
            (Words{"and", "god", "said", ",", "\"", "let", "there", "be", "light", "\"", ":",
                   "don't", "!"}));
  EXPECT_EQ(examples::cut_into_words("Z\xc3\xbcrich 8001"), (Words{"z\xc3\xbcrich", "8001"}));
  EXPECT_EQ(examples::cut_into_words(" \t "), Words{});
}

TEST(PtbExample, KeepsTheMostFrequentWords) {
  const TempFolder folder;
  write_file(folder / "ptb.train.txt", "b a a c\n\na b d\n");
  write_file(folder / "ptb.valid.txt", "a x\n");
  write_file(folder / "ptb.test.txt", "b\n");
  const examples::Corpus corpus = examples::load_corpus(folder.path(), 5);
  EXPECT_EQ(corpus.vocabulary, (Words{"<eos>", "<unk>", "a", "b", "c"}));
  EXPECT_EQ(corpus.train, (std::vector<int32_t>{3, 2, 2, 4, 0, 2, 3, 1, 0}));
  EXPECT_EQ(corpus.valid, (std::vector<int32_t>{2, 1, 0}));
  EXPECT_EQ(corpus.test, (std::vector<int32_t>{3, 0}));
}

// Two streams of 7 and windows of 3: stream 0 has words 0 to 5, stream 1 words 6 to 11.
TEST(PtbExample, WindowsGoOnWhereTheLastOnesEnded) {
  std::vector<int32_t> text(14);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<int32_t>(i);
  const datasets::Arrays all = ptb::windows_of(text, 2, 3, "it")->all();
  const auto words = [](std::initializer_list<std::initializer_list<int>> rows) {
    return array(rows).astype(dtype::int32);
  };
  EXPECT_EQ(testing::difference(all[0], words({{0, 1, 2}, {6, 7, 8}, {3, 4, 5}, {9, 10, 11}})), "");
  EXPECT_EQ(testing::difference(all[1], words({{1, 2, 3}, {7, 8, 9}, {4, 5, 6}, {10, 11, 12}})),
            "");
  expect_contains(error_of<ValueError>([&] { ptb::windows_of(text, 5, 3, "the test text"); }),
                  {"the test text has 14 words", "5 streams of a window of 3 words"});
}

// Each window begins with the state in which the one before it ended.
TEST(PtbExample, ThePerplexityDoesNotDependOnTheWindow) {
  std::vector<int32_t> words(33);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<int32_t>(i * i % 5);
  random::seed(1);
  ptb::LanguageModel model({5, 4, 0}, 2);
  for (Parameter& p : model.parameters()) p.copy_from(p.data() * 20);  // so that states count
  comm::run_threads(1, [&](Communicator& comm) {
    const auto perplexity_by = [&](int64_t window) {
      const datasets::DatasetPtr windows = ptb::windows_of(words, 2, window, "it");
      datasets::ResidentIterator batches(windows, datasets::SerialIterator(windows->size(), 2),
                                         cpu(0));
      return ptb::perplexity_of(model, batches, comm);
    };
    EXPECT_NEAR(perplexity_by(2) / perplexity_by(8), 1, 1e-5);
  });
}

// By chance a word of 17 is right: the first of a line has four choices, the others none, so that
// nobody can do better than 4^(1/5) = 1.32.
TEST(PtbExample, FindsWhatIsRegular) {
  const Text text;
  const TempFolder out;
  const Finished result = run(train(text, out / "out", {.epochs = "10", .more = {"--sample=40"}}));
  const double found = perplexity(result);
  EXPECT_GT(found, 1.3);
  EXPECT_LT(found, 1.6) << result.all();
  EXPECT_NE(result.out.find("valid perplexity"), std::string::npos) << result.all();
  EXPECT_NE(result.out.find("are in the vocabulary"), std::string::npos);
  // What it writes is regular as well.
  EXPECT_TRUE(std::regex_search(result.out, std::regex("\n(a e i m|b f j n|c g k o|d h l p) \n")))
      << result.all();
}

TEST(PtbExample, GoesOnAsIfItHadNotEnded) {
  const Text text;
  const TempFolder out;
  const double whole = perplexity(run(train(text, out / "whole", {.epochs = "3"})));
  const double early = perplexity(run(train(text, out / "parts", {.epochs = "1"})));
  EXPECT_NE(early, whole);
  EXPECT_EQ(perplexity(run(train(text, out / "parts", {.epochs = "3", .more = {"--resume"}}))),
            whole);
  expect_equal_arrays(out / "whole/model.npz", out / "parts/model.npz");
  const Finished again = run(train(text, out / "parts"));
  EXPECT_EQ(again.status, 1);
  EXPECT_NE(again.err.find("--overwrite"), std::string::npos) << again.err;
}

#ifdef CATENA_RUN
// Each rank reads its share of the streams.
TEST(PtbExample, RanksTrainAsOneProcess) {
  const Text text;
  const TempFolder out;
  const How exact{.epochs = "2", .dropout = "0"};
  EXPECT_NEAR(perplexity(run(train(text, out / "one", exact))),
              perplexity(run(on_ranks(2, train(text, out / "two", exact)))), 0.011);
  const auto a = load_npz(out / "one/model.npz"), b = load_npz(out / "two/model.npz");
  for (const auto& [name, array] : a) {
    if (name == "h" || name == "c") continue;  // of the rank's own streams
    EXPECT_EQ(testing::difference(b.at(name), array, 1e-4, 1e-4), "") << name;
  }
}
#endif

TEST(PtbExample, SaysWhatIsWrongWithATextOrAnOption) {
  const TempFolder folder;
  const auto problem = [&](const std::string& data, const Words& more = {}) {
    const Finished result =
        run(with({program("train_ptb"), "--data", data, "--out", folder / "out"}, more));
    EXPECT_NE(result.status, 0) << result.all();
    return result.err;
  };
  const auto expect = [](const std::string& text, std::initializer_list<const char*> parts) {
    expect_contains(text, parts);
  };
  expect(problem(folder / "nothing"), {"there is no '", "nothing'"});
  std::filesystem::create_directory(folder / "half");
  write_file(folder / "half/ptb.train.txt", "a b\n");
  expect(problem(folder / "half"), {"has no ptb.valid.txt", "ptb.train.txt, ptb.valid.txt"});
  write_file(folder / "empty.txt", "\n\n");
  expect(problem(folder / "empty.txt"), {"empty.txt' has no words"});
  write_file(folder / "short.txt", regular_text(3));
  expect(problem(folder / "short.txt"), {"the training text has", "too few for 20 streams"});
  expect(problem(folder / "short.txt", {"--batchsize", "0"}),
         {"--batchsize", "not a whole number above 0"});
  expect(problem(folder / "short.txt", {"--dropout", "1"}), {"from 0 to below 1"});
  expect(problem(folder / "short.txt", {"--device", "cuda:63"}), {"cuda:63"});
#ifdef CATENA_RUN
  const Text text;
  const Finished odd = run({CATENA_RUN, "-n", "3", "--cpu", program("train_ptb"), "--window=2",
                            "--data", text.path(), "--out", folder / "out"});
  expect(odd.err, {"--batchsize 20 cannot be divided evenly among 3 ranks"});
#endif
  const Finished none = run({"/usr/bin/env", "PATH=/nowhere", program("train_ptb"), "--out",
                             folder / "out", "--device", "cpu"});
  EXPECT_EQ(none.status, 1);
  expect(none.err, {"there is no text", "apt-get install bible-kjv", "--data"});
}

}  // namespace
}  // namespace catena::test
