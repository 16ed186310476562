#include "options.h"

#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"
#include "common/command_line.h"

namespace mnist {
namespace {

void add_network(examples::CommandLine& line, NetworkOptions& o, std::string& dtype) {
  line.add_text("-m,--model", o.name,
                "mlp: 784-N-N-10; lenet: two convolutions with max pooling and two linear layers; "
                "resnet: a residual network")
      .one_of({"mlp", "lenet", "resnet"});
  line.add_count("-u,--unit", o.units, "N, the hidden size of mlp");
  line.add_share("--dropout", o.dropout,
                 "share of the numbers behind the hidden linear layers of mlp and lenet that "
                 "is dropped; 0.5 in Chainer's example");
  line.add_text("--dtype", dtype,
                "of weights and of what passes between layers; bfloat16 weights have float32 "
                "master copies")
      .one_of({"float32", "bfloat16"});
  line.add_flag("--autocast", o.autocast,
                "products and convolutions in bfloat16; weights, losses and all else in float32");
}

void add_rule(examples::CommandLine& line, Options& o, std::string& schedule) {
  line.add_text("--optimizer", o.optimizer, "update rule")
      .one_of({"sgd", "momentum", "adam", "adamw"});
  line.add_number("--lr", o.lr,
                  "learning rate [0.1 for sgd, 0.01 for momentum, 0.001 for adam and adamw]");
  line.add_text("--schedule", schedule, "how the learning rate goes from epoch to epoch")
      .one_of({"constant", "cosine"});
}

void add_run(examples::CommandLine& line, Options& o, Devices devices) {
  examples::add_pass_options(line, o.run);
  if (devices == Devices::kSeveral) {
    examples::add_device_options(line, o.run, examples::DeviceCount::kSeveral,
                                 "GPUs: the first two for model parallel, all for data parallel; "
                                 "else cpu:0,cpu:1");
    examples::add_output_options(line, o.run);
    line.add_flag("--graph", o.run.graph, "not here: a CUDA graph holds the work of one device");
  } else {
    examples::add_options(line, o.run, examples::Graphs::kOffered);
  }
  if (devices == Devices::kOne) examples::add_drawing_options(line, o.drawing, o.summary);
  if (devices == Devices::kRanks)
    line.add_count("--slices", o.slices,
                   "slices of each batch, a power of two that the ranks divide: the parameters are "
                   "then equal bit for bit on any number of ranks");
}

// Options that the chosen network would not look at.
void refuse_unused(const examples::CommandLine& line, const NetworkOptions& o,
                   const std::string& dtype) {
  const auto expect = [](bool fits, const char* name, const std::string& text) {
    if (!fits) examples::CommandLine::refuse(name, text);
  };
  expect(!o.autocast || dtype == "float32", "--autocast", "needs --dtype float32, got " + dtype);
  expect(!line.given("--unit") || o.name == "mlp", "--unit",
         "is the hidden size of mlp, got --model " + o.name);
  expect(o.dropout == 0 || o.name != "resnet", "--dropout",
         "is for mlp and lenet, got --model resnet");
}

}  // namespace

Options parse_options(int argc, char** argv, const std::string& description, Devices devices) {
  Options o;
  std::string schedule = "constant", dtype = "float32";
  examples::CommandLine line(description);
  line.add_images(o.data);
  add_run(line, o, devices);
  add_network(line, o.network, dtype);
  add_rule(line, o, schedule);
  line.check([&] { refuse_unused(line, o.network, dtype); });
  line.parse(argc, argv);
  CATENA_CHECK(ValueError, devices != Devices::kSeveral || !o.run.graph,
               "--graph: a graph holds the work of one device; this program has several");
  o.cosine = schedule == "cosine";
  if (dtype == "bfloat16") o.network.dtype = catena::Dtype::kBFloat16;
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
  return catena::optimizers::cosine(first, first / 100, o.run.epochs);
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
