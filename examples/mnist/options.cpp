#include "options.h"

#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"
#include "common/command_line.h"

namespace mnist {
namespace {

// So that "--devices --out x" does not take "--out" for a device.
const CLI::Validator kDevice(
    [](std::string& text) {
      return text.starts_with("-") ? "'" + text + "' is not a device" : std::string();
    },
    "");

std::vector<catena::Device> to_devices(const std::vector<std::string>& names) {
  std::vector<catena::Device> devices;
  for (const std::string& name : names) {
    devices.emplace_back(name);
    catena::require_device(devices.back());
  }
  return devices;
}

}  // namespace

Options parse_options(int argc, char** argv, const std::string& description, Devices devices) {
  Options o;
  std::vector<std::string> names;
  std::string schedule = "constant", dtype = "float32";
  const auto count = examples::whole_number_above_0();
  CLI::App app(description);
  app.add_option("--data", o.data,
                 "folder of MNIST-format idx files, gzipped or not [the packaged Fashion-MNIST]");
  app.add_option("--epochs", o.epochs, "passes over the training images")
      ->check(count)
      ->capture_default_str();
  app.add_option("--batch", o.batch, "samples of one update, over all devices")
      ->check(count)
      ->capture_default_str();
  if (devices == Devices::kOne)
    app.add_option("--device", names, "cpu, cpu:N or cuda:N [cpu:0]")->expected(1);
  if (devices == Devices::kSeveral) {
    app.add_option(
           "--devices", names,
           "devices, separated by commas [GPUs: the first two for model parallel, all for data "
           "parallel; else cpu:0,cpu:1]")
        ->delimiter(',')
        ->check(kDevice);
  }
  app.add_option("--model", o.model, "784-1000-1000-10 network or residual network")
      ->check(CLI::IsMember({"mlp", "resnet"}))
      ->capture_default_str();
  app.add_option("--dtype", dtype,
                 "of weights and of what passes between layers; bfloat16 weights have float32 "
                 "master copies")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
  app.add_flag("--autocast", o.autocast,
               "products and convolutions in bfloat16; weights, losses and all else in float32");
  app.add_option("--dropout", o.dropout,
                 "share of the numbers behind the hidden layers of mlp that is dropped; 0.5 in "
                 "Chainer's example")
      ->check(examples::share())
      ->capture_default_str();
  app.add_option("--optimizer", o.optimizer, "update rule")
      ->check(CLI::IsMember({"sgd", "momentum", "adam", "adamw"}))
      ->capture_default_str();
  app.add_option("--lr", o.lr,
                 "learning rate [0.1 for sgd, 0.01 for momentum, 0.001 for adam and adamw]")
      ->check(examples::number_above_0());
  app.add_option("--schedule", schedule, "how the learning rate goes from epoch to epoch")
      ->check(CLI::IsMember({"constant", "cosine"}))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of initial weights and the order of samples")
      ->check(examples::whole_number())
      ->capture_default_str();
  app.add_option("--out", o.out, "folder for log, model and checkpoint")->capture_default_str();
  app.add_flag("--resume", o.resume, "go on from the checkpoint in the output folder");
  app.add_flag("--overwrite", o.overwrite, "replace the files of an earlier run in that folder")
      ->excludes("--resume");
  app.add_flag("--graph", o.graph,
               devices == Devices::kSeveral
                   ? "not here: a CUDA graph holds the work of one device"
                   : "replay the training step as one CUDA graph (GPUs only)");
  if (devices == Devices::kOne) {
    app.add_option("--graph-dot", o.drawing,
                   "file for the graph of functions behind the first loss, as Graphviz's text; "
                   "drawn by its program dot where the name ends in .svg");
    app.add_flag("--summary", o.summary, "print layers, shapes, parameters and costs first");
  }
  app.callback([&] {
    if (o.autocast && dtype != "float32")
      throw CLI::ValidationError("--autocast", "needs --dtype float32, got " + dtype);
  });
  examples::parse(app, argc, argv);
  o.devices = to_devices(names);
  o.cosine = schedule == "cosine";
  if (dtype == "bfloat16") o.dtype = catena::Dtype::kBFloat16;
  return o;
}

namespace {

double first_rate(const Options& o) {
  if (o.lr > 0) return o.lr;
  return o.optimizer == "sgd" ? 0.1 : o.optimizer == "momentum" ? 0.01 : 0.001;
}

}  // namespace

catena::optimizers::Schedule cosine_rate(const Options& o) {
  const double first = first_rate(o);
  return catena::optimizers::cosine(first, first / 100, o.epochs);
}

std::unique_ptr<catena::Optimizer> make_optimizer(const Options& o) {
  namespace rules = catena::optimizers;
  const double rate = first_rate(o);
  if (o.optimizer == "sgd") return std::make_unique<rules::SGD>(rate);
  if (o.optimizer == "momentum") return std::make_unique<rules::MomentumSGD>(rate, 0.9);
  if (o.optimizer == "adamw") return std::make_unique<rules::AdamW>(rate);
  return std::make_unique<rules::Adam>(rate);
}

}  // namespace mnist
