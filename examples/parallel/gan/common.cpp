#include "common.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>

#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/datasets/mnist.h"
#include "catena/datasets/views.h"

namespace gan {

std::vector<std::string> metrics() { return {"loss D", "loss G", "D(real)", "D(fake)"}; }

Arrays numbers_of(const Variable& loss_d, const Variable& loss_g, const Variable& real_score,
                  const Variable& fake_score) {
  return {loss_d.data(), loss_g.data(), F::mean(F::sigmoid(real_score)).data(),
          F::mean(F::sigmoid(fake_score)).data()};
}

void print_heading(const Options& options) {
  std::filesystem::create_directories(options.out);
  std::cout << " epoch    loss D    loss G   D(real)   D(fake)\n";
}

void print_row(int64_t epoch, training::Means& means) {
  std::cout << std::setw(6) << epoch << std::fixed << std::setprecision(4);
  for (const std::string& name : metrics()) std::cout << std::setw(10) << means.value(name);
  std::cout << std::endl;
}

void write_picture(const Options& options, const Array& images) {
  const std::string path = options.out + "/samples.pgm";
  const Array rows = images.reshape({8, 8, 28, 28}).transpose({0, 2, 1, 3}).reshape({224, 224});
  const std::vector<uint8_t> pixels = (rows * 255.0f).astype(dtype::uint8).to_vector<uint8_t>();
  std::ofstream file(path, std::ios::binary);
  file << "P5 224 224 255\n";
  file.write(reinterpret_cast<const char*>(pixels.data()), std::streamsize(pixels.size()));
  CATENA_CHECK(IoError, file.good(), "train_gan: could not write ", path);
}

datasets::DatasetPtr images_of(const Options& options) {
  const datasets::DatasetPtr all = datasets::load_mnist({.folder = options.data}).train;
  if (!options.is_short) return all;
  std::vector<int64_t> first;
  for (int64_t i = 0; i < std::min<int64_t>(all->size(), 4 * options.batch); ++i)
    first.push_back(i);
  return datasets::subset(all, first);
}

}  // namespace gan
