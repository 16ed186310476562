// Where pictures come from: the files of a list, or records.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "decoding.h"
#include "picture_list.h"

namespace imagenet {

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

}  // namespace imagenet
