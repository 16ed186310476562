#include "options.h"

#include "common/command_line.h"

namespace gan {

Options parse_options(int argc, char** argv, const std::string& description, Networks networks) {
  Options o;
  examples::CommandLine line(description);
  line.add_images(o.data);
  examples::add_pass_options(line, o.run);
  line.add_number("--lr", o.rate, "learning rate of one rank");
  if (networks == Networks::kBoth) {
    line.add_whole("--warmup", o.warmup, "epochs in which the rate rises to that of all ranks");
    examples::add_options(line, o.run, examples::Graphs::kNot);
  } else {
    examples::add_device_options(line, o.run);
    examples::add_seed_and_folder(line, o.run);
  }
  line.add_flag("--short", o.is_short, "two epochs of four batches, to see that it runs");
  line.parse(argc, argv);
  if (o.is_short) o.run.epochs = 2;
  return o;
}

}  // namespace gan
