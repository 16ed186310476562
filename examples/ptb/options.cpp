#include "options.h"

#include "common/command_line.h"

namespace ptb {

Options parse_options(int argc, char** argv) {
  Options o;
  CLI::App app("Trains a language model: two layers of LSTM that guess the next word.");
  examples::add_text_options(app, o.data, o.vocabulary);
  examples::add_pass_options(app, o.run,
                             {.passes = "passes over the text",
                              .samples = "texts read beside each other, over all ranks"});
  examples::add_count(app, "-u,--unit", o.units, "numbers of each layer");
  examples::add_count(app, "-w,--window", o.window, "words through which gradients flow back");
  examples::add_number(app, "--lr", o.lr, "learning rate");
  examples::add_number(app, "--decay", o.decay,
                       "divides the rate after each epoch from the sixth on");
  examples::add_number(app, "--clip", o.clip, "largest norm of the gradients");
  examples::add_share(app, "--dropout", o.dropout,
                      "share of the numbers between layers that is dropped");
  examples::add_count(app, "--sample", o.sample, "words to write when training is done [none]");
  examples::add_options(app, o.run, examples::Graphs::kOffered);
  examples::parse(app, argc, argv);
  return o;
}

}  // namespace ptb
