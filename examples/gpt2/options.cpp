#include "options.h"

#include "common/command_line.h"
#include "model.h"

namespace gpt2 {
namespace {

using examples::CommandLine;

void add_data_options(CommandLine& line, Options& o) {
  const auto text = line.add_texts("--text", o.text, "files to train on, byte by byte");
  const auto tokens = line.add_text("--tokens", o.tokens,
                                    "file to train on: token numbers, two bytes each, the low "
                                    "one first");
  line.add_flag("--bench", o.bench, "train on random tokens, to measure; writes no files")
      .excludes(text)
      .excludes(tokens);
  text.excludes(tokens);
  line.add_text("--validation", o.validation,
                "file of the same kind to validate on [the last tenth of the others]");
  line.add_count("--vocabulary", o.vocabulary, "tokens that there are [50257; of bytes 256]")
      .excludes(text);
  line.add_count("--valid-batches", o.valid_batches, "most batches of a validation pass");
}

void add_model_options(CommandLine& line, Options& o) {
  line.add_text("--size", o.size, "of the network").one_of(names_of_sizes());
  line.add_count("-c,--context", o.context, "tokens of a window [256, or those of --start]");
  line.add_share("--dropout", o.dropout, "share of the numbers in the layers that is dropped");
  line.add_precision(o.dtype, o.autocast);
  const auto keep =
      line.add_text("--keep", o.keep, "what layers keep for backward; the rest is computed again");
  keep.one_of({"everything", "products", "attention", "nothing"});
  const auto budget =
      line.add_count("--memory-budget", o.memory_budget,
                     "MiB that layers may keep, instead of --keep: the most that fits is kept");
  budget.excludes(keep);
  line.add_flag("--offload", o.offload, "what layers --keep is on the host until backward")
      .excludes(budget);
  line.add_text("--start", o.start, "model.npz of an earlier run to begin with, of any --size");
}

void add_training_options(CommandLine& line, Options& o) {
  line.add_count("-i,--iterations", o.iterations, "updates, those of a resumed run included");
  line.add_count("-b,--batchsize", o.run.batch, "windows of one update, over all ranks");
  line.add_number("--lr", o.lr, "highest learning rate");
  line.add_whole("--warmup", o.warmup, "updates in which it rises to that");
  line.add_count("--decay-iterations", o.decay_iterations,
                 "update at which it has fallen to a tenth [--iterations]");
  line.add_amount("--decay", o.decay, "weight decay, of matrices");
  line.add_number("--clip", o.clip, "largest norm of the gradients");
  line.add_flag("--in-order", o.in_order, "windows in the order of the text, not shuffled");
  line.add_count("--report", o.run.report, "updates between two rows of the table");
  line.add_count("--snapshot", o.snapshot, "updates between two checkpoints");
}

void add_sampling_options(CommandLine& line, Options& o) {
  line.add_count("--sample", o.sample,
                 "tokens to write in the end; without a text to train on, by the model in --out");
  line.add_text("--prompt", o.prompt, "what they follow: text, or numbers if tokens are no bytes");
  line.add_amount("--temperature", o.temperature, "0: the likeliest token; 1: as the model says");
  line.add_count("--top-k", o.top_k, "draw from so many of the likeliest tokens [all]");
  line.add_flag("--no-cache", o.no_cache, "compute all positions anew for each token");
}

void check(const CommandLine& line, Options& o) {
  if (!o.trains() && o.sample == 0)
    CommandLine::refuse("--text",
                        "name files to train on with --text or --tokens, or ask for a "
                        "--sample of a model that is trained");
  CommandLine::check_precision(o.dtype, o.autocast);
  if (o.offload && o.keep == "everything")
    CommandLine::refuse("--offload", "say what layers keep: --keep nothing, attention or products");
  if (o.offload && o.run.graph)
    CommandLine::refuse("--offload", "copies to the host are not captured; leave --graph out");
  if (!o.start.empty() && line.given("--size")) CommandLine::refuse("--size", "is that of --start");
  if (!o.tokens.empty() || o.bench) {
    if (o.vocabulary == 0) o.vocabulary = 50257;
    if (o.vocabulary > 65536)
      CommandLine::refuse("--vocabulary", "numbers of two bytes are below 65536");
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options o;
  CommandLine line("Trains a GPT-2, or writes text with one.");
  add_data_options(line, o);
  add_model_options(line, o);
  add_training_options(line, o);
  add_sampling_options(line, o);
  examples::add_options(line, o.run, examples::Graphs::kOffered);
  line.check([&] { check(line, o); });
  line.parse(argc, argv);
  return o;
}

}  // namespace gpt2
