// Learns vectors of words on one device, or on the ranks that catena-run started.
#include <chrono>
#include <cstdio>
#include <numeric>
#include <random>

#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "catena/datasets/prefetch.h"
#include "catena/functions/math.h"
#include "catena/optimizers/adam.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/training/trainer.h"
#include "common/corpus.h"
#include "model.h"
#include "options.h"
#include "vectors.h"

namespace word2vec {
namespace {

namespace ds = catena::datasets;
namespace tr = catena::training;
using catena::dtype::int32;

// The places in a text of `words` words that have a whole window around them, as a data set.
ds::DatasetPtr middles_of(int64_t words, int64_t window) {
  CATENA_CHECK(ValueError, window < words && words > 2 * window, "the text has ", words,
               " words, too few for a window of ", window, " words on each side");
  return std::make_shared<ds::TupleDataset>(
      std::vector<Array>{catena::arange(window, words - window, 1, int32)});
}

// The text on a device, and windows of it. Each batch has a width of its own, so that close words
// count more than distant ones, as in the original; it follows from seed and place alone, so that
// all ranks have the same.
class WindowReader {
 public:
  WindowReader(const std::vector<int32_t>& words, catena::Device device, const Options& options)
      : text_(catena::array(words).astype(int32).to(device)), options_(options) {}
  Windows of(const ds::Batch& batch) const {
    const int64_t width = width_of(batch.place.after), count = batch.x().length();
    std::vector<int32_t> offsets;
    for (int64_t offset = -width; offset <= width; ++offset)
      if (offset != 0) offsets.push_back(static_cast<int32_t>(offset));
    const Array around = catena::add(batch.x().reshape({count, 1}),
                                     catena::array(offsets).astype(int32).to(text_.device()));
    return {catena::take(text_, batch.x()), catena::take(text_, around)};
  }

 private:
  int64_t width_of(const ds::IteratorState& place) const {
    std::seed_seq seed{uint32_t(options_.run.seed), uint32_t(place.epoch),
                       uint32_t(place.position)};
    std::mt19937 random(seed);
    return 1 + static_cast<int64_t>(random() % uint64_t(options_.window));
  }

  Array text_;
  Options options_;
};

std::vector<double> counts_of(const std::vector<int32_t>& text, size_t words) {
  std::vector<double> counts(words);
  for (const int32_t word : text) ++counts[size_t(word)];
  return counts;
}

// Words a second since the last row.
class Speed {
 public:
  explicit Speed(const tr::Trainer& trainer, int64_t batch) : trainer_(trainer), batch_(batch) {}
  double operator()() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    const auto words = static_cast<double>((trainer_.iteration() - iteration_) * batch_);
    last_ = now;
    iteration_ = trainer_.iteration();
    return words / seconds;
  }

 private:
  const tr::Trainer& trainer_;
  int64_t batch_, iteration_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

int body(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const catena::CommunicatorPtr comm = examples::begin(options.run);
  const catena::DeviceScope device(comm->device());
  const examples::Corpus corpus = examples::load_corpus(options.data, options.vocabulary);
  if (comm->rank() == 0)
    std::printf("%s: %zu words of training, %zu in the vocabulary\n", corpus.source.c_str(),
                corpus.train.size(), corpus.vocabulary.size());
  const ds::DatasetPtr middles =
      middles_of(static_cast<int64_t>(corpus.train.size()), options.window);
  ds::ResidentIterator batches(
      middles, ds::ShuffledIterator(middles->size(), options.run.batch, options.run.seed),
      comm->device(), {comm->rank(), comm->size()});
  const WindowReader reader(corpus.train, comm->device(), options);

  catena::random::seed(options.run.seed);
  Model model({options.model, options.out_type, options.units, options.negative,
               counts_of(corpus.train, corpus.vocabulary.size())});
  auto optimizer = catena::create_multi_node_optimizer(catena::optimizers::Adam(), comm);
  optimizer.setup(model);
  // The loss of a middle, and that of one guess, which does not depend on the width.
  const auto score = [&](const ds::Batch& batch) -> catena::Variables {
    const Windows windows = reader.of(batch);
    const Variable loss = model(windows);
    return {loss, loss / static_cast<double>(model.losses_of(windows))};
  };
  tr::StandardUpdater updater(batches, tr::make_step(optimizer, score));
  tr::Trainer trainer(updater, model, optimizer,
                      examples::trainer_options(options.run, {"loss", "guess"}));
  Speed speed(trainer, options.run.batch);
  trainer.observe("words_per_second", std::ref(speed));
  if (examples::run(options.run, trainer, *comm) && comm->rank() == 0) {
    save_vectors(options.run.out, corpus.vocabulary, model.embed.W.data());
    std::printf("vectors of %zu words are in '%s'; try: echo king | search_word2vec %s\n",
                corpus.vocabulary.size(), options.run.out.c_str(), options.run.out.c_str());
  }
  return 0;
}

}  // namespace
}  // namespace word2vec

int main(int argc, char** argv) { return catena::run_main(argc, argv, word2vec::body); }
