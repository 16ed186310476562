#include "catena/parallel/tensor/linear_cross_entropy.h"

#include <algorithm>
#include <memory>

#include "catena/autograd/placement.h"
#include "catena/comm/internals.h"
#include "catena/parallel/tensor/functions.h"
#include "catena/parallel/tensor/placement.h"
#include "functions/loss/classes_over_ranks.h"

namespace catena::functions {
namespace {

constexpr const char *kName = "vocab_parallel_linear_cross_entropy",
                     *kPurpose = "F::vocab_parallel_linear_cross_entropy";

// Which of all classes have their rows of W here.
struct Range {
  int64_t first, classes;
};

// Whether W is cut along its rows over the ranks of the communicator. An axis without a name may be
// any.
bool is_cut_over(const Placement& placement, const Communicator& comm) {
  const std::string axis = parallel::mesh_axis_of(comm);
  const auto& over = placement.over;
  return placement.has_box() &&
         std::any_of(over.begin(), over.end(), [&](const Placement::Over& one) {
           return one.kind == Placement::Kind::kCut && one.axis == 0 && one.index == comm.rank() &&
                  one.count == comm.size() &&
                  (axis.empty() || one.mesh_axis.empty() || one.mesh_axis == axis);
         });
}

Range range_of(const VariableOperand& operand, const Communicator& comm) {
  const Variable& W = operand.variable(kName);
  const int64_t rows = W.ndim() > 0 ? W.shape()[0] : 0;
  const VariableNode* node = W.body()->node.get();
  if (node == nullptr || node->parameter == nullptr)
    return {rows * comm.rank(), rows * comm.size()};
  const Placement* placement = node->parameter->placement().get();
  CATENA_CHECK(ValueError, placement != nullptr && is_cut_over(*placement, comm), kName,
               ": expected a W whose rows are cut over the ", comm.size(),
               " ranks of the communicator, got a parameter of shape ", W.shape(),
               placement == nullptr ? " of which this rank has the whole"
                                    : ", placed as " + placement->text(W.shape()),
               "; make it with parallel::part_of_whole(whole, comm, 0), or take the W of a "
               "ColumnParallelLinear or a VocabParallelEmbedID");
  return {placement->begin[0], placement->whole[0]};
}

class ClassesOfCommunicator final : public ClassesOverRanks {
 public:
  ClassesOfCommunicator(Communicator& comm, const Range& range)
      : ClassesOverRanks(comm.size(), range.first, range.classes), comm_(comm.weak_from_this()) {}

  Event gather(const Array& own, const Array& all) const override {
    const CommunicatorPtr comm = alive();
    const comm::PurposeScope purpose(comm.get(), kPurpose);
    return comm->all_gather_async(own, all, stream(*comm));
  }
  Event sum(const Array& x) const override {
    const CommunicatorPtr comm = alive();
    const comm::PurposeScope purpose(comm.get(), kPurpose);
    return comm->all_reduce_async(x, comm::Reduction::kSum, stream(*comm));
  }
  Array largest(const Array& x) const override {
    const CommunicatorPtr comm = alive();
    const comm::PurposeScope purpose(comm.get(), kPurpose);
    return comm->all_reduce(x, comm::Reduction::kMax);
  }
  Variable copied(const Variable& x) const override { return copy_to_ranks(x, *alive()); }
  Variable summed(const Variable& part) const override { return sum_of_ranks(part, *alive()); }

 private:
  CommunicatorPtr alive() const {
    return comm::alive_in_backward(comm_, [] { return kName; });
  }
  static Stream stream(Communicator& comm) {
    return comm.device().is_cuda() ? comm.side_stream() : Stream();
  }

  std::weak_ptr<Communicator> comm_;
};

Variable over_ranks(FunctionCall& call, const VariableOperand& W, Communicator& comm,
                    const LinearCrossEntropyOptions& options) {
  CATENA_CHECK(DeviceError, call[0].device() == comm.device(), kName, ": h is on ",
               call[0].device(), ", this rank's communicator on ", comm.device(),
               "; move it with F::copy");
  const Range range = range_of(W, comm);
  return linear_cross_entropy(call, options, std::make_shared<ClassesOfCommunicator>(comm, range));
}

}  // namespace

Variable vocab_parallel_linear_cross_entropy(const VariableOperand& h, const VariableOperand& W,
                                             const VariableOperand& t, Communicator& comm,
                                             const LinearCrossEntropyOptions& options) {
  if (comm.size() == 1) return linear_cross_entropy(h, W, t, options);
  FunctionCall call(kName, Autocast::kLow, h, W, t);
  return over_ranks(call, W, comm, options);
}

Variable vocab_parallel_linear_cross_entropy(const VariableOperand& h, const VariableOperand& W,
                                             const VariableOperand& b, const VariableOperand& t,
                                             Communicator& comm,
                                             const LinearCrossEntropyOptions& options) {
  if (comm.size() == 1) return linear_cross_entropy(h, W, b, t, options);
  FunctionCall call(kName, Autocast::kLow, h, W, t, b);
  return over_ranks(call, W, comm, options);
}

}  // namespace catena::functions
