// send, recv and the delegate variables, of catena/parallel/functions.h.
#include <vector>

#include "catena/array/creation.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/function_node.h"
#include "catena/comm/internals.h"
#include "record.h"
#include "tape.h"

namespace catena::functions {

using parallel::Exchange;
using parallel::Exchanged;
using Kind = Exchange::Kind;

namespace {

void check_peer(const Communicator& comm, const char* who, int peer, const char* role) {
  parallel::check_outside_group(comm, who);
  CATENA_CHECK(ValueError, peer >= 0 && peer < comm.size(), who, ": ", role, " ", peer,
               " is not a rank of this communicator, expected 0 to ", comm.size() - 1);
  CATENA_CHECK(ValueError, peer != comm.rank(), who, ": ", role, " ", peer,
               " is this rank itself; use the variable as it is");
}

parallel::TypeHeader receive_header(Communicator& comm, int source) {
  const comm::PurposeScope purpose(&comm, parallel::header_of(Kind::kRecv));
  return parallel::unpack_header(comm.recv_object<std::vector<int64_t>>(source), "recv");
}

Variable receive_recorded(Communicator& comm, int source, const ArrayType& type, bool recorded,
                          const Variable& delegate) {
  const Exchange how{.kind = Kind::kRecv, .peer = source, .out = type};
  const Variable y = exchange(comm, how, {}, recorded, delegate).y;
  return recorded || !delegate.defined() ? y : pseudo_connect(delegate, y);
}

}  // namespace

Variable send(const Variable& x, Communicator& comm, int destination, Header header) {
  check_peer(comm, "send", destination, "destination");
  CATENA_CHECK(ValueError, x.defined(), "send: got an undefined variable");
  bool recorded = parallel::is_recorded(x, x.dtype());
  if (header == Header::kSent) {
    recorded = recorded && x.requires_grad();
    const comm::PurposeScope purpose(&comm, parallel::header_of(Kind::kSend));
    comm.send_object(parallel::pack_header({parallel::type_of(x.data()), recorded}), destination);
  }
  const Exchange how{.kind = Kind::kSend, .peer = destination, .in = parallel::type_of(x.data())};
  return exchange(comm, how, x, recorded).delegate;
}

Variable recv(Communicator& comm, int source, const Variable& delegate) {
  check_peer(comm, "recv", source, "source");
  const auto header = receive_header(comm, source);
  CATENA_CHECK(
      GradientError, !header.recorded || is_recording(), "recv: rank ", source,
      " has recorded what it sends and will wait for its gradient, but nothing is recorded "
      "here; open NoBackprop on both ranks, or send a constant");
  return receive_recorded(comm, source, header.type, header.recorded, delegate);
}

Variable recv(Communicator& comm, int source, const ArrayType& type, const Variable& delegate) {
  check_peer(comm, "recv", source, "source");
  return receive_recorded(comm, source, type, parallel::is_recorded({}, type.dtype), delegate);
}

Variable delegate_variable(Communicator& comm) {
  const auto tape = parallel::tape_of(comm);
  return tape->last_step() ? tape->last() : Variable();
}

namespace {

// Inputs: the delegate, then the variables that pass.
class PseudoConnectNode final : public FunctionNode {
 public:
  std::string label() const override { return "PseudoConnect"; }
  void backward(BackwardContext& context) override {
    for (int i = 0; i + 1 < static_cast<int>(inputs().size()); ++i) {
      const Variable g = context.grad_output(i);
      if (g.defined() && context.needs(i + 1)) context.set_grad(i + 1, g);
    }
    if (!context.needs(0)) return;
    const VariableNode& delegate = *inputs()[0];
    context.set_grad(0,
                     Variable::constant(zeros(delegate.shape, {delegate.dtype, delegate.device})));
  }
};

}  // namespace

Variables pseudo_connect(const Variable& delegate, const Variables& xs) {
  constexpr const char* kName = "PseudoConnect";
  Variables operands{delegate};
  operands.insert(operands.end(), xs.begin(), xs.end());
  FunctionCall call(kName, Autocast::kNone, operands);
  Arrays outputs;
  for (size_t i = 1; i < call.size(); ++i) outputs.push_back(call[i].data());
  return call.record(outputs, [] { return make_node<PseudoConnectNode>(); });
}

Variable pseudo_connect(const Variable& delegate, const Variable& x) {
  return pseudo_connect(delegate, Variables{x})[0];
}

}  // namespace catena::functions
