#include "options.h"

#include "common/command_line.h"

namespace ptb {

Options parse_options(int argc, char** argv) {
  Options o;
  examples::CommandLine line(
      "Trains a language model: two layers of LSTM that guess the next word.");
  line.add_corpus(o.data, o.vocabulary);
  examples::add_pass_options(line, o.run,
                             {.passes = "passes over the text",
                              .samples = "texts read beside each other, over all ranks"});
  line.add_count("-u,--unit", o.units, "numbers of each layer");
  line.add_count("-w,--window", o.window, "words through which gradients flow back");
  line.add_number("--lr", o.lr, "learning rate");
  line.add_number("--decay", o.decay, "divides the rate after each epoch from the sixth on");
  line.add_number("--clip", o.clip, "largest norm of the gradients");
  line.add_share("--dropout", o.dropout, "share of the numbers between layers that is dropped");
  line.add_count("--sample", o.sample, "words to write when training is done [none]");
  examples::add_options(line, o.run, examples::Graphs::kOffered);
  line.parse(argc, argv);
  return o;
}

}  // namespace ptb
