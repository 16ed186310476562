#include "options.h"

#include <thread>

#include "common/command_line.h"

namespace imagenet {
namespace {

std::vector<std::string> names_of_architectures() {
  std::vector<std::string> names;
  for (const auto& [name, arch] : architectures()) names.push_back(name);
  return names;
}

void add_training(CLI::App& app, Options& o) {
  const auto count = examples::whole_number_above_0();
  app.add_option("-B,--batchsize", o.batch, "pictures of one update, over all ranks")
      ->check(count)
      ->capture_default_str();
  app.add_option("-b,--val_batchsize", o.val_batch, "pictures of one step of a test pass")
      ->check(count)
      ->capture_default_str();
  app.add_option("-E,--epoch", o.epochs, "passes over the pictures")
      ->check(count)
      ->capture_default_str();
  app.add_option("--lr", o.lr, "learning rate of the first epoch, times 0.97 in each that follows")
      ->check(examples::number_above_0())
      ->capture_default_str();
  app.add_option("-j,--loaderjob", o.threads, "threads that decode pictures")
      ->check(count)
      ->capture_default_str();
  app.add_option("--report", o.report, "updates between two rows of the table [an epoch]")
      ->check(count);
  app.add_flag("--summary", o.summary, "print layers, shapes, parameters and costs first");
  app.add_option("--graph-dot", o.drawing,
                 "file for the graph of functions behind the first loss, as Graphviz's text; drawn "
                 "by its program dot where the name ends in .svg");
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options o;
  std::string arch = "nin";
  CLI::App app("Trains a convolutional network on pictures of 1000 classes.");
  auto* const train = app.add_option(
      "train", o.train,
      "list of training pictures, a path and a label in each line; or records (.npy)");
  auto* const val = app.add_option("val", o.val, "the same of validation pictures");
  train->needs(val);
  app.add_option("--synthetic", o.synthetic,
                 "so many made pictures, and a quarter of them for validation, instead of lists")
      ->check(examples::whole_number_above_0())
      ->excludes(train);
  app.add_option("-m,--mean", o.mean, "mean picture, of compute_mean")->capture_default_str();
  app.add_option("-r,--root", o.root, "folder that paths in lists start from")
      ->capture_default_str();
  app.add_option("-a,--arch", arch, "the network")
      ->check(CLI::IsMember(names_of_architectures()))
      ->capture_default_str();
  add_training(app, o);
  examples::add_options(app, o.run, examples::Graphs::kNot);
  app.callback([&] {
    if (o.train.empty() && o.synthetic == 0)
      throw CLI::ValidationError("there are no pictures",
                                 "name the lists of training and of validation pictures, or make "
                                 "pictures with --synthetic N");
  });
  examples::parse(app, argc, argv);
  o.arch = architectures().at(arch);
  return o;
}

}  // namespace imagenet
