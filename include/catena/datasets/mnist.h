// MNIST-format data: idx files, gzipped or not, as MNIST and Fashion-MNIST come in
// (format: http://yann.lecun.com/exdb/mnist, "FILE FORMATS").
#pragma once

#include <memory>
#include <string>

#include "catena/datasets/dataset.h"

namespace catena::datasets {

// One idx file as an array on cpu:0; any element type and number of dimensions of the format.
// Throws IoError naming the path, what was found, what was expected and what to do, when the file
// is missing, has another magic number, or is shorter or longer than its header says.
Array read_idx(const std::string& path);

// How load_mnist reads the images.
struct MnistOptions {
  std::string folder = {};   // empty: see find_mnist
  int ndim = 1;              // of a sample: 1 (784), 2 (28, 28), 3 (1, 28, 28)
  float scale = 1.0f / 255;  // pixels are bytes times this
  int classes = 10;          // labels are 0 .. classes - 1
  Shape pixels = {};         // {height, width} that the images must have; empty: any
};

// The two data sets.
struct Mnist {
  std::shared_ptr<const ImageDataset> train, test;  // 60,000 and 10,000 images in the usual files
  std::string folder;                               // where they were found

  // The same data as images of one channel, (1, height, width), which convolutions take:
  // load_mnist().images(), as load_mnist({.ndim = 3}). Shares the bytes.
  Mnist images() const;
};

// The four files train/t10k-images-idx3-ubyte, train/t10k-labels-idx1-ubyte, each with or without
// ".gz". Throws IoError naming the file for missing, damaged and empty files, for images of another
// size than options.pixels and for labels out of range.
Mnist load_mnist(const MnistOptions& options = {});

// The folder to read: `folder` if given, else the environment variable CATENA_MNIST, else that of
// the package dataset-fashion-mnist. Throws IoError that says how to get the data when there is
// none.
std::string find_mnist(const std::string& folder = "");

}  // namespace catena::datasets
