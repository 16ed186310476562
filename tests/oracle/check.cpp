// A case's arguments on the device, the call, and the comparison with what NumPy says.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "catena/array/creation.h"
#include "oracle/oracle.h"

namespace catena::oracle {

Call::Call(const Case& c, Device device) : case_(c), device_(device) {
  for (const Bytes& b : c.blocks) {
    blocks_.push_back(
        array_from_bytes(b.data, {static_cast<int64_t>(b.size)}, Dtype::kUInt8, device));
  }
  for (const Argument& argument : c.arguments) {
    Array a;
    if (argument.view) {
      const View& v = *argument.view;
      const Array& block = blocks_.at(v.block);
      const auto start = static_cast<const char*>(block.raw_data()) -
                         static_cast<const char*>(block.storage()->data);
      a = Array::from_storage(block.storage(), start + v.offset, v.shape, v.strides, v.dtype);
    }
    arrays_.push_back(a);
  }
}

const Array& Call::array(size_t k) const {
  if (k >= arrays_.size() || !arrays_[k].defined())
    throw std::logic_error("argument " + std::to_string(k) + " is not an array");
  return arrays_[k];
}

Operand Call::operand(size_t k) const {
  return case_.arguments.at(k).view ? Operand(arrays_[k]) : Operand(scalar(k));
}

std::vector<Array> Call::arrays(size_t k) const {
  std::vector<Array> list;
  for (; k < arrays_.size(); ++k) {
    if (!has("out") || static_cast<int64_t>(k) != integer("out")) list.push_back(array(k));
  }
  return list;
}

bool Call::has(const std::string& name) const {
  const auto at = case_.parameters.find(name);
  return at != case_.parameters.end() && !at->second.none();
}
const Value& Call::parameter(const std::string& name) const {
  const auto at = case_.parameters.find(name);
  if (at == case_.parameters.end()) throw std::logic_error("no parameter named " + name);
  return at->second;
}
int64_t Call::integer(const std::string& name) const {
  const Value& v = parameter(name);
  if (v.kind != Value::Kind::kInteger) throw std::logic_error(name + " is not an integer");
  return v.integer;
}
int64_t Call::integer(const std::string& name, int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}
std::optional<int64_t> Call::optional_integer(const std::string& name) const {
  return has(name) ? std::optional<int64_t>(integer(name)) : std::nullopt;
}
double Call::real(const std::string& name) const {
  const Value& v = parameter(name);
  return v.kind == Value::Kind::kReal ? v.real : static_cast<double>(integer(name));
}
Dims Call::dims(const std::string& name) const {
  Dims dims;
  if (!has(name)) return dims;
  if (parameter(name).kind != Value::Kind::kList) return {integer(name)};
  for (const Value& v : parameter(name).list) dims.push_back(v.integer);
  return dims;
}
std::optional<Dtype> Call::dtype(const std::string& name) const {
  if (!has(name)) return {};
  return parse_dtype(parameter(name).text);
}
const Array* Call::out_array() const {
  return has("out") ? &array(static_cast<size_t>(integer("out"))) : nullptr;
}
Out Call::out() const {
  Out out;
  out.array = out_array();
  out.dtype = dtype();
  return out;
}
std::vector<char> Call::block_bytes(size_t k) const {
  const Array host = blocks_.at(k).to_cpu();
  const char* data = static_cast<const char*>(host.raw_data());
  return {data, data + host.nbytes()};
}

namespace {

// "(1, 4)": the position of the i-th element in C order.
std::string position_text(int64_t i, const Shape& shape) {
  Dims position(shape.size(), 0);
  for (int d = shape.ndim() - 1; d >= 0; --d) {
    position[size_t(d)] = i % shape[size_t(d)];
    i /= shape[size_t(d)];
  }
  return to_string(position);
}

template <class T>
T read(const char* data, int64_t i) {
  T value;
  std::memcpy(&value, data + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <class T>
std::string number_text(T value) {
  std::ostringstream os;
  if constexpr (kIsDtypeStorage<T> && !std::is_integral_v<T>) {
    const auto x = static_cast<compute_t<T>>(value);
    os.precision(std::is_same_v<T, double> ? 17 : 9);
    os << x << " (" << std::hexfloat << x << ")";
  } else {
    os << +value;
  }
  return os.str();
}

template <class T>
bool agrees(T got, T low, const T* high) {
  if constexpr (std::is_integral_v<T>) {
    return got == low && !high;
  } else {
    const auto g = static_cast<compute_t<T>>(got), l = static_cast<compute_t<T>>(low);
    if (std::isnan(g) || std::isnan(l)) return std::isnan(g) && std::isnan(l);
    if (!high) return std::memcmp(&got, &low, sizeof(T)) == 0;
    return g >= l && g <= static_cast<compute_t<T>>(*high);
  }
}

std::optional<Failure> compare_values(const char* data, const Expected& e) {
  const int64_t count = element_count(e.shape);
  return visit_dtype(e.dtype, [&](auto tag) -> std::optional<Failure> {
    using T = std::conditional_t<std::is_same_v<typename decltype(tag)::type, bool>, uint8_t,
                                 typename decltype(tag)::type>;
    for (int64_t i = 0; i < count; ++i) {
      const T g = read<T>(data, i), low = read<T>(e.low, i);
      T high = low;
      if (e.high) high = read<T>(e.high, i);
      if (agrees(g, low, e.high ? &high : nullptr)) continue;
      std::string wanted = number_text(low);
      if (e.high) wanted += " to " + number_text(high);
      return Failure{"value", "element " + position_text(i, e.shape) + ": expected " + wanted +
                                  ", got " + number_text(g)};
    }
    return {};
  });
}

std::optional<Failure> compare(const Array& got, const Expected& e) {
  if (got.dtype() != e.dtype)
    return Failure{"dtype", message("expected ", e.dtype, ", got ", got.dtype())};
  if (got.shape() != e.shape)
    return Failure{"shape", message("expected ", e.shape, ", got ", got.shape())};
  const Array host = got.to_cpu().contiguous();
  return compare_values(static_cast<const char*>(host.raw_data()), e);
}

std::optional<Failure> compare_block(const Call& call, size_t block, const Bytes& wanted) {
  const auto bytes = call.block_bytes(block);
  const auto count = static_cast<int64_t>(bytes.size() / itemsize(wanted.dtype));
  auto failure = compare_values(bytes.data(), Expected{wanted.dtype, {count}, wanted.data});
  if (failure) *failure = {"written memory", message("block ", block, ": ", failure->detail)};
  return failure;
}

template <class... Types>
bool is_one_of(const Error& error) {
  return (... || (dynamic_cast<const Types*>(&error) != nullptr));
}

// Whether the error is of a type that stands for NumPy's.
bool stands_for(const Error& error, const std::string& numpy) {
  if (numpy == "IndexError") return is_one_of<IndexError>(error);
  if (numpy == "TypeError") return is_one_of<DtypeError>(error);
  if (numpy == "OverflowError") return is_one_of<ValueError>(error);
  if (numpy == "ValueError") return is_one_of<ValueError, ShapeError>(error);
  throw std::runtime_error("case file: unknown error " + numpy);
}

// What a result is a view of, where it is one: of the argument at its position where there are as
// many results as arguments, else of the first.
const Array& source(const Call& call, size_t result, size_t results) {
  return call.array(results == call.count() ? result : 0);
}

// An array without elements may lie anywhere.
std::optional<Failure> check_sharing(const Call& call, const Results& results, bool expected) {
  for (size_t k = 0; k < results.size(); ++k) {
    if (results[k].size() == 0) continue;
    if ((results[k].storage() == source(call, k, results.size()).storage()) == expected) continue;
    return Failure{"view", message("result ", k,
                                   expected ? ": expected a view, got a copy"
                                            : ": expected a copy, got a view")};
  }
  return {};
}

}  // namespace

std::optional<Failure> check(const Case& c, const Routine& routine, Device device) {
  const DeviceScope scope(device);
  const Call call(c, device);
  Results results;
  try {
    results = routine(call);
  } catch (const Error& error) {
    if (!c.error) return Failure{"error", error.what()};
    const auto fits = [&](const std::string& name) { return stands_for(error, name); };
    if (std::ranges::any_of(*c.error, fits)) return {};
    return Failure{"type of error",
                   message("NumPy raises ", c.error->front(), ", got: ", error.what())};
  } catch (const std::exception& error) {
    return Failure{"unexpected exception", error.what()};
  }
  if (c.error) return Failure{"no error", "NumPy refuses this"};
  if (results.size() != c.expected.size())
    return Failure{"results", message("expected ", c.expected.size(), ", got ", results.size())};
  for (size_t k = 0; k < results.size(); ++k) {
    if (results[k].device() != device)
      return Failure{"device", message("the result is on ", results[k].device())};
    if (auto failure = compare(results[k], c.expected[k])) {
      if (k < c.result_names.size())
        failure->detail = message(c.result_names[k], ": ", failure->detail);
      else if (k > 0)
        failure->detail = message("result ", k, ": ", failure->detail);
      return failure;
    }
  }
  if (c.shared) {
    if (auto failure = check_sharing(call, results, *c.shared)) return failure;
  }
  for (size_t k = 0; k < c.blocks.size(); ++k) {
    Bytes wanted = c.blocks[k];
    if (const auto changed = c.blocks_afterwards.find(k); changed != c.blocks_afterwards.end())
      wanted.data = changed->second.data;
    if (auto failure = compare_block(call, k, wanted)) return failure;
  }
  return {};
}

}  // namespace catena::oracle
