// Where pictures come from: the files of a list, or arrays.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "catena/array/array.h"
#include "common/decoding.h"
#include "common/picture_list.h"

namespace examples {

// Labelled pictures, all of whose functions may be called by several threads at once.
class Source {
 public:
  virtual ~Source() = default;
  int64_t size() const { return size_; }
  virtual Picture read(int64_t i) const = 0;  // IoError for one that does not decode
  virtual int32_t label(int64_t i) const = 0;
  virtual std::string name(int64_t i) const = 0;  // for messages

 protected:
  explicit Source(int64_t size) : size_(size) {}

 private:
  int64_t size_;
};

// Decodes the files of a list when they are asked for.
class ListSource final : public Source {
 public:
  explicit ListSource(std::vector<LabelledPath> list)
      : Source(std::ssize(list)), list_(std::move(list)) {}
  Picture read(int64_t i) const override { return read_picture(list_[size_t(i)].path); }
  int32_t label(int64_t i) const override { return list_[size_t(i)].label; }
  std::string name(int64_t i) const override { return list_[size_t(i)].path; }

 private:
  std::vector<LabelledPath> list_;
};

// Pictures in arrays: uint8 (n, height, width, 3), and labels, int32 (n).
class ArraySource final : public Source {
 public:
  ArraySource(catena::Array pictures, catena::Array labels)
      : Source(pictures.length()), pictures_(std::move(pictures)), labels_(std::move(labels)) {}
  Picture read(int64_t i) const override {
    const int64_t height = pictures_.shape()[1], width = pictures_.shape()[2];
    const uint8_t* const from = pictures_.data<uint8_t>() + i * height * width * 3;
    return {height, width, std::vector<uint8_t>(from, from + height * width * 3)};
  }
  int32_t label(int64_t i) const override { return labels_.data<int32_t>()[i]; }
  std::string name(int64_t i) const override { return "picture " + std::to_string(i); }

 private:
  catena::Array pictures_, labels_;
};
// Where the arrays are from, for messages.
struct ArrayFiles {
  std::string pictures, labels;  // files
  std::string writer;            // the program that writes such files
};
// A source of arrays on a CPU. ShapeError for other arrays, IoError for labels outside
// [0, classes).
std::shared_ptr<const Source> source_of(const catena::Array& pictures, const catena::Array& labels,
                                        int64_t classes, const ArrayFiles& files);

}  // namespace examples
