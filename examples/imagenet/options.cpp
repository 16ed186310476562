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

void add_training(examples::CommandLine& line, Options& o) {
  examples::add_pass_options(line, o.run, kPasses);
  line.add_count("-b,--val_batchsize", o.val_batch, "pictures of one step of a test pass");
  line.add_number(
      "--lr", o.lr,
      "learning rate of the first epoch, times 0.97 in each that follows; 0 is 0.01, of "
      "vit 0.0003");
  line.add_count("-j,--loaderjob", o.threads, "threads that decode pictures");
  examples::add_drawing_options(line, o.drawing, o.summary);
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options o;
  std::string arch = "nin";
  examples::CommandLine line("Trains a network on pictures of 1000 classes.");
  const auto train = line.add_text(
      "train", o.train,
      "list of training pictures, a path and a label in each line; or records (.npy)");
  const auto val = line.add_text("val", o.val, "the same of validation pictures");
  train.needs(val);
  line.add_count("--synthetic", o.synthetic,
                 "so many made pictures, and a quarter of them for validation, instead of lists")
      .excludes(train);
  line.add_text("-m,--mean", o.mean, "mean picture, of compute_mean");
  line.add_text("-r,--root", o.root, "folder that paths in lists start from");
  line.add_text("-a,--arch", arch, "the network").one_of(names_of_architectures());
  add_training(line, o);
  examples::add_options(line, o.run, examples::Graphs::kNot);
  line.check([&] {
    if (o.train.empty() && o.synthetic == 0)
      examples::CommandLine::refuse(
          "there are no pictures",
          "name the lists of training and of validation pictures, or make "
          "pictures with --synthetic N");
  });
  line.parse(argc, argv);
  o.arch = architectures().at(arch);
  if (o.lr == 0) o.lr = o.arch == Arch::kVit ? 3e-4 : 0.01;
  return o;
}

}  // namespace imagenet
