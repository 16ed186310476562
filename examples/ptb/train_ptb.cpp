// Trains a language model on one device, or on the ranks that catena-run started.
#include <cmath>
#include <cstdio>

#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "catena/core/printable.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/sgd.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/serializers/npz.h"
#include "common/corpus.h"
#include "options.h"
#include "training.h"

namespace ptb {
namespace {

namespace ds = catena::datasets;
namespace tr = catena::training;

// Batches of a text that is on the device as a whole.
ds::ResidentIterator batches_of(const std::vector<int32_t>& text, const std::string& what,
                                const Options& options, catena::Communicator& comm, bool repeat) {
  const ds::DatasetPtr windows = windows_of(text, options.run.batch, options.window, what);
  return {windows,
          ds::SerialIterator(windows->size(), options.run.batch, {.repeat = repeat}),
          comm.device(),
          {comm.rank(), comm.size()}};
}

// The rate of an epoch: the first six have the same.
catena::optimizers::Schedule rate_of(const Options& options) {
  return [=](int64_t epoch) {
    return options.lr / std::pow(options.decay, std::max<double>(0, double(epoch) - 5));
  };
}

// This rank's streams.
int64_t streams_here(const Options& options, const catena::Communicator& comm) {
  CATENA_CHECK(ValueError, options.run.batch % comm.size() == 0, "--batchsize ", options.run.batch,
               " cannot be divided evenly among ", comm.size(),
               " ranks; give a multiple of their number");
  return ds::scatter(options.run.batch, {comm.rank(), comm.size()}).size();
}

void say_what(const examples::Corpus& corpus, const catena::Communicator& comm) {
  if (comm.rank() != 0) return;
  std::printf("%s: %zu words, of which %zu are in the vocabulary\n", corpus.source.c_str(),
              corpus.train.size() + corpus.valid.size() + corpus.test.size(),
              corpus.vocabulary.size());
}

int body(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const catena::CommunicatorPtr comm = examples::begin(options.run);
  const catena::DeviceScope device(comm->device());
  const examples::Corpus corpus = examples::load_corpus(options.data, options.vocabulary);
  say_what(corpus, *comm);
  ds::ResidentIterator train = batches_of(corpus.train, "the training text", options, *comm, true),
                       valid =
                           batches_of(corpus.valid, "the validation text", options, *comm, false),
                       test = batches_of(corpus.test, "the test text", options, *comm, false);

  catena::random::seed(options.run.seed);
  LanguageModel model(
      {static_cast<int64_t>(corpus.vocabulary.size()), options.units, options.dropout},
      streams_here(options, *comm));
  catena::optimizers::SGD rule(options.lr);
  rule.add_hook("clipping", catena::optimizers::gradient_clipping(options.clip));
  auto optimizer = catena::create_multi_node_optimizer(rule, comm);
  optimizer.setup(model);

  const auto score = [&](const ds::Batch& batch) { return score_of(model, batch); };
  const auto updater =
      examples::make_updater(options.run, train, optimizer, tr::make_step(optimizer, score));
  tr::Trainer trainer(*updater, model, optimizer,
                      examples::trainer_options(options.run, {"loss", "cross_entropy"}));
  trainer.observe("valid_perplexity", [&] { return perplexity_of(model, valid, *comm); });
  trainer.schedule(rate_of(options));
  if (!examples::run(options.run, trainer, *comm)) return 0;

  const double perplexity = perplexity_of(model, test, *comm);
  if (comm->rank() != 0) return 0;
  catena::serializers::save(options.run.out + "/model.npz", model);
  std::printf("test perplexity %.2f\n", perplexity);
  if (options.sample > 0)
    std::printf("%s\n",
                catena::printable(sample(model, corpus.vocabulary, options.sample)).c_str());
  return 0;
}

}  // namespace
}  // namespace ptb

int main(int argc, char** argv) { return catena::run_main(argc, argv, ptb::body); }
