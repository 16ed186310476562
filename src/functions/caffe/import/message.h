// Messages in the wire format of protocol buffers, read where they are in the bytes of a file. On
// top of protozero's reader: what is wrong is an IoError with its offset, types of values are
// checked, and lengths have 64 bits.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "catena/core/error.h"

namespace catena::functions::caffe {

// The bytes of a model's file. They stay where they are while messages refer to them.
struct ModelBytes {
  std::string path;
  std::string_view bytes;

  uint64_t offset_of(const char* position) const {
    return static_cast<uint64_t>(position - bytes.data());
  }
  // IoError: "CaffeFunction: 'path', at byte 17: ...".
  template <class... Parts>
  [[noreturn]] void refuse(uint64_t offset, const Parts&... parts) const {
    fail<IoError>("CaffeFunction: '", path, "', at byte ", offset, ": ", parts...);
  }
};

// One message: its fields in the order of the file. A field whose value is not taken is skipped.
// Whatever the format does not allow, and a value of another type than asked for, is an IoError
// with the field's offset.
class Message {
 public:
  Message(const ModelBytes& file, std::string_view bytes)
      : file_(&file), reader_(bytes.data(), bytes.size()), at_(bytes.data()) {}

  // Goes to the next field; false at the end.
  bool next();
  // The field's number, and where in the file it begins.
  uint32_t field() const { return reader_.tag(); }
  uint64_t offset() const { return file_->offset_of(at_); }
  // Whether its value is bytes: a text, a message or packed numbers.
  bool is_bytes() const;

  // Its value. Integers of all kinds, and of enumerations.
  int64_t integer();
  bool flag() { return integer() != 0; }
  float number();
  std::string_view bytes();
  std::string text() { return std::string(bytes()); }
  Message message() { return Message(*file_, bytes()); }
  // The value of a repeated field of numbers, which may be one of them or, packed, many: integers,
  // and the bytes of floats of `width` bytes each.
  void add_to(std::vector<int64_t>& integers);
  std::string_view floats(size_t width);
  // Reads the value into `to` if the field has this number.
  void read(uint32_t wanted, int64_t& to) {
    if (field() == wanted) to = integer();
  }
  void read(uint32_t wanted, bool& to) {
    if (field() == wanted) to = flag();
  }
  void read(uint32_t wanted, double& to) {
    if (field() == wanted) to = number();
  }
  void read(uint32_t wanted, std::vector<int64_t>& to) {
    if (field() == wanted) add_to(to);
  }

  const ModelBytes& file() const { return *file_; }
  // IoError about the current field.
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    file_->refuse(offset(), parts...);
  }

 private:
  template <class Read>
  auto guarded(Read read);
  void skip();
  void expect(protozero::pbf_wire_type type, const char* what) const;

  const ModelBytes* file_;
  protozero::pbf_reader reader_;
  const char* at_;
  bool is_read_ = true;
};

}  // namespace catena::functions::caffe
