#include "movers.h"

#include <cstring>

#include "catena/array/elementwise.h"
#include "catena/kernels/elementwise_ops.h"

namespace catena::comm {

namespace {

char* address(const Array& a, int64_t offset) {
  return static_cast<char*>(a.raw_data()) + offset * a.itemsize();
}

class HostMover : public Mover {
 public:
  void copy(const Array& target, int64_t to, const Array& source, int64_t from,
            int64_t count) override {
    char* destination = address(target, to);
    const char* origin = address(source, from);
    if (count > 0 && destination != origin)
      std::memcpy(destination, origin, size_t(count * target.itemsize()));
  }

  Array reduce(const Team& team, const Call& call, int64_t from, int64_t count) override {
    Array result = Array::uninitialized({count}, call.dtype, cpu(0));
    std::vector<const void*> inputs;
    std::vector<double> weights;
    for (int r = 0; r < team.size(); ++r) {
      inputs.push_back(address(*team.post(r).input, from));
      weights.push_back(team.post(r).weight);
    }
    ordered_reduce(call.dtype, call.effective_reduction(), inputs, weights, count,
                   result.raw_data());
    return result;
  }
};

class ArrayMover : public Mover {
 public:
  void publish(const Call& call) override {
    if (call.stream.state()) call.stream.synchronize();
  }

  void copy(const Array& target, int64_t to, const Array& source, int64_t from,
            int64_t count) override {
    const Array destination = piece(target, to, count);
    const Array origin = piece(source, from, count);
    if (count > 0 && destination.raw_data() != origin.raw_data()) destination.assign(origin);
  }

  Array reduce(const Team& team, const Call& call, int64_t from, int64_t count) override {
    const Device device = call.output ? call.output->device() : call.input->device();
    const Dtype compute = call.dtype == Dtype::kBool    ? Dtype::kUInt8
                          : is_narrow_float(call.dtype) ? Dtype::kFloat32
                                                        : call.dtype;
    Array sum;
    for (int r = 0; r < team.size(); ++r) {
      Array x = piece(*team.post(r).input, from, count).to(device).astype(compute, false);
      if (call.reduction == Reduction::kWeighted)
        x = elementwise(ops::multiply, {x, team.post(r).weight});
      sum = sum.defined() ? elementwise(op_of(call.effective_reduction()), {sum, x}) : x;
    }
    if (call.reduction == Reduction::kMean)
      sum = elementwise(ops::divide, {sum, double(team.size())});
    return sum.astype(call.dtype, false);
  }

  void finish(const Call& call) override {
    if (call.stream.state()) call.stream.synchronize();
  }

 private:
  static Array piece(const Array& a, int64_t from, int64_t count) {
    return a.reshape({-1})(Slice(from, from + count));
  }
  static ElementwiseOp op_of(Reduction reduction) {
    switch (reduction) {
      case Reduction::kMin: return ops::minimum;
      case Reduction::kMax: return ops::maximum;
      case Reduction::kProduct: return ops::multiply;
      default: return ops::add;
    }
  }
};

}  // namespace

Mover& host_mover() {
  static HostMover mover;
  return mover;
}

Mover& array_mover() {
  static ArrayMover mover;
  return mover;
}

}  // namespace catena::comm
