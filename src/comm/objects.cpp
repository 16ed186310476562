// Host objects: their byte formats and the calls that move them as host arrays.
#include "catena/comm/objects.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "catena/array/creation.h"
#include "communicator_state.h"
#include "core/text_hash.h"

namespace catena::comm {

namespace detail {
void fail_unpack(size_t got, size_t expected) {
  fail<CommError>("received an object of ", got, " bytes, expected ", expected,
                  " (or a multiple); sender and receiver name different types");
}

namespace {
std::string readable(const char* type) {
  if (type == std::string_view(typeid(std::string).name())) return "std::string";
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type, nullptr, nullptr, nullptr), std::free);
  return name ? name.get() : type;
}
}  // namespace

std::string readable(const std::type_info& type) { return readable(type.name()); }

std::string strip_type(std::string&& bytes, const std::type_info& expected) {
  const size_t end = bytes.find('\0');
  if (end == std::string::npos) fail_unpack(bytes.size(), std::strlen(expected.name()) + 1);
  const std::string sent = bytes.substr(0, end);
  CATENA_CHECK(CommError, sent == expected.name(), "received an object of type ",
               readable(sent.c_str()), ", expected ", readable(expected.name()),
               ": all ranks must name the same type in one object call");
  bytes.erase(0, end + 1);
  return std::move(bytes);
}
}  // namespace detail

namespace {

class Writer {
 public:
  void number(int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value) {
    number(static_cast<int64_t>(value.size()));
    bytes_.append(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  int64_t number() {
    int64_t value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text() { return take(static_cast<size_t>(number())); }

 private:
  std::string_view take(size_t n) {
    CATENA_CHECK(CommError, n <= bytes_.size(), "received named arrays of which ", bytes_.size(),
                 " bytes are left where ", n, " are needed; the sender sent another type");
    const std::string_view result = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return result;
  }
  std::string_view bytes_;
};

}  // namespace

std::string pack_named_arrays(const NamedArrays& arrays) {
  Writer out;
  out.number(static_cast<int64_t>(arrays.size()));
  for (const auto& [key, array] : arrays) {
    Array host = array.to_cpu().contiguous();
    if (array.device().is_cuda()) current_stream(array.device()).synchronize();
    out.text(key);
    out.text(name(host.dtype()));
    out.number(host.ndim());
    for (int64_t extent : host.shape()) out.number(extent);
    out.text({static_cast<const char*>(host.raw_data()), static_cast<size_t>(host.nbytes())});
  }
  return out.take();
}

NamedArrays unpack_named_arrays(std::string_view bytes) {
  Reader in(bytes);
  NamedArrays result;
  for (int64_t left = in.number(); left > 0; --left) {
    std::string key(in.text());
    const Dtype dtype = parse_dtype(in.text());
    Shape shape;
    for (int64_t dims = in.number(); dims > 0; --dims) shape.push_back(in.number());
    const std::string_view data = in.text();
    Array array = Array::uninitialized(shape, dtype, cpu(0));
    CATENA_CHECK(CommError, static_cast<int64_t>(data.size()) == array.nbytes(), "received ",
                 data.size(), " bytes for array '", key, "' of shape ", shape, " and dtype ",
                 dtype);
    if (!data.empty()) std::memcpy(array.raw_data(), data.data(), data.size());
    result.emplace_back(std::move(key), std::move(array));
  }
  return result;
}

namespace {

// Pieces up to this size are gathered in one padded call, larger ones one by one.
constexpr int64_t kPadded = 64 * 1024;

// The exchange of lengths that begins an object call, and the call that then moves the bytes.
CallSignature lengths_by(CommOp op, const std::type_info* type, int root = -1) {
  CallSignature call{.op = op, .dtype = Dtype::kInt64, .kind = CallKind::kObject, .root = root};
  if (type) call.tag = {TagKind::kObject, 0, int32_t(uint32_t(text_hash(type->name())))};
  return call;
}
CallSignature bytes_by(CommOp op, int root = -1) {
  return {.op = op, .dtype = Dtype::kUInt8, .root = root};
}

Array view_bytes(const void* data, int64_t count, Dtype dtype) {
  return borrow_array(const_cast<void*>(data), {count}, dtype, cpu(0));
}

}  // namespace

// One host call on raw memory; in or out may be null. The call's count is the smaller one (the
// piece), except for calls in which both are equal.
void Communicator::host_call(const CallSignature& call, void* in, int64_t in_count, void* out,
                             int64_t out_count, const std::type_info* type) {
  Request request{.who = "object call", .call = call, .type = type};
  if (in) request.input = view_bytes(in, in_count, call.dtype);
  if (out) request.output = view_bytes(out, out_count, call.dtype);
  request.call.count = !in ? out_count : !out ? in_count : std::min(in_count, out_count);
  CATENA_CHECK(CommError, !state_->grouping, "object calls cannot be part of a group");
  submit_to_host(request);
}

std::string Communicator::broadcast_bytes(std::string bytes, int root, const std::type_info* type) {
  const OneThread caller(*this, "broadcast_object");
  check_peer("broadcast_object", root, "root");
  const bool sends = rank() == root;
  int64_t length = static_cast<int64_t>(bytes.size());
  host_call(lengths_by(CommOp::kBroadcast, type, root), sends ? &length : nullptr, 1,
            sends ? nullptr : &length, 1, type);
  bytes.resize(static_cast<size_t>(length));
  if (length > 0)
    host_call(bytes_by(CommOp::kBroadcast, root), sends ? bytes.data() : nullptr, length,
              sends ? nullptr : bytes.data(), length);
  return bytes;
}

std::vector<std::string> Communicator::all_gather_bytes(const std::string& bytes,
                                                        const std::type_info* type) {
  const OneThread caller(*this, "all_gather_object");
  const size_t ranks = static_cast<size_t>(size());
  int64_t length = static_cast<int64_t>(bytes.size());
  std::vector<int64_t> lengths(ranks);
  host_call(lengths_by(CommOp::kAllGather, type), &length, 1, lengths.data(), size(), type);
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::vector<std::string> result(ranks);
  if (longest == 0) return result;
  if (longest <= kPadded) {
    std::string padded = bytes;
    padded.resize(static_cast<size_t>(longest));
    std::string all(static_cast<size_t>(longest) * ranks, '\0');
    host_call(bytes_by(CommOp::kAllGather), padded.data(), longest, all.data(), longest * size());
    for (size_t r = 0; r < ranks; ++r)
      result[r] = all.substr(r * static_cast<size_t>(longest), static_cast<size_t>(lengths[r]));
    return result;
  }
  for (size_t r = 0; r < ranks; ++r) {
    const bool sends = rank() == static_cast<int>(r);
    result[r] = sends ? bytes : std::string(static_cast<size_t>(lengths[r]), '\0');
    if (lengths[r] > 0)
      host_call(bytes_by(CommOp::kBroadcast, static_cast<int>(r)),
                sends ? result[r].data() : nullptr, lengths[r], sends ? nullptr : result[r].data(),
                lengths[r]);
  }
  return result;
}

std::vector<std::string> Communicator::gather_bytes(const std::string& bytes, int root,
                                                    const std::type_info* type) {
  const OneThread caller(*this, "gather_object");
  check_peer("gather_object", root, "root");
  const bool receives = rank() == root;
  int64_t length = static_cast<int64_t>(bytes.size());
  std::vector<int64_t> lengths(static_cast<size_t>(size()));
  host_call(lengths_by(CommOp::kGather, type, root), &length, 1,
            receives ? lengths.data() : nullptr, size(), type);
  if (!receives) {
    if (length > 0)
      host_call(bytes_by(CommOp::kSend, root), const_cast<char*>(bytes.data()), length, nullptr, 0);
    return {};
  }
  std::vector<std::string> result(lengths.size());
  for (size_t r = 0; r < lengths.size(); ++r) {
    if (static_cast<int>(r) == root) {
      result[r] = bytes;
      continue;
    }
    result[r].resize(static_cast<size_t>(lengths[r]));
    if (lengths[r] > 0)
      host_call(bytes_by(CommOp::kRecv, static_cast<int>(r)), nullptr, 0, result[r].data(),
                lengths[r]);
  }
  return result;
}

std::string Communicator::scatter_bytes(const std::vector<std::string>& pieces, int root,
                                        const std::type_info* type) {
  const OneThread caller(*this, "scatter_object");
  check_peer("scatter_object", root, "root");
  const bool sends = rank() == root;
  CATENA_CHECK(ValueError, !sends || static_cast<int>(pieces.size()) == size(),
               "scatter_object: the root has ", pieces.size(), " objects for ", size(), " ranks");
  std::vector<int64_t> lengths;
  for (const std::string& piece : pieces) lengths.push_back(static_cast<int64_t>(piece.size()));
  int64_t length = 0;
  host_call(lengths_by(CommOp::kScatter, type, root), sends ? lengths.data() : nullptr, size(),
            &length, 1, type);
  if (!sends) {
    std::string result(static_cast<size_t>(length), '\0');
    if (length > 0) host_call(bytes_by(CommOp::kRecv, root), nullptr, 0, result.data(), length);
    return result;
  }
  for (int r = 0; r < size(); ++r) {
    const std::string& piece = pieces[static_cast<size_t>(r)];
    if (r != root && !piece.empty())
      host_call(bytes_by(CommOp::kSend, r), const_cast<char*>(piece.data()),
                static_cast<int64_t>(piece.size()), nullptr, 0);
  }
  return pieces[static_cast<size_t>(root)];
}

void Communicator::send_bytes(const std::string& bytes, int destination) {
  const OneThread caller(*this, "send_object");
  check_other("send_object", destination, "destination");
  int64_t length = static_cast<int64_t>(bytes.size());
  host_call({.op = CommOp::kSend, .dtype = Dtype::kInt64, .root = destination}, &length, 1, nullptr,
            0);
  if (length > 0)
    host_call(bytes_by(CommOp::kSend, destination), const_cast<char*>(bytes.data()), length,
              nullptr, 0);
}

std::string Communicator::recv_bytes(int source) {
  const OneThread caller(*this, "recv_object");
  check_other("recv_object", source, "source");
  int64_t length = 0;
  host_call({.op = CommOp::kRecv, .dtype = Dtype::kInt64, .root = source}, nullptr, 0, &length, 1);
  std::string bytes(static_cast<size_t>(length), '\0');
  if (length > 0) host_call(bytes_by(CommOp::kRecv, source), nullptr, 0, bytes.data(), length);
  return bytes;
}

void Communicator::reduce_value(void* value, Dtype dtype, const Reduce& op) {
  CATENA_CHECK(DtypeError,
               is_float(dtype) || (op.kind != Reduction::kMean && op.kind != Reduction::kWeighted),
               "all_reduce_value: ", op.kind, " needs a floating type, got ", dtype);
  Request request{
      .who = "all_reduce_value",
      .call = {.op = CommOp::kAllReduce, .dtype = dtype, .reduction = op.kind, .count = 1},
      .weight = op.weight};
  request.input = request.output = view_bytes(value, 1, dtype);
  CATENA_CHECK(CommError, !state_->grouping, "object calls cannot be part of a group");
  submit_to_host(request);
}

}  // namespace catena::comm
