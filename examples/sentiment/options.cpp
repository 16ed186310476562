#include "options.h"

#include "common/command_line.h"

namespace sentiment {

Options parse_options(int argc, char** argv) {
  Options o;
  const auto count = examples::whole_number_above_0();
  CLI::App app("Learns the labels of all nodes of parse trees.");
  auto* const data = app.add_option(
      "--data", o.data, "folder with train.txt, dev.txt and test.txt, a tree in each line");
  app.add_option("--trees", o.trees,
                 "so many made trees to train on, and a quarter of them for each of dev and test, "
                 "where --data is not given")
      ->check(count)
      ->excludes(data)
      ->capture_default_str();
  examples::add_count(app, "-l,--label", o.labels, "labels there are");
  examples::add_count(app, "-u,--unit", o.units, "numbers of a node's vector");
  examples::add_count(app, "-b,--batchsize", o.run.batch, "trees of one update, over all ranks");
  examples::add_count(app, "-e,--epoch", o.run.epochs, "passes over the trees");
  examples::add_count(app, "-p,--epocheval", o.report, "epochs between two rows of the table");
  examples::add_number(app, "--lr", o.lr, "learning rate");
  examples::add_device_options(app, o.run);
  examples::add_output_options(app, o.run);
  examples::parse(app, argc, argv);
  return o;
}

}  // namespace sentiment
