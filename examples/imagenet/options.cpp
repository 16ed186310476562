#include "options.h"

#include "common/command_line.h"

namespace imagenet {
namespace {

std::vector<std::string> names_of_architectures() {
  std::vector<std::string> names;
  for (const auto& [name, arch] : architectures()) names.push_back(name);
  return names;
}

// Chainer's letters.
const examples::PassTexts kPasses{.passes = "passes over the pictures",
                                  .samples = "pictures of one update, over all ranks",
                                  .epoch = "-e,-E,--epoch",
                                  .batchsize = "-B,--batchsize"};

void add_training(CLI::App& app, Options& o) {
  examples::add_pass_options(app, o.run, kPasses);
  examples::add_count(app, "-b,--val_batchsize", o.val_batch,
                      "pictures of one step of a test pass");
  examples::add_number(app, "--lr", o.lr,
                       "learning rate of the first epoch, times 0.97 in each that follows");
  examples::add_count(app, "-j,--loaderjob", o.threads, "threads that decode pictures");
  examples::add_drawing_options(app, o.drawing, o.summary);
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
  examples::add_count(
      app, "--synthetic", o.synthetic,
      "so many made pictures, and a quarter of them for validation, instead of lists")
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
