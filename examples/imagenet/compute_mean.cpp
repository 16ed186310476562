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
  const auto count = examples::whole_number_above_0();
  CLI::App app("Computes the mean picture of a list.");
  app.add_option("list", file, "list of pictures, a path and a label in each line")->required();
  app.add_option("-r,--root", root, "folder that paths in the list start from")
      ->capture_default_str();
  app.add_option("-o,--output", output, "file for the mean")->capture_default_str();
  app.add_option("--size", size, "pictures are resized to so many rows and columns")
      ->check(count)
      ->capture_default_str();
  app.add_option("-j,--loaderjob", threads, "threads that decode pictures")
      ->check(count)
      ->capture_default_str();
  examples::parse(app, argc, argv);
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
