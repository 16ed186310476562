#include "record.h"

#include "catena/array/creation.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/function_node.h"
#include "catena/comm/internals.h"
#include "tape.h"

namespace catena::parallel {

namespace {

// Of delegate variables: the value means nothing. On the host, so that it costs no kernel.
Array stand_in() { return zeros(Shape{}, {Dtype::kFloat32, cpu(0)}); }

Variable zeros_for(const VariableNode& vertex) {
  return Variable::constant(zeros(vertex.shape, {vertex.dtype, vertex.device}));
}

// Inputs: x if this rank gives something, the delegate of the call before, a delegate of the user.
// Outputs: y if it gets something, its own delegate.
class ExchangeNode final : public FunctionNode {
 public:
  ExchangeNode(const Exchange& how, Communicator& comm, std::shared_ptr<Step> step)
      : how_(how), comm_(comm.weak_from_this()), step_(std::move(step)) {}

  std::string label() const override { return how_.name(); }
  // The other ranks make one call.
  bool splits() const override { return false; }

  void backward(BackwardContext& context) override {
    const CommunicatorPtr comm = comm::alive_in_backward(comm_, [&] { return how_.describe(); });
    step_->pass();
    // Calls that this pass records come behind those of forward.
    if (!context.create_graph()) tape_of(*comm)->release(*step_);
    Variable gy;
    if (how_.out) gy = context.grad_output(0);
    if (how_.out && !gy.defined())
      gy = Variable::constant(zeros(how_.out->shape, {how_.out->dtype, comm->device()}));
    const Variable gx = adjoint(*comm, gy, context.create_graph());
    const int first = how_.in ? 1 : 0;
    if (first == 1 && context.needs(0)) context.set_grad(0, gx);
    for (int i = first; i < static_cast<int>(inputs().size()); ++i)
      if (context.needs(i)) context.set_grad(i, zeros_for(*inputs()[size_t(i)]));
  }

 private:
  Variable adjoint(Communicator& comm, const Variable& gy, bool create_graph) const {
    const comm::PurposeScope purpose(&comm, how_.backward());
    if (create_graph) return exchange(comm, how_.adjoint(), gy, true).y;
    return how_.adjoint().run(comm, how_.out ? gy.data() : Array());
  }

  Exchange how_;
  std::weak_ptr<Communicator> comm_;
  std::shared_ptr<Step> step_;
};

Exchanged make_unrecorded(Communicator& comm, const Exchange& how, const Variable& x) {
  const Variable* const given = x.defined() ? &x : nullptr;
  FunctionCall call(how.name(), Autocast::kNone, given);
  const Array y = how.run(comm, how.in ? call[0].data() : Array());
  if (!y.defined()) return {{}, call.unrecorded(stand_in())};
  return {call.unrecorded(y), Variable::constant(stand_in())};
}

}  // namespace

bool is_recorded(const Variable& x, Dtype dtype) {
  return is_recording() && is_float(dtype) && !(x.defined() && x.is_volatile());
}

void check_outside_group(const Communicator& comm, const std::string& who) {
  CATENA_CHECK(ValueError, !comm::internals(comm).in_group(), who,
               ": called in a Communicator::group, whose calls have no result before its end; call "
               "it outside, or the communicator's own functions inside");
}

Exchanged exchange(Communicator& comm, Exchange how, const Variable& x, bool recorded,
                   const Variable& delegate) {
  check_outside_group(comm, how.describe());
  if (how.in)
    CATENA_CHECK(DeviceError, x.device() == comm.device(), how.describe(), ": x is on ", x.device(),
                 ", this rank's communicator on ", comm.device(), "; move it with F::copy");
  if (!recorded) return make_unrecorded(comm, how, x);
  CATENA_CHECK(GradientError, !is_repeated_forward(), how.describe(),
               ": called inside F::recompute, which would make the call again in backward, where "
               "the other ranks do not; leave communication outside of it");
  const std::shared_ptr<Tape> tape = tape_of(comm);
  const Variable before = tape->last_step() ? tape->last() : Variable(stand_in());
  const Variable* const given = how.in ? &x : nullptr;
  const Variable* const connected = delegate.defined() ? &delegate : nullptr;
  FunctionCall call(how.name(), Autocast::kNone, given, before, connected);
  static_cast<void>(call.is_recorded());  // refuses volatile operands before anything is moved
  const Array y = how.run(comm, how.in ? call[0].data() : Array());
  if (y.defined()) how.out = type_of(y);
  const auto step = std::make_shared<Step>();
  step->what = how.describe();
  Arrays outputs;
  if (y.defined()) outputs.push_back(y);
  outputs.push_back(stand_in());
  const Variables made =
      call.record(outputs, [&] { return make_node<ExchangeNode>(how, comm, step); });
  tape->append(step, made.back());
  return {y.defined() ? made[0] : Variable(), made.back()};
}

}  // namespace catena::parallel
