#include "options.h"

#include "common/command_line.h"

namespace translation {
namespace {

using examples::CommandLine;

void add_data_options(CommandLine& line, Options& o) {
  const auto source = line.add_text("--source", o.source, "sentences to translate, a line each");
  const auto target = line.add_text("--target", o.target, "their translations, line by line");
  source.needs(target);
  target.needs(source);
  line.add_count("--reverse", o.reverse,
                 "train on so many made lines instead: random letters, which are to be reversed")
      .excludes(source);
  const auto valid_source = line.add_text("--valid-source", o.valid_source,
                                          "sentences to validate on [every 20th of the others]");
  const auto valid_target = line.add_text("--valid-target", o.valid_target, "their translations");
  valid_source.needs(valid_target);
  valid_target.needs(valid_source);
  line.add_text("--pieces", o.pieces, "what lines are cut into [words, with --reverse letters]")
      .one_of({"words", "letters"});
  line.add_count("--vocabulary", o.vocabulary, "pieces that are told apart, the most frequent");
  line.add_count("--longest", o.longest, "leave out pairs with more pieces than that");
}

void add_model_options(CommandLine& line, Options& o) {
  line.add_count("--layers", o.layers, "of the encoder, and of the decoder");
  line.add_count("--width", o.width, "numbers of each piece, a multiple of 32");
  line.add_share("--dropout", o.dropout, "share of the numbers in the layers that is dropped");
  line.add_precision(o.dtype, o.autocast);
  line.add_text("--start", o.start, "model.npz to begin with, of the same sizes");
}

void add_training_options(CommandLine& line, Options& o) {
  examples::add_pass_options(
      line, o.run,
      {.passes = "passes over the pairs", .samples = "pairs of one update, over all ranks"});
  line.add_share("--smoothing", o.smoothing, "share of each label that all pieces get");
  line.add_number("--lr", o.lr, "highest learning rate");
  line.add_count("--warmup", o.warmup,
                 "updates in which it rises to that; it falls with their root");
  line.add_amount("--decay", o.decay, "weight decay, of matrices");
  line.add_number("--clip", o.clip, "largest norm of the gradients");
  line.add_flag("--in-order", o.in_order, "pairs in the order of the files, not shuffled");
}

void check(const Options& o) {
  if (!o.trains() && o.translate.empty())
    CommandLine::refuse("--source",
                        "name sentences to train on with --source and --target, or make some with "
                        "--reverse, or name lines to --translate by a model that is trained");
  CommandLine::check_precision(o.dtype, o.autocast);
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options o;
  CommandLine line("Trains a translator of sentences, or translates lines with one.");
  add_data_options(line, o);
  add_model_options(line, o);
  add_training_options(line, o);
  line.add_text("--translate", o.translate,
                "file of lines to translate in the end, - for standard input; without pairs to "
                "train on, by the model in --out");
  line.add_count("--beam", o.beams, "beginnings of a translation that are kept; 1: the likeliest");
  examples::add_options(line, o.run, examples::Graphs::kNot);
  line.check([&] { check(o); });
  line.parse(argc, argv);
  return o;
}

}  // namespace translation
