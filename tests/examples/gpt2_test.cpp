// The GPT-2: windows of texts and token files, training that finds what is regular, over ranks as
// in one process, samples, and what it says of wrong files and options.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/array/sorting.h"
#include "catena/testing.h"
#include "error_text.h"
#include "examples.h"
#include "gpt2/model.h"
#include "gpt2/sampling.h"
#include "gpt2/tokens.h"

namespace catena::test {
namespace {

// The alphabet, again and again: each letter follows from the one before it.
std::string alphabets(int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += "abcdefghijklmnopqrstuvwxyz\n";
  return text;
}

// Token numbers as the program reads them.
std::string bytes_of(const std::vector<int>& tokens) {
  std::string bytes;
  for (const int token : tokens)
    bytes += {static_cast<char>(token & 255), static_cast<char>(token >> 8)};
  return bytes;
}

class AlphabetText {
 public:
  explicit AlphabetText(const std::string& text = alphabets(60)) { write_file(path(), text); }
  std::string path() const { return folder_ / "text.txt"; }

 private:
  TempFolder folder_;
};

Words train_alphabet(const AlphabetText& text, const std::string& out, const Words& more = {}) {
  return with({program("train_gpt2"), "--device=cpu", "--size=nano", "--context=16",
               "--batchsize=4", "--lr=0.002", "--warmup=2", "--text", text.path(), "--out", out},
              more);
}

double validation_loss(const Finished& result) { return number_behind("validation loss ", result); }

Array bytes_in_order(int64_t count) { return arange(count, {dtype::uint8, cpu()}); }

gpt2::Gpt2 small_model(uint64_t seed = 1) {
  random::seed(seed);
  return gpt2::Gpt2({.vocabulary = 10, .positions = 6, .layers = 2, .width = 64});
}

TEST(Gpt2Example, WindowsOverlapByOneToken) {
  const gpt2::Windows windows(bytes_in_order(12), 4, "it");
  ASSERT_EQ(windows.size(), 2);
  const Array all = windows.all()[0];
  EXPECT_EQ(
      testing::difference(all, array({{0, 1, 2, 3, 4}, {4, 5, 6, 7, 8}}).astype(dtype::uint8)), "");
  EXPECT_EQ(testing::difference(gpt2::Windows(bytes_in_order(12)(Slice(5, 10)), 4, "it").all()[0],
                                array({{5, 6, 7, 8, 9}}).astype(dtype::uint8)),
            "");  // of a part of a text
  EXPECT_EQ(gpt2::Windows(bytes_in_order(13), 4, "it").size(), 3);
  EXPECT_EQ(gpt2::Windows(bytes_in_order(13), 4, "it", 2).size(), 2);
  expect_contains(
      error_of<ValueError>([] { gpt2::Windows(bytes_in_order(4), 4, "the validation text"); }),
      {"the validation text has 4 tokens", "window of 4"});
}

TEST(Gpt2Example, ReadsBytesAndTokenNumbers) {
  const TempFolder folder;
  write_file(folder / "a", "ab");
  write_file(folder / "b", "\xff");
  EXPECT_EQ(gpt2::read_bytes({folder / "a", folder / "b"}).to_vector<uint8_t>(),
            (std::vector<uint8_t>{97, 98, 255}));
  write_file(folder / "tokens", bytes_of({1, 258, 0, 40000}));
  EXPECT_EQ(gpt2::map_tokens(folder / "tokens", 50257).to_vector<uint16_t>(),
            (std::vector<uint16_t>{1, 258, 0, 40000}));
}

// Scores behind a token do not depend on the tokens that follow it, and begin alike.
TEST(Gpt2Example, LooksBackOnly) {
  const gpt2::Gpt2 model = small_model();
  const Array a = model(array({{1, 2, 3, 4, 5, 6}})).data()(0),
              b = model(array({{1, 2, 3, 9, 8, 7}})).data()(0);
  EXPECT_EQ(a.shape(), (Shape{6, 10}));
  EXPECT_EQ(testing::difference(a(Slice(0, 3)), b(Slice(0, 3)), 1e-6, 1e-6), "");
  EXPECT_NE(testing::difference(a(Slice(3, 6)), b(Slice(3, 6)), 1e-6, 1e-6), "");
  expect_contains(error_of<ValueError>([&] {
                    model(zeros({1, 7}, dtype::int32));
                  }),
                  {"6 positions", "7 tokens"});
}

TEST(Gpt2Example, StartsSmallerWhereLayersAddUp) {
  random::seed(1);
  const gpt2::Gpt2 model({.layers = 2, .width = 128});
  const auto deviation = [](const Array& w) { return std::sqrt(mean(square(w)).item<double>()); };
  EXPECT_NEAR(deviation(model.tokens.W.data()), 0.02, 0.001);
  EXPECT_NEAR(deviation(model.layers[1].self_attn.in_proj_W.data()), 0.02, 0.001);
  EXPECT_NEAR(deviation(model.layers[1].self_attn.out_proj.W.data()), 0.01, 0.001);
  EXPECT_NEAR(deviation(model.layers[0].linear2.W.data()), 0.01, 0.001);
  EXPECT_EQ(deviation(model.layers[0].linear2.b.data()), 0);
}

// Greedy without a temperature and of one candidate; else by the seed.
TEST(Gpt2Example, Samples) {
  gpt2::Gpt2 model = small_model();
  for (Parameter& p : model.parameters()) p.copy_from(p.data() * 5);  // so that choices differ
  const auto greedy = gpt2::sample(model, {3}, 12, {.temperature = 0});
  EXPECT_EQ(greedy.size(), 12u);  // more than there are positions
  EXPECT_EQ(gpt2::sample(model, {3}, 12, {.top_k = 1}), greedy);
  // Before and after the model has no more positions, and from prompts of several tokens.
  for (const std::vector<int64_t>& prompt :
       {std::vector<int64_t>{3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5, 6}, {9, 8, 7, 6, 5, 4, 3, 2}})
    EXPECT_EQ(gpt2::sample(model, prompt, 12, {.temperature = 0}),
              gpt2::sample(model, prompt, 12, {.temperature = 0, .cache = false}));
  const auto drawn = [&](uint64_t seed, const gpt2::Choice& choice) {
    random::seed(seed);
    return gpt2::sample(model, {3}, 50, choice);
  };
  EXPECT_EQ(drawn(1, {}), drawn(1, {}));
  EXPECT_NE(drawn(1, {}), drawn(2, {}));
  // As often as the model says, of the two likeliest.
  const Array scores = model(array({{3}})).data()(0)(0).astype(dtype::float64);
  const auto order = argsort(scores).to_vector<int64_t>();
  const int64_t first = order[9], second = order[8];
  const double odds = std::exp((scores(second) - scores(first)).item<double>() / 2);
  random::seed(7);
  int firsts = 0;
  for (int i = 0; i < 400; ++i) {
    const int64_t one = gpt2::sample(model, {3}, 1, {.temperature = 2, .top_k = 2})[0];
    EXPECT_TRUE(one == first || one == second);
    firsts += one == first;
  }
  EXPECT_NEAR(firsts / 400., 1 / (1 + odds), 0.1);  // four deviations, of equal odds
}

TEST(Gpt2Example, PromptsAreBytesOrNumbers) {
  EXPECT_EQ(gpt2::tokens_of("a\xff", 256), (std::vector<int64_t>{97, 255}));
  EXPECT_EQ(gpt2::tokens_of("", 256), (std::vector<int64_t>{'\n'}));
  EXPECT_EQ(gpt2::tokens_of(" 7 0 ", 10), (std::vector<int64_t>{7, 0}));
  EXPECT_EQ(gpt2::tokens_of("", 10), (std::vector<int64_t>{0}));
  EXPECT_EQ(gpt2::text_of({104, 105}, 256), "hi");
  EXPECT_EQ(gpt2::text_of({7, 0}, 10), "7 0");
  for (const char* wrong : {"10", "-1", "x", "3x"})
    expect_contains(error_of<ValueError>([&] { gpt2::tokens_of(wrong, 10); }),
                    {wrong, "10 tokens"});
}

TEST(Gpt2Example, FindsWhatIsRegular) {
  const AlphabetText text;
  const TempFolder out;
  const Finished result = run(train_alphabet(
      text, out / "out", {"--iterations=80", "--sample=8", "--prompt=xyz", "--temperature=0"}));
  EXPECT_LT(validation_loss(result), 0.6) << result.all();  // by chance: 5.5
  expect_contains(result.out, {"431616 parameters", "test loss", "bits a byte", "tokens/s "});
  expect_contains(result.out, {"xyz\nabcdefg\n"});
  // The same from the file.
  const Finished later = run({program("train_gpt2"), "--device=cpu", "--out", out / "out",
                              "--sample=8", "--prompt=xyz", "--temperature=0"});
  EXPECT_EQ(later.out, "xyz\nabcdefg\n") << later.all();
  expect_contains(later.err, {"8 tokens written, ", " a second"});
  const Finished anew = run({program("train_gpt2"), "--device=cpu", "--out", out / "out",
                             "--sample=8", "--prompt=xyz", "--temperature=0", "--no-cache"});
  EXPECT_EQ(anew.out, later.out) << anew.all();
  // Begun with it, training goes on from there.
  Words words =
      train_alphabet(text, out / "more", {"--iterations=4", "--start", out / "out/model.npz"});
  std::erase(words, "--size=nano");
  EXPECT_LT(validation_loss(run(words)), 0.7);
}

TEST(Gpt2Example, GoesOnAsIfItHadNotEnded) {
  const AlphabetText text;
  const TempFolder out;
  const Words part{"--iterations=3", "--decay-iterations=8", "--dropout=0.1"};
  const Words whole{"--iterations=8", "--dropout=0.1"};
  const double loss = validation_loss(run(train_alphabet(text, out / "whole", whole)));
  EXPECT_NE(validation_loss(run(train_alphabet(text, out / "parts", part))), loss);
  EXPECT_EQ(validation_loss(run(train_alphabet(text, out / "parts", with(whole, {"--resume"})))),
            loss);
  expect_equal_arrays(out / "whole/model.npz", out / "parts/model.npz");
  const Finished again = run(train_alphabet(text, out / "parts", whole));
  EXPECT_EQ(again.status, 1);
  expect_contains(again.err, {"--overwrite"});
}

TEST(Gpt2Example, CtrlCSaves) {
  const AlphabetText text;
  const TempFolder out;
  const auto words = [&](const Words& more) {
    return with(train_alphabet(text, out / "out", more), {"--report=1", "--valid-batches=1"});
  };
  const Finished result = run(words({"--iterations=1000000", "--decay-iterations=100"}),
                              {.signal = SIGINT, .once = out / "out/log.json"});
  EXPECT_EQ(result.status, 0) << result.all();
  expect_contains(result.out, {"stopped by Ctrl-C after update ", "go on with --resume"});
  const Finished rest = run(words({"--iterations=1", "--resume"}));
  EXPECT_GT(validation_loss(rest), 0);
  expect_contains(rest.out, {"nothing is left to do"});
}

// Those of the other programs, but for epochs.
TEST(Gpt2Example, HasTheOptionsOfAllPrograms) {
  expect_contains(
      run({program("train_gpt2"), "--help"}).out,
      {"-d,--device ", "-g,--gpu ", "-i,--iterations ", "-b,--batchsize ", "--seed ", "-o,--out ",
       "--resume", "--overwrite", "--report ", "--async-checkpoints", "--graph"});
}

TEST(Gpt2Example, TrainsIn16Bits) {
  const AlphabetText text;
  const TempFolder out;
  const Words short_run{"--iterations=12"};
  const double loss = validation_loss(run(train_alphabet(text, out / "float32", short_run)));
  for (const char* how : {"--dtype=bfloat16", "--autocast"})
    EXPECT_NEAR(validation_loss(run(train_alphabet(text, out / how, with(short_run, {how})))), loss,
                0.1);
  EXPECT_EQ(load_npz(out / "--autocast/model.npz").at("tokens/W").dtype(), dtype::float32);
  const Finished sample =
      run({program("train_gpt2"), "--device=cpu", "--sample=2", "--out", out / "--dtype=bfloat16"});
  EXPECT_EQ(sample.status, 0) << sample.all();
}

TEST(Gpt2Example, TrainsTheSameModelWithLessMemory) {
  const TempFolder out;
  const AlphabetText text;
  const Words few{"--iterations=3", "--dropout=0.1", "--valid-batches=1"};
  EXPECT_EQ(run(train_alphabet(text, out / "all", few)).status, 0);
  for (const Words& how :
       {Words{"--keep=products"}, Words{"--keep=attention"}, Words{"--keep=nothing"},
        Words{"--keep=nothing", "--offload"}, Words{"--memory-budget=1"}}) {
    SCOPED_TRACE(how.back());
    EXPECT_EQ(run(train_alphabet(text, out / how.back(), with(few, how))).status, 0);
    expect_equal_arrays(out / "all/model.npz", out / how.back() + "/model.npz");
  }
}

TEST(Gpt2Example, TrainsOnTokenNumbers) {
  const TempFolder folder;
  std::vector<int> tokens;
  for (int i = 0; i < 1200; ++i) tokens.push_back(i % 7 * 100);
  write_file(folder / "tokens", bytes_of(tokens));
  write_file(folder / "valid", bytes_of(std::vector<int>(tokens.begin(), tokens.begin() + 100)));
  const Finished result =
      run({program("train_gpt2"), "--device=cpu", "--size=nano", "--context=16", "--batchsize=4",
           "--lr=0.002", "--warmup=2", "--iterations=40", "--tokens", folder / "tokens",
           "--vocabulary=700", "--validation", folder / "valid", "--out", folder / "out",
           "--sample=3", "--prompt=100 200", "--temperature=0"});
  EXPECT_LT(validation_loss(result), 1);
  expect_contains(result.out, {"perplexity", "1200 tokens to train on", "\n100 200 300 400 500\n"});
}

TEST(Gpt2Example, MeasuresWithoutFiles) {
  const TempFolder folder;
  const Finished result =
      run({program("train_gpt2"), "--device=cpu", "--size=nano", "--context=16", "--batchsize=4",
           "--iterations=8", "--bench", "--vocabulary=300", "--out", folder / "out"});
  EXPECT_EQ(result.status, 0) << result.all();
  EXPECT_TRUE(std::regex_match(result.last_line(), std::regex("tokens/s [0-9]+"))) << result.all();
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

#ifdef CATENA_RUN
TEST(Gpt2Example, RanksTrainAsOneProcess) {
  const AlphabetText text;
  const TempFolder out;
  const Words more{"--iterations=8"};
  Words two = train_alphabet(text, out / "two", more);
  std::erase(two, "--device=cpu");
  EXPECT_NEAR(validation_loss(run(train_alphabet(text, out / "one", more))),
              validation_loss(run(on_ranks(2, two))), 1e-3);
  expect_equal_arrays(out / "one/model.npz", out / "two/model.npz", 1e-3);
}
#endif

// The script trains the same network and writes the same tokens, where CATENA_TEST_TORCH_PYTHON, or
// python3, has PyTorch.
TEST(Gpt2Example, HasPytorchsLossesAndTokens) {
  if (run_python("-c 'import numpy, torch'").status != 0)
    GTEST_SKIP() << torch_python()
                 << " has no PyTorch: losses and tokens are NOT compared; name another in "
                 << "CATENA_TEST_TORCH_PYTHON";
  const AlphabetText text(alphabets(200));
  const Finished result = run_python("'" GPT2_SCRIPT "' '" + program("train_gpt2") + "' '" +
                                     text.path() + "' --context 16 --iterations 20");
  EXPECT_EQ(result.status, 0) << result.all();
  expect_contains(result.out, {"equal tokens: 100"});
  expect_contains(result.last_line(), {"largest difference"});
}

TEST(Gpt2Example, SaysWhatIsWrong) {
  const TempFolder folder;
  const AlphabetText text;
  const auto problem = [&](const Words& words, const std::string& out = "out") {
    const Finished result =
        run(with({program("train_gpt2"), "--device=cpu", "--out", folder / out}, words));
    EXPECT_NE(result.status, 0) << result.all();
    return result.err;
  };
  const auto file = [&](const std::string& name, const std::string& bytes) {
    write_file(folder / name, bytes);
    return folder / name;
  };
  expect_contains(problem({}), {"--text or --tokens", "--sample"});
  expect_contains(problem({"--text", folder / "nothing"}), {"there is no '", "nothing'"});
  expect_contains(problem({"--text", folder.path()}), {"is not a file"});
  expect_contains(problem({"--text", text.path(), file("empty", "")}), {"empty' is empty"});
  expect_contains(problem({"--tokens", folder / "nothing"}), {"there is no '", "nothing'"});
  expect_contains(problem({"--tokens", folder / "empty"}), {"empty' is empty"});
  expect_contains(problem({"--tokens", file("odd", "abc")}), {"has 3 bytes"});
  expect_contains(problem({"--tokens", file("high", bytes_of({5, 50300})), "--vocabulary=50257"}),
                  {"the token 50300 at position 1", "--vocabulary is 50257"});
  expect_contains(problem({"--text", file("short", "abc")}),
                  {"the training text has 3 tokens", "--context"});
  expect_contains(problem({"--text", text.path(), "--context=16", "--batchsize=200"}),
                  {"fewer than the 200 of an update"});
  expect_contains(problem({"--text", text.path(), "--tokens", folder / "high"}), {"excludes"});
  expect_contains(problem({"--text", text.path(), "--size=huge"}), {"--size", "huge"});
  expect_contains(problem({"--text", text.path(), "--autocast", "--dtype=bfloat16"}),
                  {"--autocast", "float32"});
  expect_contains(problem({"--text", text.path(), "--keep=nothing", "--memory-budget=1"}),
                  {"excludes"});
  expect_contains(problem({"--text", text.path(), "--offload"}), {"--offload", "--keep nothing"});
  expect_contains(problem({"--text", text.path(), "--offload", "--keep=nothing", "--graph"}),
                  {"--offload", "leave --graph out"});
  expect_contains(problem({"--bench", "--context=256", "--memory-budget=1"}),
                  {"results of the 4 blocks alone take", "the budget is 1048576"});
  expect_contains(problem({"--sample=3"}), {"there is no model '", "out/model.npz'"});

  EXPECT_EQ(run(train_alphabet(text, folder / "made", {"--iterations=1"})).status, 0);
  const std::string model = folder / "made/model.npz";
  expect_contains(problem({"--sample=3", "--context=17"}, "made"),
                  {"--context 17", "16 positions", "model.npz'"});
  expect_contains(problem({"--text", text.path(), "--start", model, "--context=17"}),
                  {"--context 17", "16 positions", "model.npz'"});
  expect_contains(problem({"--tokens", folder / "high", "--vocabulary=60000", "--start", model}),
                  {"256 tokens", "60000"});
  Words longer_context = train_alphabet(text, folder / "made", {"--resume", "--iterations=2"});
  std::replace(longer_context.begin(), longer_context.end(), std::string("--context=16"),
               std::string("--context=32"));
  const Finished longer = run(longer_context);
  EXPECT_EQ(longer.status, 1) << longer.all();
  expect_contains(longer.err, {"places/W", "32", "16"});
}

}  // namespace
}  // namespace catena::test
