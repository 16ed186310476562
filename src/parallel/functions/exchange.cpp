#include "exchange.h"

#include <algorithm>

#include "catena/array/manipulation.h"
#include "catena/core/dtype_info.h"

namespace catena::parallel {
namespace {

using Kind = Exchange::Kind;

struct Words {
  const char* node;
  const char* call;
  Kind adjoint;
  const char* header;
  const char* backward;
};

const Words& words_of(Kind kind) {
  static constexpr Words kWords[] = {
      {"Send", "send", Kind::kRecv, "the header of F::send", "backward of F::send"},
      {"Recv", "recv", Kind::kSend, "the header of F::recv", "backward of F::recv"},
      {"Broadcast", "broadcast", Kind::kReduce, "the header of F::broadcast",
       "backward of F::broadcast"},
      {"Reduce", "reduce", Kind::kBroadcast, "the header of F::reduce", "backward of F::reduce"},
      {"Scatter", "scatter", Kind::kGather, "the header of F::scatter", "backward of F::scatter"},
      {"Gather", "gather", Kind::kScatter, "the header of F::gather", "backward of F::gather"},
      {"AllGather", "all_gather", Kind::kReduceScatter, "the header of F::all_gather",
       "backward of F::all_gather"},
      {"ReduceScatter", "reduce_scatter", Kind::kAllGather, "the header of F::reduce_scatter",
       "backward of F::reduce_scatter"},
      {"AllToAll", "all_to_all", Kind::kAllToAll, "the header of F::all_to_all",
       "backward of F::all_to_all"},
      {"AllReduce", "all_reduce", Kind::kAllReduce, "the header of F::all_reduce",
       "backward of F::all_reduce"},
  };
  return kWords[static_cast<size_t>(kind)];
}

Array receive(Communicator& comm, const ArrayType& type, int source) {
  const Array out = Array::uninitialized(type.shape, type.dtype, comm.device());
  comm.recv(out, source);
  return out;
}

Array broadcast(Communicator& comm, const ArrayType& type, const Array& x, int root) {
  if (comm.rank() == root) return comm.broadcast(x, root);
  return comm.broadcast(Array::uninitialized(type.shape, type.dtype, comm.device()), root);
}

Array scatter(Communicator& comm, const ArrayType& piece, const Array& x, int root) {
  // Pieces have a first axis; that of a gathered 0-d array is dropped behind.
  const Shape shape = piece.shape.empty() ? Shape{1} : piece.shape;
  return comm.scatter(x, Array::uninitialized(shape, piece.dtype, comm.device()), root);
}

}  // namespace

const char* Exchange::name() const { return words_of(kind).node; }

std::string Exchange::describe() const {
  std::string text = words_of(kind).call;
  if (kind == Kind::kSend) return message(text, " to rank ", peer);
  if (kind == Kind::kRecv) return message(text, " from rank ", peer);
  return text;
}

const char* Exchange::backward() const { return words_of(kind).backward; }

const char* header_of(Kind kind) { return words_of(kind).header; }

Exchange Exchange::adjoint() const { return {words_of(kind).adjoint, peer, op, out, in}; }

Array Exchange::run(Communicator& comm, const Array& x) const {
  const auto make = [&]() -> Array {
    switch (kind) {
      case Kind::kSend: comm.send(x, peer); return {};
      case Kind::kRecv: return receive(comm, *out, peer);
      case Kind::kBroadcast: return broadcast(comm, *out, x, peer);
      case Kind::kReduce: return comm.reduce(x, comm::Reduction::kSum, peer);
      case Kind::kScatter: return scatter(comm, *out, x, peer);
      case Kind::kGather: return comm.gather(x, peer);
      case Kind::kAllGather: return comm.all_gather(x);
      case Kind::kReduceScatter: return comm.reduce_scatter(x);
      case Kind::kAllToAll: return comm.all_to_all(x);
      case Kind::kAllReduce: return comm.all_reduce(x, op);
    }
    return {};
  };
  const Array y = make();
  return out && y.defined() && y.shape() != out->shape ? y.reshape(out->shape) : y;
}

// recorded, dtype, extents.
std::vector<int64_t> pack_header(const TypeHeader& header) {
  std::vector<int64_t> words{header.recorded, static_cast<int64_t>(header.type.dtype)};
  words.insert(words.end(), header.type.shape.begin(), header.type.shape.end());
  return words;
}

TypeHeader unpack_header(const std::vector<int64_t>& words, const char* who) {
  const auto is_extent = [](int64_t n) { return n >= 0; };
  CATENA_CHECK(CommError,
               words.size() >= 2 && words[1] >= 0 && words[1] < int64_t(kDtypeCount) &&
                   std::all_of(words.begin() + 2, words.end(), is_extent),
               who,
               ": got a message that is not the header of an array; the other rank must call "
               "the function of the same kind, with a header");
  return {{Shape(words.begin() + 2, words.end()), static_cast<Dtype>(words[1])}, words[0] != 0};
}

}  // namespace catena::parallel
