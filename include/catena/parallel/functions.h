// Differentiable communication: messages and collectives on variables, whose gradients travel back.
//
// The same functions as those of Communicator, with x a variable, and with gradients of any order:
// backward of a call is a call too, which all ranks of it must make. The contract of the values is
// that of comm/communicator.h: dtypes, strides, devices, streams, what is compared and what errors
// say. x must be on comm.device() (DeviceError), and its dtype floating for it to have a gradient:
// of other dtypes the functions give constants.
//
// Order. Every call takes the calls before it on the same communicator into the graph. One backward
// pass from the last results therefore makes the calls of backward in the reverse order, on every
// rank, whether a gradient has reached a call or not: none counts as zeros. That order cannot
// deadlock if the forward one did not. Calls are visited in one pass:
// - A rank whose last call is a send has no loss. It goes back from what the send returned, its
//   delegate variable: phi.backward(). delegate_variable(comm) is the one of the last call.
// - Several losses, or a send behind the loss, belong into one pass: backward({loss, phi}).
// A pass that reaches a call but not the calls recorded behind it is a GradientError that names
// both: another rank would wait for them.
//
// Whether a call is recorded: if recording is on (no NoBackprop scope), x is not volatile and its
// dtype is floating. That must be so on all its ranks. Collectives are recorded although x is a
// constant, as it may want a gradient on another rank; what is to have none (an accuracy that is
// averaged) is a call of the communicator on arrays. A constant that is sent with a header is one
// where it arrives, and no gradient comes back. What was recorded is kept until a pass has gone
// through the last call: evaluate under NoBackprop, or drop it by
// delegate_variable(comm).unchain_backward(). Calls inside F::recompute are a GradientError.
//
// Headers. What a rank does not know, shape and dtype, comes as a host message in front, unless all
// ranks of the call name it: with ArrayType the functions do nothing on the host and can be
// captured by cuda::Graph.
//
// ValueError inside Communicator::group: a result would be there at its end only, and the gradients
// would not be grouped.
//
// A graph does not keep a communicator open: backward after it was closed is a CommError.
#pragma once

#include "catena/autograd/variable.h"
#include "catena/comm/communicator.h"

namespace catena::parallel {

// What a rank knows of an array that it gets from another one.
struct ArrayType {
  Shape shape;                    // the extents
  Dtype dtype = Dtype::kFloat32;  // of the elements
  // Both are equal.
  bool operator==(const ArrayType&) const = default;
};

// Whether shape and dtype go in front of a message.
enum class Header : uint8_t {
  kSent,  // the other rank learns them
  kNone,  // it gives them itself
};

}  // namespace catena::parallel

namespace catena::functions {

using parallel::ArrayType;
using parallel::Header;

// Sends x and returns the delegate variable: 0-d, float32, on the host, a stand-in for what the
// other rank makes of x. Backward from it receives the gradient of x. Header::kNone where the other
// rank gives the type; then a gradient comes back even if x is a constant. ValueError for a rank
// that does not exist or is this one.
Variable send(const Variable& x, Communicator& comm, int destination,
              Header header = Header::kSent);
// Receives a variable of this shape and dtype on comm.device(). Its backward sends the gradient.
// `delegate`, if defined, is taken into the graph as by pseudo_connect; calls of this communicator
// are there without it. GradientError if the other rank waits for a gradient, and nothing is
// recorded here. CommError if the type is not that of the array that was sent.
Variable recv(Communicator& comm, int source, const Variable& delegate = {});
Variable recv(Communicator& comm, int source, const ArrayType& type, const Variable& delegate = {});

// The x of the root on every rank; the gradients are summed. The others' x is ignored and may be
// undefined. With a type there is no header.
Variable broadcast(const Variable& x, Communicator& comm, int root = 0);
Variable broadcast(const Variable& x, Communicator& comm, const ArrayType& type, int root = 0);
// Rank r gets the r-th of size() equal pieces of the root's x along the first axis. Backward
// gathers. The others' x is ignored. With the type of a piece there is no header.
Variable scatter(const Variable& x, Communicator& comm, int root = 0);
Variable scatter(const Variable& x, Communicator& comm, const ArrayType& piece, int root = 0);
// All ranks' x concatenated along the first axis on the root, where backward scatters. The other
// ranks get the delegate variable of the call.
Variable gather(const Variable& x, Communicator& comm, int root = 0);
// The sum of all ranks' x on the root, where backward broadcasts. The other ranks get the delegate
// variable of the call.
Variable reduce(const Variable& x, Communicator& comm, int root = 0);
// All ranks' x concatenated along the first axis; the gradients are summed and scattered.
Variable all_gather(const Variable& x, Communicator& comm);
// The sum, mean or weighted sum of all ranks' x, of which rank r keeps the r-th of size() equal
// pieces of the first axis; backward gathers. ValueError for other reductions.
Variable reduce_scatter(const Variable& x, Communicator& comm, const comm::Reduce& op = {});
// The j-th of size() equal pieces of x goes to rank j, and so does backward.
Variable all_to_all(const Variable& x, Communicator& comm);
// The sum, mean or weighted sum of all ranks' x; the same of the gradients. A weighted x is
// multiplied in its dtype first. ValueError for other reductions.
Variable all_reduce(const Variable& x, Communicator& comm, const comm::Reduce& op = {});

// The delegate variable of the last call that was recorded on the communicator: backward from it
// goes through all calls since the last pass. Undefined if there are none.
Variable delegate_variable(Communicator& comm);
// x, and a pass that reaches it also reaches `delegate`, with a gradient of zeros: for calls on
// different communicators, whose order the functions do not know, and for ChainerMN's programs. No
// copy. ValueError for an undefined one.
Variable pseudo_connect(const Variable& delegate, const Variable& x);
Variables pseudo_connect(const Variable& delegate, const Variables& xs);

}  // namespace catena::functions
