#include "options.h"

#include "common/command_line.h"

namespace gan {

Options parse_options(int argc, char** argv, const std::string& description, Networks networks) {
  Options o;
  CLI::App app(description);
  examples::add_images_option(app, o.data);
  examples::add_pass_options(app, o.run);
  examples::add_number(app, "--lr", o.rate, "learning rate of one rank");
  if (networks == Networks::kBoth) {
    app.add_option("--warmup", o.warmup, "epochs in which the rate rises to that of all ranks")
        ->check(examples::whole_number())
        ->capture_default_str();
    examples::add_options(app, o.run, examples::Graphs::kNot);
  } else {
    examples::add_device_options(app, o.run);
    examples::add_seed_and_folder(app, o.run);
  }
  app.add_flag("--short", o.is_short, "two epochs of four batches, to see that it runs");
  examples::parse(app, argc, argv);
  if (o.is_short) o.run.epochs = 2;
  return o;
}

}  // namespace gan
