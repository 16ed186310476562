#include "options.h"

#include "common/command_line.h"

namespace sentiment {

Options parse_options(int argc, char** argv) {
  Options o;
  examples::CommandLine line("Learns the labels of all nodes of parse trees.");
  const auto data = line.add_text(
      "--data", o.data, "folder with train.txt, dev.txt and test.txt, a tree in each line");
  line.add_count("--trees", o.trees,
                 "so many made trees to train on, and a quarter of them for each of dev and test, "
                 "where --data is not given")
      .excludes(data);
  line.add_count("-l,--label", o.labels, "labels there are");
  line.add_count("-u,--unit", o.units, "numbers of a node's vector");
  line.add_count("-b,--batchsize", o.run.batch, "trees of one update, over all ranks");
  line.add_count("-e,--epoch", o.run.epochs, "passes over the trees");
  line.add_count("-p,--epocheval", o.report, "epochs between two rows of the table");
  line.add_number("--lr", o.lr, "learning rate");
  examples::add_device_options(line, o.run);
  examples::add_output_options(line, o.run);
  line.parse(argc, argv);
  return o;
}

}  // namespace sentiment
