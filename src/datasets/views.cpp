#include "catena/datasets/views.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "catena/datasets/order.h"

namespace catena::datasets {
namespace {

DatasetPtr known(const char* who, DatasetPtr data) {
  CATENA_CHECK(ValueError, data != nullptr, who, ": no data set was given");
  return data;
}

// Hands on the columns of another data set, or that it has none.
class View : public Dataset {
 protected:
  View(int64_t size, const Dataset& like) : Dataset(like, size) {}
};

class Subset final : public View {
 public:
  Subset(DatasetPtr data, std::vector<int64_t> positions)
      : View(static_cast<int64_t>(positions.size()), *data),
        data_(std::move(data)),
        positions_(std::move(positions)) {
    for (const int64_t position : positions_)
      CATENA_CHECK(IndexError, position >= 0 && position < data_->size(), "subset: position ",
                   position, " is outside the data set of ", data_->size(), " samples");
  }
  void gather(std::span<const int64_t> positions, std::span<const Array> out) const override {
    check_gather(positions, out);
    std::vector<int64_t> theirs;
    for (const int64_t position : positions) theirs.push_back(positions_[size_t(position)]);
    data_->gather(theirs, out);
  }
  Arrays sample(int64_t position) const override {
    check_position("subset", position);
    return data_->sample(positions_[size_t(position)]);
  }

 private:
  DatasetPtr data_;
  std::vector<int64_t> positions_;
};

int64_t total_size(const std::vector<DatasetPtr>& parts) {
  int64_t size = 0;
  for (const DatasetPtr& part : parts) size += part->size();
  return size;
}

class Concat final : public View {
 public:
  explicit Concat(std::vector<DatasetPtr> parts)
      : View(total_size(parts), *parts[0]), parts_(std::move(parts)) {
    for (const DatasetPtr& part : parts_) {
      begins_.push_back(begins_.empty() ? 0 : begins_.back() + parts_[begins_.size() - 1]->size());
      CATENA_CHECK(
          ValueError, has_same_columns(*part), "concat: data set ", begins_.size() - 1,
          " has other columns than the first; concat data sets of equal dtypes and shapes");
    }
  }
  void gather(std::span<const int64_t> positions, std::span<const Array> out) const override;
  Arrays sample(int64_t position) const override {
    check_position("concat", position);
    const size_t k = part_of(position);
    return parts_[k]->sample(position - begins_[k]);
  }

 private:
  bool has_same_columns(const Dataset& part) const {
    const auto same = [](const Column& a, const Column& b) {
      return a.dtype == b.dtype && a.shape == b.shape;
    };
    return part.has_columns() == has_columns() &&
           std::equal(part.columns().begin(), part.columns().end(), columns().begin(),
                      columns().end(), same);
  }
  size_t part_of(int64_t position) const {
    return size_t(std::upper_bound(begins_.begin(), begins_.end(), position) - begins_.begin()) - 1;
  }

  std::vector<DatasetPtr> parts_;
  std::vector<int64_t> begins_;  // of each part
};

// Row i of `from` becomes row rows[i] of `to`.
void copy_rows(const Array& from, const Array& to, const std::vector<size_t>& rows) {
  const auto bytes =
      size_t(to.size()) * itemsize(to.dtype()) / size_t(std::max<int64_t>(to.length(), 1));
  const char* source = static_cast<const char*>(from.raw_data());
  char* target = static_cast<char*>(to.raw_data());
  for (size_t i = 0; bytes > 0 && i < rows.size(); ++i)
    std::memcpy(target + rows[i] * bytes, source + i * bytes, bytes);
  to.note_write();
}

// Each part gathers its samples at once.
void Concat::gather(std::span<const int64_t> positions, std::span<const Array> out) const {
  check_gather(positions, out);
  std::vector<std::vector<int64_t>> theirs(parts_.size());
  std::vector<std::vector<size_t>> rows(parts_.size());
  for (size_t i = 0; i < positions.size(); ++i) {
    const size_t k = part_of(positions[i]);
    theirs[k].push_back(positions[i] - begins_[k]);
    rows[k].push_back(i);
  }
  for (size_t k = 0; k < parts_.size(); ++k) {
    if (theirs[k].empty()) continue;
    const Arrays found = parts_[k]->batch(theirs[k]);
    for (size_t c = 0; c < out.size(); ++c) copy_rows(found[c], out[c], rows[k]);
  }
}

class Map final : public Dataset {
 public:
  Map(DatasetPtr data, std::function<Arrays(const Arrays&)> change)
      : Dataset(data->size()), data_(std::move(data)), change_(std::move(change)) {}
  Arrays sample(int64_t position) const override {
    check_position("map", position);
    return change_(data_->sample(position));
  }

 private:
  DatasetPtr data_;
  std::function<Arrays(const Arrays&)> change_;
};

// Where each part ends in the random order.
std::vector<int64_t> ends_of(const std::vector<double>& parts, int64_t size) {
  double sum = 0;
  for (const double part : parts) {
    CATENA_CHECK(ValueError, part >= 0, "random_split: a part of ", part, ", expected at least 0");
    sum += part;
  }
  const bool fractions = std::abs(sum - 1) < 1e-9;
  CATENA_CHECK(ValueError, fractions || sum == double(size), "random_split: the parts add up to ",
               sum, ", expected 1, or the ", size, " samples of the data set");
  std::vector<int64_t> ends;
  double end = 0;
  for (const double part : parts) {
    end += part;
    ends.push_back(std::llround(fractions ? end * double(size) : end));
  }
  return ends;
}

}  // namespace

DatasetPtr subset(DatasetPtr data, std::vector<int64_t> positions) {
  return std::make_shared<Subset>(known("subset", std::move(data)), std::move(positions));
}

std::vector<DatasetPtr> random_split(const DatasetPtr& data, const std::vector<double>& parts,
                                     uint64_t seed) {
  const int64_t size = known("random_split", data)->size();
  const std::vector<int64_t> ends = ends_of(parts, size);
  const auto order = epoch_order(seed, 0, size).to_vector<int64_t>();
  std::vector<DatasetPtr> result;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    result.push_back(subset(data, {order.begin() + begin, order.begin() + end}));
    begin = end;
  }
  return result;
}

DatasetPtr concat(std::vector<DatasetPtr> parts) {
  CATENA_CHECK(ValueError, !parts.empty(), "concat: expected at least one data set");
  for (const DatasetPtr& part : parts) known("concat", part);
  return std::make_shared<Concat>(std::move(parts));
}

DatasetPtr map(DatasetPtr data, std::function<Arrays(const Arrays&)> change) {
  CATENA_CHECK(ValueError, change != nullptr, "map: the function is empty");
  return std::make_shared<Map>(known("map", std::move(data)), std::move(change));
}

}  // namespace catena::datasets
