#include "catena/datasets/dataset.h"

#include <cstring>
#include <numeric>

#include "catena/datasets/collate.h"

namespace catena::datasets {
namespace {

Shape with_rows(int64_t rows, const Shape& sample) {
  Shape shape = sample;
  shape.insert(shape.begin(), rows);
  return shape;
}

std::vector<Dataset::Column> columns_of(const std::vector<Array>& arrays) {
  CATENA_CHECK(ValueError, !arrays.empty(), "TupleDataset: expected at least one array");
  std::vector<Dataset::Column> columns;
  for (size_t k = 0; k < arrays.size(); ++k)
    CATENA_CHECK(ValueError, arrays[k].defined(), "TupleDataset: array ", k, " of ", arrays.size(),
                 " is undefined; give it a value first");
  for (const Array& a : arrays) {
    CATENA_CHECK(ShapeError, a.ndim() >= 1 && a.length() == arrays[0].length(),
                 "TupleDataset: the arrays must agree in their first extent; found shapes ",
                 arrays[0].shape(), " and ", a.shape());
    columns.push_back({a.dtype(), Shape(a.shape().begin() + 1, a.shape().end())});
  }
  return columns;
}

// The first extent, or 0 where columns_of() is about to say what is wrong.
int64_t samples_of(const std::vector<Array>& arrays) {
  const bool has = !arrays.empty() && arrays[0].defined() && arrays[0].ndim() > 0;
  return has ? arrays[0].length() : 0;
}

std::vector<Array> on_host(std::vector<Array> arrays) {
  for (Array& a : arrays) a = a.to_cpu().contiguous();
  return arrays;
}

}  // namespace

Dataset::Dataset(int64_t size) : size_(size), has_columns_(false) {
  CATENA_CHECK(ValueError, size >= 0, "Dataset: the size is ", size, ", expected at least 0");
}

Dataset::Dataset(int64_t size, std::vector<Column> columns) : Dataset(size) {
  has_columns_ = true;
  columns_ = std::move(columns);
}

Dataset::Dataset(const Dataset& like, int64_t size) : Dataset(size) {
  has_columns_ = like.has_columns_;
  columns_ = like.columns_;
}

void Dataset::gather(std::span<const int64_t> /*positions*/, std::span<const Array> /*out*/) const {
  fail<ValueError>("Dataset::gather: ",
                   has_columns_ ? "a data set with columns must override it"
                                : "samples of any shape are not rows; ask for sample() or batch()");
}

Arrays Dataset::sample(int64_t position) const {
  CATENA_CHECK(ValueError, has_columns_,
               "Dataset::sample: a data set without columns must override it");
  check_position("Dataset::sample", position);
  Arrays row = gathered({&position, 1}, cpu(0));
  for (Array& a : row) a = a(0);
  return row;
}

void Dataset::check_position(const char* who, int64_t position) const {
  CATENA_CHECK(IndexError, position >= 0 && position < size_, who, ": position ", position,
               " is outside the data set of ", size_, " samples");
}

Arrays Dataset::gathered(std::span<const int64_t> positions, Device device) const {
  Arrays arrays;
  for (const Column& column : columns_) {
    arrays.push_back(Array::uninitialized(with_rows(int64_t(positions.size()), column.shape),
                                          column.dtype, device));
  }
  gather(positions, arrays);
  return arrays;
}

Arrays Dataset::batch(std::span<const int64_t> positions, Device device,
                      const Collate& collate) const {
  CATENA_CHECK(DeviceError, device.is_cpu(),
               "Dataset::batch: batches are made on a CPU device, asked for ", device,
               "; PrefetchIterator brings them to a GPU");
  if (has_columns_ && !collate) return gathered(positions, device);
  // Only what stacks samples makes arrays without rows, of the shapes that one sample has.
  const bool is_empty = positions.empty();
  if (is_empty && (size() == 0 || (collate && collate.target<detail::PadSamples>() == nullptr)))
    return {};
  std::vector<Arrays> samples;
  for (const int64_t position : positions) samples.push_back(sample(position));
  if (is_empty) samples.push_back(sample(0));
  Arrays arrays = collate ? collate(samples) : stack_samples(samples);
  for (size_t k = 0; k < arrays.size(); ++k) {
    CATENA_CHECK(ValueError, arrays[k].defined(), "Dataset::batch: array ", k,
                 " that the collate function made is undefined");
    if (is_empty) arrays[k] = arrays[k](Slice(0, 0));
    arrays[k] = arrays[k].to(device);
  }
  return arrays;
}

Arrays Dataset::all(Device device) const {
  std::vector<int64_t> positions(static_cast<size_t>(size_));
  std::iota(positions.begin(), positions.end(), 0);
  return batch(positions, device);
}

void Dataset::check_gather(std::span<const int64_t> positions, std::span<const Array> out) const {
  CATENA_CHECK(ShapeError, out.size() == columns_.size(), "Dataset::gather: ", out.size(),
               " output arrays for ", columns_.size(), " columns");
  for (size_t k = 0; k < out.size(); ++k) {
    const Shape expected = with_rows(int64_t(positions.size()), columns_[k].shape);
    CATENA_CHECK(ShapeError, out[k].shape() == expected && out[k].is_contiguous(),
                 "Dataset::gather: output ", k, " has shape ", out[k].shape(),
                 ", expected contiguous ", expected);
    CATENA_CHECK(DtypeError, out[k].dtype() == columns_[k].dtype, "Dataset::gather: output ", k,
                 " is ", out[k].dtype(), ", expected ", columns_[k].dtype);
    CATENA_CHECK(DeviceError, out[k].device().is_cpu(), "Dataset::gather: output ", k, " is on ",
                 out[k].device(), ", expected a CPU device");
  }
  for (const int64_t position : positions) {
    CATENA_CHECK(IndexError, position >= 0 && position < size_, "Dataset::gather: position ",
                 position, " is outside the data set of ", size_, " samples");
  }
}

TupleDataset::TupleDataset(std::vector<Array> arrays)
    : Dataset(samples_of(arrays), columns_of(arrays)), arrays_(on_host(std::move(arrays))) {}

void TupleDataset::gather(std::span<const int64_t> positions, std::span<const Array> out) const {
  check_gather(positions, out);
  for (size_t k = 0; k < out.size(); ++k) {
    const auto row =
        static_cast<size_t>(element_count(columns()[k].shape)) * itemsize(columns()[k].dtype);
    const char* source = static_cast<const char*>(arrays_[k].raw_data());
    char* target = static_cast<char*>(out[k].raw_data());
    for (const int64_t position : positions) {
      if (row > 0) std::memcpy(target, source + static_cast<size_t>(position) * row, row);
      target += row;
    }
    out[k].note_write();
  }
}

ListDataset::ListDataset(std::vector<Arrays> samples)
    : Dataset(static_cast<int64_t>(samples.size())), samples_(std::move(samples)) {
  for (size_t i = 0; i < samples_.size(); ++i) {
    CATENA_CHECK(ValueError, samples_[i].size() == samples_[0].size(), "ListDataset: sample ", i,
                 " has ", samples_[i].size(), " arrays, the first has ", samples_[0].size());
    for (const Array& a : samples_[i])
      CATENA_CHECK(ValueError, a.defined(), "ListDataset: sample ", i, " has an undefined array");
  }
}

Arrays ListDataset::sample(int64_t position) const {
  check_position("ListDataset::sample", position);
  return samples_[static_cast<size_t>(position)];
}

ImageDataset::ImageDataset(const Array& images, const Array& labels, const Shape& sample_shape,
                           float scale, float bias)
    : Dataset(images.length(), {{Dtype::kFloat32, sample_shape}, {Dtype::kInt32, Shape{}}}),
      images_(images.to_cpu().contiguous()),
      labels_(labels.to_cpu().contiguous()),
      scale_(scale),
      bias_(bias) {
  CATENA_CHECK(DtypeError, images.dtype() == Dtype::kUInt8 && labels.dtype() == Dtype::kInt32,
               "ImageDataset: expected uint8 images and int32 labels, got ", images.dtype(),
               " and ", labels.dtype());
  CATENA_CHECK(ShapeError, labels.shape() == Shape{images.length()},
               "ImageDataset: ", images.length(), " images with labels of shape ", labels.shape());
  CATENA_CHECK(ShapeError, images.size() == images.length() * element_count(sample_shape),
               "ImageDataset: images of shape ", images.shape(), " cannot be samples of shape ",
               sample_shape);
}

void ImageDataset::gather(std::span<const int64_t> positions, std::span<const Array> out) const {
  check_gather(positions, out);
  const int64_t pixels = element_count(columns()[0].shape);
  float* x = out[0].data<float>();
  int32_t* t = out[1].data<int32_t>();
  const uint8_t* images = images_.data<uint8_t>();
  const int32_t* labels = labels_.data<int32_t>();
  const float scale = scale_, bias = bias_;
  for (const int64_t position : positions) {
    const uint8_t* image = images + position * pixels;
    for (int64_t i = 0; i < pixels; ++i) x[i] = static_cast<float>(image[i]) * scale + bias;
    x += pixels;
    *t++ = labels[position];
  }
  out[0].note_write();
  out[1].note_write();
}

}  // namespace catena::datasets
