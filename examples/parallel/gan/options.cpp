#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace gan {

Options parse_options(int argc, char** argv) {
  Options o;
  CLI::App app("Trains a generative adversarial network on all ranks that catena-run started.");
  app.option_defaults()->always_capture_default();
  app.add_option("--data", o.data,
                 "folder of the idx files (CATENA_MNIST, else the packaged Fashion-MNIST)");
  app.add_option("--out", o.out, "folder of the samples and of the generator");
  app.add_option("--epochs", o.epochs, "passes over the images")->check(CLI::Range(1, 10000));
  app.add_option("--batch", o.batch, "samples of one update, divided over the ranks")
      ->check(CLI::Range(2, 65536));
  app.add_option("--seed", o.seed, "of the weights, the noise and the order of the images");
  app.add_option("--lr", o.rate, "learning rate of one rank; ranks multiply it")
      ->check(CLI::PositiveNumber);
  app.add_option("--warmup", o.warmup, "epochs in which the rate rises to that of all ranks")
      ->check(CLI::Range(0, 10000));
  app.add_flag("--short", o.is_short, "a few steps on a few images, to see that it runs");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  return o;
}

}  // namespace gan
