// Data sets: samples of one or more arrays each, handed out in batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "catena/array/array.h"

namespace catena::datasets {

using Arrays = std::vector<Array>;  // catena::Arrays, without autograd's header

// Makes the arrays of a batch of the samples of it: any number of arrays, on a CPU. See collate.h.
using Collate = std::function<Arrays(const std::vector<Arrays>& samples)>;

// What a training loop needs of its data. Derive from it for your own data, in one of two ways.
// Both functions must be callable from several threads at once.
//
// Samples that are alike, each a row of some columns: give the columns and override gather(), which
// writes a whole batch where it is to be. Samples of any shape, such as sequences, sets and trees:
// give the size alone and override sample(); how a batch is made of them is the iterator's Collate.
class Dataset {
 public:
  // The dtype and the shape of one sample's value in a column.
  struct Column {
    Dtype dtype;
    Shape shape;  // of one sample
  };

  virtual ~Dataset() = default;
  int64_t size() const { return size_; }  // the number of samples
  // Whether the samples are rows of columns, and these; else empty.
  bool has_columns() const { return has_columns_; }
  const std::vector<Column>& columns() const { return columns_; }

  // Writes the samples at `positions` (each in [0, size())) as the rows of out[k], one contiguous
  // CPU array of shape (positions.size(), columns()[k].shape...) for each column.
  virtual void gather(std::span<const int64_t> positions, std::span<const Array> out) const;
  // The arrays of one sample, on a CPU; of columns, one for each.
  virtual Arrays sample(int64_t position) const;
  // A batch as new arrays on a CPU device: of columns by gather(), else, and where `collate` is
  // given, made of the samples by `collate` (default: stack_samples). Without positions: arrays
  // without rows, for which stack_samples and pad_samples get sample 0; of another `collate` none.
  Arrays batch(std::span<const int64_t> positions, Device device = cpu(0),
               const Collate& collate = {}) const;
  // All samples, in order.
  Arrays all(Device device = cpu(0)) const;

 protected:
  // Rows of columns. ValueError when the size is negative.
  Dataset(int64_t size, std::vector<Column> columns);
  // Samples of any shape.
  explicit Dataset(int64_t size);
  // `size` samples of the same form as those of `like`: with its columns, or of any shape.
  Dataset(const Dataset& like, int64_t size);
  // Throws ShapeError, DtypeError or IndexError unless gather() can write there.
  void check_gather(std::span<const int64_t> positions, std::span<const Array> out) const;
  void check_position(const char* who, int64_t position) const;  // IndexError

 private:
  Arrays gathered(std::span<const int64_t> positions, Device device) const;

  int64_t size_;
  bool has_columns_;
  std::vector<Column> columns_;
};
// Iterators share their data set.
using DatasetPtr = std::shared_ptr<const Dataset>;

// Host arrays whose first extents agree: sample i is row i of each. The arrays are shared, not
// copied, unless they are strided or on a GPU.
class TupleDataset final : public Dataset {
 public:
  explicit TupleDataset(std::vector<Array> arrays);
  void gather(std::span<const int64_t> positions, std::span<const Array> out) const override;
  const std::vector<Array>& arrays() const { return arrays_; }

 private:
  std::vector<Array> arrays_;
};

// Samples of any shape in memory. Each is a list of arrays, and all lists have the same length.
class ListDataset final : public Dataset {
 public:
  // ValueError for undefined arrays and lists of different length.
  explicit ListDataset(std::vector<Arrays> samples);
  Arrays sample(int64_t position) const override;

 private:
  std::vector<Arrays> samples_;
};

// Images kept as bytes with an int32 label each. A sample's first column is float32,
// value * scale + bias in the shape asked for; the second is the 0-d label.
class ImageDataset final : public Dataset {
 public:
  // images: uint8 (n, ...); labels: int32 (n); sample_shape: elements as those of one image.
  ImageDataset(const Array& images, const Array& labels, const Shape& sample_shape,
               float scale = 1.0f / 255, float bias = 0);
  void gather(std::span<const int64_t> positions, std::span<const Array> out) const override;
  const Array& images() const { return images_; }
  const Array& labels() const { return labels_; }
  // The same images as samples of another shape: with_shape({1, 28, 28}) for convolutions, {784}
  // for Linear. Shares the bytes. ShapeError when the number of elements differs.
  std::shared_ptr<const ImageDataset> with_shape(const Shape& sample_shape) const {
    return std::make_shared<const ImageDataset>(images_, labels_, sample_shape, scale_, bias_);
  }

 private:
  Array images_, labels_;
  float scale_, bias_;
};

}  // namespace catena::datasets
