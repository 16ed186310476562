// Decodes the pictures of a list once, so that train_imagenet need not do it in each epoch.
#include <cstdio>

#include "catena/comm/run_main.h"
#include "common/command_line.h"
#include "records.h"

namespace imagenet {
namespace {

int body(int argc, char** argv) {
  std::string file, output, root = ".";
  int64_t size = 256, threads = 20;
  examples::CommandLine line("Writes the pictures of a list, decoded and resized, into one file.");
  line.add_text("list", file, "list of pictures, a path and a label in each line").required();
  line.add_text("output", output, "file for the pictures, which ends in .npy").required();
  line.add_text("-r,--root", root, "folder that paths in the list start from");
  line.add_count("--size", size, "rows and columns of each");
  line.add_count("-j,--loaderjob", threads, "threads that decode pictures");
  line.parse(argc, argv);
  const Written written = write_records(examples::read_list(file, root), output, size, threads);
  std::printf("%lld pictures are in '%s'; %lld were skipped\n",
              static_cast<long long>(written.pictures), output.c_str(),
              static_cast<long long>(written.skipped));
  return 0;
}

}  // namespace
}  // namespace imagenet

int main(int argc, char** argv) { return catena::run_main(argc, argv, imagenet::body); }
