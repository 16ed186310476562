// Trains a GPT-2 on one device, or on the ranks that catena-run started, and writes text with it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <numbers>
#include <optional>

#include "catena/array/random.h"
#include "catena/autograd/autocast.h"
#include "catena/comm/run_main.h"
#include "catena/core/dtype.h"
#include "catena/core/memory.h"
#include "catena/core/printable.h"
#include "catena/functions/loss/linear_cross_entropy.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/hooks.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/serializers/npz.h"
#include "model.h"
#include "options.h"
#include "sampling.h"
#include "speed.h"
#include "tokens.h"

namespace gpt2 {
namespace {

namespace ds = catena::datasets;
namespace op = catena::optimizers;
namespace tr = catena::training;
using catena::Slice;

// The tokens to train on and those to validate on.
struct Texts {
  Array train, valid;
};

Texts load_texts(const Options& o, int64_t context) {
  const auto read = [&](const std::string& file) {
    return o.tokens.empty() ? read_bytes({file}) : map_tokens(file, o.vocabulary);
  };
  if (o.bench) {
    const Array random = catena::random::integers({32 * o.run.batch * context + 1}, 0, o.vocabulary,
                                                  {catena::dtype::int32, catena::cpu()});
    return {random, random(Slice(0, o.run.batch * context + 1))};
  }
  const Array all = o.tokens.empty() ? read_bytes(o.text) : read(o.tokens);
  if (!o.validation.empty()) return {all, read(o.validation)};
  const int64_t held_out = all.size() / 10;
  return {all(Slice(0, all.size() - held_out)), all(Slice(all.size() - held_out, catena::none))};
}

Sizes sizes_of(const Options& o) {
  Sizes sizes = o.start.empty() ? sizes_by_name(o.size) : sizes_in(o.start);
  const int64_t vocabulary = o.text.empty() ? o.vocabulary : 256;
  CATENA_CHECK(ValueError, o.start.empty() || vocabulary == sizes.vocabulary, "--start: '", o.start,
               "' has ", sizes.vocabulary, " tokens, the text ", vocabulary);
  CATENA_CHECK(ValueError, o.start.empty() || o.context <= sizes.positions, "--context ", o.context,
               " is longer than the ", sizes.positions, " positions of the model in '", o.start,
               "'");
  sizes.vocabulary = vocabulary;
  if (o.start.empty() && o.context > 0) sizes.positions = o.context;
  sizes.dropout = o.dropout;
  sizes.dtype = catena::parse_dtype(o.dtype);
  return sizes;
}

// On the device as a whole where a captured step needs that; else made from the text, batch by
// batch.
std::unique_ptr<ds::BatchIterator> batches_of(const Options& o, const ds::DatasetPtr& windows,
                                              ds::PositionIterator order,
                                              const catena::Communicator& comm) {
  const catena::RankOf who{comm.rank(), comm.size()};
  if (o.run.graph)
    return std::make_unique<ds::ResidentIterator>(windows, std::move(order), comm.device(), who);
  return std::make_unique<ds::PrefetchIterator>(windows, std::move(order), comm.device(), who);
}

ds::PositionIterator training_order(const Options& o, int64_t windows) {
  CATENA_CHECK(ValueError, windows >= o.run.batch, "the training text has ", windows,
               " windows, fewer than the ", o.run.batch,
               " of an update; give a longer text, or a smaller --batchsize or --context");
  const ds::IteratorOptions whole{.repeat = true, .drop_last = true};
  if (o.in_order) return ds::SerialIterator(windows, o.run.batch, whole);
  return ds::ShuffledIterator(windows, o.run.batch, o.run.seed, whole);
}

std::unique_ptr<tr::Updater> updater_of(const Options& o, ds::BatchIterator& batches,
                                        catena::MultiNodeOptimizer& optimizer, tr::Step step) {
  if (!o.run.graph) return std::make_unique<tr::StandardUpdater>(batches, std::move(step));
  return examples::make_updater(o.run, dynamic_cast<ds::ResidentIterator&>(batches), optimizer,
                                std::move(step));
}

// The mean cross entropy of the tokens that follow those of each window.
Variable loss_of(const Gpt2& model, const Array& windows) {
  const Array ids = windows(Slice(), Slice(0, -1)), next = windows(Slice(), Slice(1, catena::none));
  return F::linear_cross_entropy(model.states(ids), model.tokens.W,
                                 next.astype(catena::dtype::int32));
}

tr::Score score_of(const Gpt2& model, bool autocast) {
  return [&model, autocast](const ds::Batch& batch) -> catena::Variables {
    std::optional<catena::AutocastScope> low;
    if (autocast) low.emplace(catena::dtype::bfloat16);
    return {loss_of(model, batch.x())};
  };
}

// What layers keep for backward; the program's default leaves it to the graph.
void set_memory(const Options& o, Gpt2& model) {
  const std::map<std::string, catena::Keep> choices{{"nothing", catena::Keep::kNothing},
                                                    {"attention", catena::Keep::kAttention},
                                                    {"products", catena::Keep::kProducts}};
  if (o.memory_budget > 0)
    model.recompute({.budget = size_t(o.memory_budget) << 20});
  else if (o.keep != "everything")
    model.recompute({.keep = choices.at(o.keep), .offload = o.offload});
}

// Rises, then falls to a tenth as half a cosine.
op::Schedule rate_of(const Options& o) {
  const int64_t end = o.decay_iterations > 0 ? o.decay_iterations : o.iterations;
  return op::linear_warmup(o.warmup,
                           op::cosine(o.lr, o.lr / 10, std::max<int64_t>(1, end - o.warmup)));
}

tr::TrainerOptions trainer_options(const Options& o) {
  tr::TrainerOptions result = examples::trainer_options(o.run, {"loss"});
  result.epochs = 0;
  result.iterations = o.iterations;
  result.snapshot = {.iterations = o.snapshot};
  if (o.bench) result.out.clear();
  return result;
}

// The text, and on stderr how fast it was written.
void write_sample(const Options& o, Gpt2& model) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const std::vector<int64_t> written =
      sample(model, tokens_of(o.prompt, model.vocabulary()), o.sample,
             {.temperature = o.temperature, .top_k = o.top_k, .cache = !o.no_cache});
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::string text = o.prompt + (model.vocabulary() == 256 || o.prompt.empty() ? "" : " ") +
                           text_of(written, model.vocabulary());
  std::printf("%s\n", catena::printable(text).c_str());
  std::fprintf(stderr, "%lld tokens written, %.0f a second\n", static_cast<long long>(o.sample),
               static_cast<double>(o.sample) / seconds);
}

// The speed since the run began or was resumed, over all ranks, and the memory of this one. Nothing
// for a few updates, which are not measured.
void say_speed(const TimedUpdater& updater, double tokens, catena::Device device) {
  if (std::isnan(updater.updates_per_second())) return;
  std::printf("tokens/s %.0f", updater.updates_per_second() * tokens);
  if (device.is_cuda())
    std::printf(", peak memory %.2f GiB",
                static_cast<double>(catena::memory_statistics(device).peak_in_use) / (1 << 30));
  std::printf("\n");
}

int train(const Options& o, catena::Communicator& comm, const catena::CommunicatorPtr& shared) {
  catena::random::seed(o.run.seed);
  const Sizes sizes = sizes_of(o);
  const int64_t context = o.context > 0 ? o.context : sizes.positions;
  const Texts texts = load_texts(o, context);
  const auto train_windows = std::make_shared<Windows>(texts.train, context, "the training text");
  const auto valid_windows = std::make_shared<Windows>(texts.valid, context, "the validation text",
                                                       o.valid_batches * o.run.batch);
  const auto batches = batches_of(o, train_windows, training_order(o, train_windows->size()), comm);
  const auto valid =
      batches_of(o, valid_windows, ds::SerialIterator(valid_windows->size(), o.run.batch), comm);

  Gpt2 model(sizes);
  set_memory(o, model);
  if (!o.start.empty()) catena::serializers::load(o.start, model);
  op::AdamW rule(o.lr, {.beta2 = 0.95, .decay = o.decay});
  rule.add_hook("clipping", op::gradient_clipping(o.clip));
  auto optimizer = catena::create_multi_node_optimizer(rule, shared);
  optimizer.setup(model);
  rule.add_group("no decay", {"*/b", "*_b", "*/gamma", "*/beta"}, {.decay = 0});
  if (comm.rank() == 0)
    std::printf("%lld parameters, %lld tokens to train on\n",
                static_cast<long long>(model.parameter_count()),
                static_cast<long long>(texts.train.size()));

  const tr::Score score = score_of(model, o.autocast);
  TimedUpdater updater(updater_of(o, *batches, optimizer, tr::make_step(optimizer, score)));
  tr::Trainer trainer(updater, model, optimizer, trainer_options(o));
  if (!o.bench) trainer.evaluate_on(*valid, score);
  trainer.schedule(rate_of(o), {.iterations = 1});
  if (!examples::run(o.run, trainer, comm) || comm.rank() != 0) return 0;

  if (!o.bench) {
    const double loss = trainer.value("test_loss");
    catena::serializers::save(o.run.out + "/model.npz", model);
    if (o.tokens.empty())
      std::printf("validation loss %.4f, %.4f bits a byte\n", loss, loss / std::numbers::ln2);
    else
      std::printf("validation loss %.4f, perplexity %.3f\n", loss, std::exp(loss));
  }
  say_speed(updater, static_cast<double>(o.run.batch * context), comm.device());
  if (o.sample > 0) write_sample(o, model);
  return 0;
}

// By the model of an earlier run.
int write(const Options& o, const catena::Communicator& comm) {
  if (comm.rank() != 0) return 0;
  catena::random::seed(o.run.seed);
  const std::string file = o.start.empty() ? o.run.out + "/model.npz" : o.start;
  const Sizes sizes = sizes_in(file);
  CATENA_CHECK(ValueError, o.context <= sizes.positions, "--context ", o.context,
               " is longer than the ", sizes.positions, " positions of the model in '", file, "'");
  Gpt2 model(sizes);
  catena::serializers::load(file, model);
  write_sample(o, model);
  return 0;
}

int body(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const bool makes_files = options.trains() && !options.bench;
  const catena::CommunicatorPtr comm =
      makes_files ? examples::begin(options.run) : examples::make_communicator(options.run);
  const catena::DeviceScope device(comm->device());
  return options.trains() ? train(options, *comm, comm) : write(options, *comm);
}

}  // namespace
}  // namespace gpt2

int main(int argc, char** argv) { return catena::run_main(argc, argv, gpt2::body); }
