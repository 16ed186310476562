// Trains a translator on one device, or on the ranks that catena-run started, and translates lines
// with it.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>

#include "bleu.h"
#include "catena/array/random.h"
#include "catena/autograd/autocast.h"
#include "catena/comm/run_main.h"
#include "catena/core/dtype.h"
#include "catena/core/printable.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/schedules.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/serializers/npz.h"
#include "model.h"
#include "options.h"
#include "search.h"
#include "sentences.h"

namespace translation {
namespace {

namespace ds = catena::datasets;
namespace op = catena::optimizers;
namespace tr = catena::training;

// What to train on and what to validate on.
struct Data {
  Vocabulary vocabulary;
  std::vector<Pair> train, valid;
};

Data load_data(const Options& o, const catena::Communicator& comm) {
  Parallel train =
      o.reverse > 0 ? make_reversed(o.reverse, o.run.seed) : read_lines(o.source, o.target);
  const Parallel valid =
      o.valid_source.empty() ? hold_out(train, 20) : read_lines(o.valid_source, o.valid_target);
  const Vocabulary vocabulary({train.source, train.target}, o.kind(), o.vocabulary);
  Data data{vocabulary, pairs_of(train, vocabulary, o.longest),
            pairs_of(valid, vocabulary, o.longest)};
  CATENA_CHECK(ValueError, !data.train.empty() && !data.valid.empty(), "of ", train.source.size(),
               " pairs to train on and ", valid.source.size(), " to validate on ",
               data.train.size(), " and ", data.valid.size(), " have 1 to ", o.longest,
               " pieces in both languages; give more lines, or a larger --longest");
  if (comm.rank() == 0)
    std::printf("%zu of %zu pairs to train on, %zu of %zu to validate on, %lld pieces\n",
                data.train.size(), train.source.size(), data.valid.size(), valid.source.size(),
                static_cast<long long>(vocabulary.size()));
  return data;
}

ds::PrefetchIterator batches_of(const std::vector<Pair>& pairs, const ds::PositionIterator& order,
                                const catena::Communicator& comm) {
  return {dataset_of(pairs),
          order,
          comm.device(),
          {comm.rank(), comm.size()},
          {.collate = pad_with_nothing()}};
}

ds::PositionIterator training_order(const Options& o, const std::vector<Pair>& pairs) {
  if (o.in_order) return ds::SerialIterator(std::ssize(pairs), o.run.batch, {.repeat = true});
  return {std::make_shared<SimilarLengths>(pairs, o.run.batch),
          o.run.batch,
          {.repeat = true},
          o.run.seed};
}

tr::Score score_of(const Translator& model, const Options& o) {
  return [&model, smoothing = o.smoothing,
          autocast = o.autocast](const ds::Batch& batch) -> catena::Variables {
    std::optional<catena::AutocastScope> low;
    if (autocast) low.emplace(catena::dtype::bfloat16);
    return {loss_of(model, batch, smoothing)};
  };
}

// Lines of a file, or of standard input, translated to standard output.
void translate_lines(const Options& o, Translator& model, const Vocabulary& vocabulary) {
  std::ifstream file;
  if (o.translate != "-") {
    file.open(o.translate);
    CATENA_CHECK(IoError, file.good(), "--translate: '", o.translate, "' cannot be read");
  }
  std::istream& lines = o.translate == "-" ? std::cin : file;
  std::vector<Tokens> sentences;
  for (std::string line; std::getline(lines, line);)
    sentences.push_back(vocabulary.tokens_of(line));
  for (const Tokens& one : translate(model, sentences, o.beams, o.run.batch))
    std::printf("%s\n", catena::printable_line(vocabulary.text_of(one)).c_str());
}

// Translates the pairs that were not trained on, and shows some.
void say_how_good(const Options& o, Translator& model, const Data& data) {
  std::vector<Tokens> sources, targets;
  for (const Pair& pair : data.valid) {
    sources.push_back(pair.source);
    targets.push_back(pair.target);
  }
  const std::vector<Tokens> found = translate(model, sources, o.beams, o.run.batch);
  size_t exact = 0;
  for (size_t i = 0; i < found.size(); ++i) exact += found[i] == targets[i] ? 1 : 0;
  const auto text = [&](const Tokens& tokens) {
    return catena::printable_line(data.vocabulary.text_of(tokens));
  };
  for (size_t i = 0; i < std::min<size_t>(3, found.size()); ++i)
    std::printf("source      %s\nreference   %s\ntranslated  %s\n", text(sources[i]).c_str(),
                text(targets[i]).c_str(), text(found[i]).c_str());
  std::printf("BLEU %.2f, %zu of %zu translations exact\n", bleu(found, targets), exact,
              found.size());
}

int train(const Options& o, const catena::CommunicatorPtr& comm) {
  const Data data = load_data(o, *comm);
  ds::PrefetchIterator batches = batches_of(data.train, training_order(o, data.train), *comm),
                       valid = batches_of(data.valid,
                                          ds::SerialIterator(std::ssize(data.valid), o.run.batch),
                                          *comm);
  // Ranks have equal weights and drop different numbers.
  catena::random::seed(o.run.seed + static_cast<uint64_t>(comm->rank()));
  Translator model({.vocabulary = data.vocabulary.size(),
                    .layers = o.layers,
                    .width = o.width,
                    .dropout = o.dropout,
                    .dtype = catena::parse_dtype(o.dtype)});
  if (!o.start.empty()) catena::serializers::load(o.start, model);
  op::AdamW rule(o.lr, {.beta2 = 0.98, .decay = o.decay});
  rule.add_hook("clipping", op::gradient_clipping(o.clip));
  auto optimizer = catena::create_multi_node_optimizer(rule, comm);
  optimizer.setup(model);
  rule.add_group("no decay", {"*/b", "*_b", "*/gamma", "*/beta"}, {.decay = 0});
  if (comm->rank() == 0)
    std::printf("%lld parameters\n", static_cast<long long>(model.parameter_count()));

  const tr::Score score = score_of(model, o);
  tr::StandardUpdater updater(batches, tr::make_step(optimizer, score));
  tr::Trainer trainer(updater, model, optimizer, examples::trainer_options(o.run, {"loss"}));
  trainer.evaluate_on(valid, score);
  trainer.schedule(op::inverse_square_root(o.lr, o.warmup), {.iterations = 1});
  if (!examples::run(o.run, trainer, *comm) || comm->rank() != 0) return 0;

  const double loss = trainer.value("test_loss");
  catena::serializers::save(o.run.out + "/model.npz", model);
  data.vocabulary.save(o.run.out + "/vocabulary.txt");
  say_how_good(o, model, data);
  std::printf("validation loss %.4f, perplexity %.3f\n", loss, std::exp(loss));
  if (!o.translate.empty()) translate_lines(o, model, data.vocabulary);
  return 0;
}

// By the model of an earlier run.
int translate_only(const Options& o, const catena::Communicator& comm) {
  if (comm.rank() != 0) return 0;
  const std::string file = o.run.out + "/model.npz";
  Translator model(sizes_in(file));
  catena::serializers::load(file, model);
  translate_lines(o, model, Vocabulary::load(o.run.out + "/vocabulary.txt"));
  return 0;
}

int body(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const catena::CommunicatorPtr comm =
      options.trains() ? examples::begin(options.run) : examples::make_communicator(options.run);
  const catena::DeviceScope device(comm->device());
  return options.trains() ? train(options, comm) : translate_only(options, *comm);
}

}  // namespace
}  // namespace translation

int main(int argc, char** argv) { return catena::run_main(argc, argv, translation::body); }
