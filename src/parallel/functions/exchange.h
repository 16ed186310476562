// A communication as a linear map over ranks, and its adjoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catena/parallel/functions.h"

namespace catena::parallel {

// One call as one rank makes it: a map from what this rank gives to what it gets. It says which it
// is, and its adjoint is an Exchange as well.
struct Exchange {
  // Reductions are sums, but for kAllReduce, which may be a mean.
  enum class Kind : uint8_t {
    kSend,
    kRecv,
    kBroadcast,
    kReduce,
    kScatter,
    kGather,
    kAllGather,
    kReduceScatter,
    kAllToAll,
    kAllReduce,
  };

  Kind kind;
  int peer = -1;  // the other rank, or the root
  comm::Reduction op = comm::Reduction::kSum;
  std::optional<ArrayType> in = {};   // empty: this rank gives nothing
  std::optional<ArrayType> out = {};  // empty: it gets nothing

  // For nodes of the graph: "AllReduce".
  const char* name() const;
  // For errors: "send to rank 3", "all_gather".
  std::string describe() const;
  // What calls of backward serve, for PurposeScope: "backward of F::send".
  const char* backward() const;
  Exchange adjoint() const;
  // Makes the call. x is undefined where `in` is empty, the result where `out` is. What a rank
  // receives without giving must have its type in `out`.
  Array run(Communicator& comm, const Array& x) const;
};

// The same for the exchange of types in front: "the header of F::send".
const char* header_of(Exchange::Kind kind);

// Header sent before an array of unknown type: that, and whether a gradient is to come back.
struct TypeHeader {
  ArrayType type;
  bool recorded = false;
};

std::vector<int64_t> pack_header(const TypeHeader& header);
// CommError, which names `who`, for what is not a header.
TypeHeader unpack_header(const std::vector<int64_t>& words, const char* who);

inline ArrayType type_of(const Array& x) { return {x.shape(), x.dtype()}; }

}  // namespace catena::parallel
