#include "functions/caffe/import/message.h"

#include <protozero/varint.hpp>

namespace catena::functions::caffe {

using protozero::pbf_wire_type;

// What protozero throws, as an IoError about the current field.
template <class Read>
auto Message::guarded(Read read) {
  try {
    return read();
  } catch (const protozero::end_of_buffer_exception&) {
    refuse("the file, or the message, ends inside a field");
  } catch (const protozero::unknown_pbf_wire_type_exception&) {
    refuse("a field of a wire type that protocol buffers do not have");
  } catch (const protozero::invalid_tag_exception&) {
    refuse("a field of a number that protocol buffers do not have");
  } catch (const protozero::exception&) {
    refuse("an integer of more than 64 bits");
  }
}

bool Message::next() {
  if (!is_read_) skip();
  at_ = reader_.data().data();
  is_read_ = false;
  return guarded([&] { return reader_.next(); });
}

bool Message::is_bytes() const { return reader_.has_wire_type(pbf_wire_type::length_delimited); }

void Message::skip() {
  if (is_bytes())
    bytes();
  else
    guarded([&] { reader_.skip(); });
}

void Message::expect(pbf_wire_type type, const char* what) const {
  if (!reader_.has_wire_type(type))
    refuse("field ", field(), " is expected to hold ", what, ", but has wire type ",
           int(reader_.wire_type()));
}

int64_t Message::integer() {
  expect(pbf_wire_type::varint, "an integer");
  is_read_ = true;
  return guarded([&] { return reader_.get_int64(); });
}

float Message::number() {
  expect(pbf_wire_type::fixed32, "a float");
  is_read_ = true;
  return guarded([&] { return reader_.get_float(); });
}

std::string_view Message::bytes() {
  expect(pbf_wire_type::length_delimited, "bytes");
  is_read_ = true;
  return guarded([&] {
    const char* first = reader_.data().data();
    const char* const end = first + reader_.length();
    const uint64_t length = protozero::decode_varint(&first, end);
    if (length > static_cast<uint64_t>(end - first))
      refuse("field ", field(), " has ", length, " bytes, but the file or the message ends after ",
             end - first);
    if (length > UINT32_MAX)
      refuse("field ", field(), " has ", length, " bytes, more than protocol buffers allow");
    const protozero::data_view view = reader_.get_view();
    return std::string_view(view.data(), view.size());
  });
}

void Message::add_to(std::vector<int64_t>& integers) {
  if (!is_bytes()) return integers.push_back(integer());
  const std::string_view packed = bytes();
  guarded([&] {
    const char* first = packed.data();
    const char* const end = first + packed.size();
    while (first != end)
      integers.push_back(static_cast<int64_t>(protozero::decode_varint(&first, end)));
  });
}

std::string_view Message::floats(size_t width) {
  if (is_bytes()) {
    const std::string_view values = bytes();
    if (values.size() % width != 0)
      refuse("field ", field(), " has ", values.size(), " bytes, which are no floats of ", width);
    return values;
  }
  expect(width == 4 ? pbf_wire_type::fixed32 : pbf_wire_type::fixed64, "floats");
  const char* first = reader_.data().data();
  skip();
  is_read_ = true;
  return {first, width};
}

}  // namespace catena::functions::caffe
