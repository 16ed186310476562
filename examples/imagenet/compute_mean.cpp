// Writes the mean picture of a list, which train_imagenet subtracts from each picture.
#include <cstdio>

#include "catena/array/io.h"
#include "catena/comm/run_main.h"
#include "common/command_line.h"
#include "mean.h"

namespace imagenet {
namespace {

int body(int argc, char** argv) {
  std::string file, root = ".", output = "mean.npy";
  int64_t size = 256, threads = 20;
  examples::CommandLine line("Computes the mean picture of a list.");
  line.add_text("list", file, "list of pictures, a path and a label in each line").required();
  line.add_text("-r,--root", root, "folder that paths in the list start from");
  line.add_text("-o,--output", output, "file for the mean");
  line.add_count("--size", size, "pictures are resized to so many rows and columns");
  line.add_count("-j,--loaderjob", threads, "threads that decode pictures");
  line.parse(argc, argv);
  const std::vector<examples::LabelledPath> list = examples::read_list(file, root);
  const Mean mean = mean_of(list, size, threads);
  catena::save(output, mean.picture);
  std::printf("the mean of %lld pictures is in '%s'; %lld were skipped\n",
              static_cast<long long>(std::ssize(list) - mean.skipped), output.c_str(),
              static_cast<long long>(mean.skipped));
  return 0;
}

}  // namespace
}  // namespace imagenet

int main(int argc, char** argv) { return catena::run_main(argc, argv, imagenet::body); }
