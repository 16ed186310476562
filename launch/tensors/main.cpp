// catena-tensors: what files of tensors hold, whether two fit, and one as another.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <variant>

#include "catena/core/printable.h"
#include "tensors/commands.h"

#ifndef CATENA_VERSION
#define CATENA_VERSION "development"
#endif

namespace catena::launch::tensors {
namespace {

constexpr const char* kDescription =
    "Lists, compares and converts files of tensors: safetensors, PyTorch's .pt, .npz.\n"
    "\n"
    "  catena-tensors list net.pt\n"
    "  catena-tensors compare model.npz net.pt --map names.txt\n"
    "  catena-tensors convert net.pt net.safetensors\n";

constexpr const char* kFooter =
    "A file of rules for names has lines 'exact FROM TO', 'prefix FROM [TO]',\n"
    "'regex PATTERN [TO]', 'skip PATTERN', 'keep PATTERN' (names of A that B may lack),\n"
    "'pytorch' or 'to-pytorch', applied in order.\n"
    "\n"
    "Exit status: 0 if all went well, 1 if compared files differ, 2 for errors.";

// The options, or the status to end with: after --help, --version or a usage error, which are
// printed.
std::variant<Options, int> parse_options(int argc, char** argv) {
  Options options;
  CLI::App app(kDescription, "catena-tensors");
  app.footer(kFooter);
  app.set_version_flag("--version", "catena-tensors " CATENA_VERSION);
  app.require_subcommand(1);
  const auto add_map = [&](CLI::App* command, const char* meaning) {
    command->add_option("--map", options.map, meaning)->type_name("FILE");
  };
  CLI::App* list = app.add_subcommand("list", "Print name, dtype, shape and bytes of each tensor");
  list->add_option("FILE", options.first, "A file of tensors")->required();
  list->callback([&] { options.command = Options::kList; });
  CLI::App* compare = app.add_subcommand(
      "compare", "Print the tensors of two files side by side and name the first mismatch");
  compare->add_option("A", options.first, "A file of tensors")->required();
  compare->add_option("B", options.second, "Another")->required();
  add_map(compare, "Rules for the names of B, which become those of A");
  compare->add_flag("--values", options.values, "Compare the elements, too");
  compare->callback([&] { options.command = Options::kCompare; });
  CLI::App* convert =
      app.add_subcommand("convert", "Write the tensors of a file as .safetensors or .npz");
  convert->add_option("IN", options.first, "A file of tensors")->required();
  convert->add_option("OUT", options.second, "NAME.safetensors or NAME.npz")->required();
  add_map(convert, "Rules for the names of IN");
  convert->add_flag("--compressed", options.compressed, "Deflate an .npz");
  convert->callback([&] { options.command = Options::kConvert; });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // for help or the version
    app.exit(error);
    return asked ? 0 : 2;
  }
  return options;
}

}  // namespace
}  // namespace catena::launch::tensors

int main(int argc, char** argv) {
  using namespace catena::launch::tensors;
  try {
    const auto parsed = parse_options(argc, argv);
    if (const int* status = std::get_if<int>(&parsed)) return *status;
    return run(std::get<Options>(parsed));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "catena-tensors: %s\n", catena::printable(error.what()).c_str());
    return 2;
  }
}
