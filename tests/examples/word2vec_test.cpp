// Words that stand in like places get vectors in like directions, by each model and loss, and over
// ranks as in one process.
#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/testing.h"
#include "error_text.h"
#include "examples.h"
#include "word2vec/vectors.h"

namespace catena::test {
namespace {

// Animals and vehicles, each with verbs of its own.
std::string two_topics(int lines) {
  const std::vector<Words> topics{{"cat", "dog", "horse", "sleeps", "eats", "drinks"},
                                  {"car", "bus", "train", "stops", "turns", "starts"}};
  std::mt19937 random(11);
  std::string text;
  for (int i = 0; i < lines; ++i) {
    const Words& words = topics[random() % 2];
    for (int k = 0; k < 2; ++k)
      text += "the " + words[random() % 3] + " " + words[3 + random() % 3] + " ";
    text += "\n";
  }
  return text;
}

class Word2vecExample : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  Word2vecExample() { write_file(folder_ / "text.txt", two_topics(500)); }
  Words train(const std::string& out, const Words& more = {}) const {
    return with({program("train_word2vec"), "--device=cpu", "--unit=16", "--window=2", "--epoch=20",
                 "--data=" + (folder_ / "text.txt"), "--out=" + out},
                more);
  }
  TempFolder folder_;
};

TEST_P(Word2vecExample, LikeWordsAreClose) {
  const auto& [model, out_type] = GetParam();
  const std::string out = folder_ / "out";
  const Finished result = run(train(out, {std::string("--model=") + model,
                                          std::string("--out-type=") + out_type, "--negative=2"}));
  ASSERT_EQ(result.status, 0) << result.all();
  const word2vec::Vectors vectors = word2vec::load_vectors(out);
  const std::vector<Words> alike{{"cat", "dog", "horse"}, {"bus", "car", "train"}};
  for (const Words& group : alike) {
    for (const std::string& word : group) {
      Words found{word};
      for (const auto& [other, cosine] : word2vec::neighbours_of(vectors, word, 2))
        found.push_back(other);
      std::sort(found.begin(), found.end());
      EXPECT_EQ(found, group) << word;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, Word2vecExample,
                         ::testing::Combine(::testing::Values("skipgram", "cbow"),
                                            ::testing::Values("hsm", "ns", "original")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::get<1>(info.param);
                         });

class Word2vecRuns : public Word2vecExample {};

TEST_F(Word2vecRuns, SearchReadsWhatTrainingWrote) {
  const std::string out = folder_ / "out";
  ASSERT_EQ(run(train(out, {"--overwrite"})).status, 0);
  const Finished found =
      run({"/bin/sh", "-c", "echo cat nonsense | " + program("search_word2vec") + " " + out});
  EXPECT_EQ(found.status, 0) << found.all();
  expect_contains(found.out, {"cat\n  ", "'nonsense' is not in the vocabulary"});
  const Finished nothing = run({program("search_word2vec"), folder_ / "nowhere"});
  EXPECT_EQ(nothing.status, 1);
  expect_contains(nothing.err, {"nowhere/vectors.npy"});
  EXPECT_EQ(run({program("search_word2vec")}).status, 2);
}

TEST_F(Word2vecRuns, FilesOfTwoRunsDoNotFit) {
  word2vec::save_vectors(folder_.path(), {"a", "b"}, zeros({3, 2}, {dtype::float32, cpu()}));
  expect_contains(error_of<IoError>([&] { word2vec::load_vectors(folder_.path()); }),
                  {"(3, 2)", "2 words", "one run"});
}

// Skip-gram with hierarchical softmax draws nothing but the windows, which ranks draw alike.
#ifdef CATENA_RUN
TEST_F(Word2vecRuns, RanksTrainAsOneProcess) {
  const auto vectors_of = [&](const Words& words, const std::string& out) {
    const Finished result = run(words);
    EXPECT_EQ(result.status, 0) << result.all();
    return load(out + "/vectors.npy");
  };
  const Words few{"--epoch=1"};
  Words one = train(folder_ / "one"), three = train(folder_ / "three");
  for (Words* words : {&one, &three})
    for (std::string& word : *words)
      if (word == "--epoch=20") word = few[0];
  const Array a = vectors_of(one, folder_ / "one"),
              b = vectors_of(on_ranks(3, three), folder_ / "three");
  EXPECT_EQ(testing::difference(a, b, 1e-3, 1e-4), "");
}
#endif

TEST_F(Word2vecRuns, SayWhatIsWrong) {
  write_file(folder_ / "short.txt", "a b c\n");
  const auto problem = [&](const Words& more) {
    const Finished result =
        run(with({program("train_word2vec"), "--device=cpu", "--out=" + (folder_ / "out"),
                  "--data=" + (folder_ / "short.txt")},
                 more));
    EXPECT_NE(result.status, 0) << result.all();
    return result.err;
  };
  expect_contains(problem({}), {"too few for a window of 5 words"});
  expect_contains(problem({"--window=4611686018427387904"}), {"too few for a window of 46116"});
  expect_contains(problem({"--model=glove"}), {"--model", "skipgram"});
  expect_contains(problem({"--out-type=none"}), {"--out-type", "hsm"});
}

}  // namespace
}  // namespace catena::test
