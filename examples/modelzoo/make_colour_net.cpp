// Writes a small model of Caffe, its mean, and pictures, to try evaluate_caffe_net with.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "caffe_mean.h"
#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/comm/run_main.h"
#include "colour_net.h"
#include "common/command_line.h"

namespace modelzoo {
namespace {

namespace fs = std::filesystem;
using catena::Array;

// A picture a file, and the list of them.
void write_files(const std::vector<Coloured>& pictures, const fs::path& folder) {
  std::string list;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const std::string name = "picture" + std::to_string(i) + ".png";
    examples::write_png((folder / name).string(), pictures[i].picture);
    list += name + " " + std::to_string(pictures[i].label) + "\n";
  }
  catena::write_file_atomically((folder / "list.txt").string(), list);
}

// All of one size in one file.
void write_arrays(const std::vector<Coloured>& pictures, const fs::path& folder) {
  constexpr int64_t kSide = 64;
  const Array x =
      catena::zeros({std::ssize(pictures), kSide, kSide, 3}, {catena::dtype::uint8, catena::cpu()});
  uint8_t* to = x.data<uint8_t>();
  std::vector<int32_t> labels;
  for (const Coloured& coloured : pictures) {
    to = std::ranges::copy(examples::resized(coloured.picture, kSide, kSide).rgb, to).out;
    labels.push_back(coloured.label);
  }
  catena::save_npz((folder / "pictures.npz").string(), {{"x", x}, {"t", catena::array(labels)}});
}

int body(int argc, char** argv) {
  std::string out, type = "caffenet";
  int64_t count = 64;
  uint64_t seed = 1;
  examples::CommandLine line(
      "Writes a model of Caffe that knows eight colours, and pictures for it.");
  line.add_text("folder", out, "where to write").required();
  line.add_text("-t,--type", type, "the network whose blobs the model has")
      .one_of(names_of_model_types());
  line.add_count("-n,--pictures", count, "how many pictures");
  line.add_whole("--seed", seed, "of the pictures");
  line.parse(argc, argv);

  const fs::path folder(out);
  std::error_code error;
  fs::create_directories(folder, error);
  CATENA_CHECK(IoError, !error, "'", out, "' cannot be made: ", error.message());
  const std::string model = (folder / "colour_net.caffemodel").string();
  catena::write_file_atomically(model, colour_net(model_type(type)));
  catena::save((folder / "mean.npy").string(),
               catena::full({3, kSize, kSize}, kColourMean, {catena::dtype::float32}));
  const std::vector<Coloured> pictures = coloured_pictures(count, seed);
  write_arrays(pictures, folder);
  if (examples::has_png()) write_files(pictures, folder);
  std::printf("'%s' has colour_net.caffemodel, mean.npy, pictures.npz%s\n", out.c_str(),
              examples::has_png() ? ", list.txt and its pictures"
                                  : "; for a list of pictures, install libpng-dev and build again");
  return 0;
}

}  // namespace
}  // namespace modelzoo

int main(int argc, char** argv) { return catena::run_main(argc, argv, modelzoo::body); }
