#include "options.h"

#include "common/command_line.h"

namespace vae {

Options parse_options(int argc, char** argv) {
  Options o;
  examples::CommandLine line("Learns to draw images like those of a data set.");
  line.add_images(o.data);
  examples::add_pass_options(line, o.run);
  line.add_count("-z,--dimz", o.hidden, "hidden numbers of an image");
  line.add_count("-u,--unit", o.units, "numbers of the layers between");
  line.add_count("-k,--draws", o.draws, "draws of hidden numbers for an image");
  line.add_number("--beta", o.weight, "weight of the divergence");
  examples::add_options(line, o.run, examples::Graphs::kOffered);
  line.parse(argc, argv);
  return o;
}

}  // namespace vae
