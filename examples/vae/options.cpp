#include "options.h"

#include "common/command_line.h"

namespace vae {

Options parse_options(int argc, char** argv) {
  Options o;
  const auto count = examples::whole_number_above_0();
  CLI::App app("Learns to draw images like those of a data set.");
  app.add_option("--data", o.data,
                 "folder of MNIST-format idx files, gzipped or not [the packaged Fashion-MNIST]");
  app.add_option("-e,--epoch", o.epochs, "passes over the images")
      ->check(count)
      ->capture_default_str();
  app.add_option("-z,--dimz", o.hidden, "hidden numbers of an image")
      ->check(count)
      ->capture_default_str();
  app.add_option("-u,--unit", o.units, "of the layers between")
      ->check(count)
      ->capture_default_str();
  app.add_option("-b,--batchsize", o.batch, "images of one update, over all ranks")
      ->check(count)
      ->capture_default_str();
  app.add_option("-k,--draws", o.draws, "draws of hidden numbers for an image")
      ->check(count)
      ->capture_default_str();
  app.add_option("--beta", o.weight, "weight of the divergence")
      ->check(examples::number_above_0())
      ->capture_default_str();
  examples::add_options(app, o.run, examples::Graphs::kOffered);
  examples::parse(app, argc, argv);
  return o;
}

}  // namespace vae
