#include "catena/datasets/collate.h"

#include <algorithm>
#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"

namespace catena::datasets {
namespace {

// Array k of each sample.
Arrays field(const char* who, const std::vector<Arrays>& samples, size_t k) {
  Arrays arrays;
  for (size_t i = 0; i < samples.size(); ++i) {
    CATENA_CHECK(ValueError, samples[i].size() == samples[0].size(), who, ": sample ", i,
                 " of the batch has ", samples[i].size(), " arrays, the first has ",
                 samples[0].size());
    const Array& a = samples[i][k];
    CATENA_CHECK(DtypeError, a.dtype() == samples[0][k].dtype(), who, ": array ", k, " of sample ",
                 i, " is ", a.dtype(), ", that of the first is ", samples[0][k].dtype());
    arrays.push_back(a.to_cpu());
  }
  return arrays;
}

Shape largest(const Arrays& arrays, size_t k) {
  Shape shape = arrays[0].shape();
  for (const Array& a : arrays) {
    CATENA_CHECK(ShapeError, a.shape().size() == shape.size(), "pad_samples: array ", k,
                 " has samples of shapes ", arrays[0].shape(), " and ", a.shape(),
                 "; expected one number of dimensions");
    for (size_t d = 0; d < shape.size(); ++d) shape[d] = std::max(shape[d], a.shape()[d]);
  }
  return shape;
}

// The beginning of row i of `rows`, in the shape of a sample.
Array corner_of(const Array& rows, int64_t i, const Shape& shape) {
  const Strides strides(rows.strides().begin() + 1, rows.strides().end());
  const int64_t offset =
      static_cast<const char*>(rows.raw_data()) - static_cast<const char*>(rows.storage()->data);
  return Array::from_storage(rows.storage(), offset + i * rows.strides()[0], shape, strides,
                             rows.dtype());
}

Array padded(const Arrays& arrays, size_t k, double value) {
  Shape shape = largest(arrays, k);
  shape.insert(shape.begin(), static_cast<int64_t>(arrays.size()));
  const Dtype dtype = arrays[0].dtype();
  CATENA_CHECK(ValueError, is_float(dtype) || value == std::trunc(value), "pad_samples: array ", k,
               " has integers (", dtype, "), which do not hold the value ", value,
               "; give PadOptions a whole number, or the samples a floating dtype");
  check_fits("pad_samples", value, dtype);
  const Array rows = full(shape, value, {dtype, cpu(0)});
  for (size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i].size() > 0) corner_of(rows, int64_t(i), arrays[i].shape()).assign(arrays[i]);
  return rows;
}

Array lengths_of(const Arrays& arrays) {
  std::vector<int64_t> lengths;
  for (const Array& a : arrays) lengths.push_back(a.ndim() > 0 ? a.length() : 1);
  return array(lengths, {static_cast<int64_t>(lengths.size())}, cpu(0));
}

}  // namespace

Arrays stack_samples(const std::vector<Arrays>& samples) {
  Arrays batch;
  for (size_t k = 0; k < samples.at(0).size(); ++k) {
    const Arrays arrays = field("stack_samples", samples, k);
    for (size_t i = 0; i < arrays.size(); ++i)
      CATENA_CHECK(ShapeError, arrays[i].shape() == arrays[0].shape(), "stack_samples: array ", k,
                   " of sample ", i, " of the batch has shape ", arrays[i].shape(),
                   ", that of the first ", arrays[0].shape(),
                   "; give the iterator .collate = pad_samples(), or one of your own");
    batch.push_back(stack(arrays));
  }
  return batch;
}

Arrays detail::PadSamples::operator()(const std::vector<Arrays>& samples) const {
  Arrays batch;
  for (size_t k = 0; k < samples.at(0).size(); ++k)
    batch.push_back(padded(field("pad_samples", samples, k), k, options.value));
  if (options.lengths && !batch.empty())
    batch.push_back(lengths_of(field("pad_samples", samples, 0)));
  return batch;
}

Collate pad_samples(const PadOptions& options) { return detail::PadSamples{options}; }

}  // namespace catena::datasets
