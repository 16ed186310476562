// Reading of case files: an .npz with the bytes of all arrays in one member and a line of JSON for
// each case in another, which loads much faster than a member for each array.
#include <nlohmann/json.hpp>
#include <string_view>

#include "catena/array/io.h"
#include "oracle/oracle.h"

namespace catena::oracle {
namespace {

using Json = nlohmann::json;

std::string_view text_of(const Array& a) {
  return {static_cast<const char*>(a.raw_data()), static_cast<size_t>(a.nbytes())};
}

Dims dims_of(const Json& list) {
  Dims dims;
  for (const Json& x : list) dims.push_back(x.get<int64_t>());
  return dims;
}

// Floats are text in C's hexadecimal form, since JSON has neither NaN nor all digits.
Value value_of(const Json& json) {
  Value v;
  if (json.is_array()) {
    v.kind = Value::Kind::kList;
    for (const Json& x : json) v.list.push_back(value_of(x));
  } else if (json.is_object()) {
    v.kind = Value::Kind::kReal;
    v.real = std::strtod(json.at("f").get<std::string>().c_str(), nullptr);
  } else if (json.is_string()) {
    v.kind = Value::Kind::kText;
    v.text = json.get<std::string>();
  } else if (!json.is_null()) {
    v.kind = Value::Kind::kInteger;
    v.integer = json.is_boolean() ? json.get<bool>() : json.get<int64_t>();
  }
  return v;
}

Scalar scalar_of(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_object()) return value_of(json).real;
  if (json.is_number_unsigned()) {
    const auto u = json.get<uint64_t>();
    if (u > uint64_t{INT64_MAX}) return u;
  }
  return json.get<int64_t>();
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  Bytes piece(const Json& place) const {
    const auto offset = place.at(0).get<size_t>(), size = place.at(1).get<size_t>();
    if (offset > bytes_.size() || size > bytes_.size() - offset)
      throw std::runtime_error("case file: bytes beyond the end of the buffer");
    return {bytes_.data() + offset, size,
            place.size() > 2 ? parse_dtype(place.at(2).get<std::string>()) : Dtype::kUInt8};
  }

  Case read(std::string line) const {
    const Json json = Json::parse(line);
    Case c;
    c.routine = json.at("r").get<std::string>();
    for (const Json& block : json.at("b")) c.blocks.push_back(piece(block));
    for (const Json& argument : json.at("a")) c.arguments.push_back(read_argument(argument));
    for (const auto& [name, value] : json.at("p").items()) c.parameters[name] = value_of(value);
    if (json.contains("x")) c.error = json.at("x").get<std::vector<std::string>>();
    if (json.contains("e")) {
      for (const Json& e : json.at("e")) c.expected.push_back(read_expected(e));
    }
    if (json.contains("n")) c.result_names = json.at("n").get<std::vector<std::string>>();
    if (json.contains("c")) c.name = json.at("c").get<std::string>();
    if (json.contains("m")) c.shared = json.at("m").get<bool>();
    if (json.contains("w")) {
      for (const Json& w : json.at("w"))
        c.blocks_afterwards[w.at(0).get<size_t>()] = piece(w.at(1));
    }
    c.text = std::move(line);
    return c;
  }

 private:
  static Argument read_argument(const Json& json) {
    Argument argument;
    if (!json.is_object() || json.contains("f")) {
      argument.scalar = scalar_of(json);
      return argument;
    }
    argument.view = View{json.at("b").get<size_t>(), parse_dtype(json.at("d").get<std::string>()),
                         dims_of(json.at("s")), dims_of(json.at("t")), json.at("o").get<int64_t>()};
    return argument;
  }

  Expected read_expected(const Json& json) const {
    Expected e{parse_dtype(json.at("d").get<std::string>()), dims_of(json.at("s")), nullptr,
               nullptr};
    const size_t bytes = static_cast<size_t>(element_count(e.shape)) * itemsize(e.dtype);
    const auto get = [&](const char* name) {
      const Bytes b = piece(json.at(name));
      if (b.size != bytes) throw std::runtime_error("case file: expected bytes of a wrong size");
      return b.data;
    };
    e.low = get("l");
    if (json.contains("h")) e.high = get("h");
    return e;
  }

  std::string_view bytes_;
};

}  // namespace

Index index_of(const Value& v) {
  if (v.kind == Value::Kind::kInteger) return v.integer;
  if (v.kind == Value::Kind::kText) return v.text == "..." ? Index(ellipsis) : Index(newaxis);
  const auto bound = [&](size_t k) {
    return v.list.at(k).none() ? std::nullopt : std::optional(v.list[k].integer);
  };
  return Slice(bound(0), bound(1), bound(2).value_or(1));
}

CaseFile read_case_file(const std::string& path) {
  auto members = load_npz(path);
  CaseFile file;
  file.buffer = members.at("buffer");
  const Json about = Json::parse(text_of(members.at("about")));
  file.origin = about.at("origin").get<std::string>();
  file.seed = about.at("seed").dump();
  const Reader reader(text_of(file.buffer));
  std::string_view lines = text_of(members.at("cases"));
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    file.cases.push_back(reader.read(std::string(lines.substr(0, end))));
    lines.remove_prefix(end == lines.npos ? lines.size() : end + 1);
  }
  return file;
}

}  // namespace catena::oracle
