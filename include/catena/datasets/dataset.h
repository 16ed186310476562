// Data sets: samples with one value in each of several columns, handed out in batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "catena/array/array.h"

namespace catena::datasets {

// What a training loop needs of its data. Derive from it for your own data.
class Dataset {
 public:
  // The dtype and the shape of one sample's value in a column.
  struct Column {
    Dtype dtype;
    Shape shape;  // of one sample
  };

  virtual ~Dataset() = default;
  // The number of samples, and the columns.
  int64_t size() const { return size_; }
  const std::vector<Column>& columns() const { return columns_; }

  // Writes the samples at `positions` (each in [0, size())) as the rows of out[k], one contiguous
  // CPU array of shape (positions.size(), columns()[k].shape...) for each column. Must be callable
  // from several threads at once.
  virtual void gather(std::span<const int64_t> positions, std::span<const Array> out) const = 0;
  // The same into new arrays on a CPU device.
  std::vector<Array> batch(std::span<const int64_t> positions, Device device = cpu(0)) const;
  // All samples, in order.
  std::vector<Array> all(Device device = cpu(0)) const;

 protected:
  // ValueError when the size is negative.
  Dataset(int64_t size, std::vector<Column> columns);
  // Throws ShapeError, DtypeError or IndexError unless gather() can write there.
  void check_gather(std::span<const int64_t> positions, std::span<const Array> out) const;

 private:
  int64_t size_;
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

 private:
  Array images_, labels_;
  float scale_, bias_;
};

}  // namespace catena::datasets
