#include "options.h"

#include "common/command_line.h"

namespace vae {

Options parse_options(int argc, char** argv) {
  Options o;
  CLI::App app("Learns to draw images like those of a data set.");
  examples::add_images_option(app, o.data);
  examples::add_pass_options(app, o.run);
  examples::add_count(app, "-z,--dimz", o.hidden, "hidden numbers of an image");
  examples::add_count(app, "-u,--unit", o.units, "numbers of the layers between");
  examples::add_count(app, "-k,--draws", o.draws, "draws of hidden numbers for an image");
  examples::add_number(app, "--beta", o.weight, "weight of the divergence");
  examples::add_options(app, o.run, examples::Graphs::kOffered);
  examples::parse(app, argc, argv);
  return o;
}

}  // namespace vae
