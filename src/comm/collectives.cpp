// The collectives of Communicator: checks of shapes, dtypes, devices and overlap.
#include "catena/array/creation.h"
#include "communicator_state.h"

namespace catena::comm {

namespace {

int64_t first_axis(const Array& a) { return a.ndim() == 0 ? 1 : a.shape()[0]; }

// x's shape with another first axis.
Shape with_first_axis(const Array& x, int64_t extent) {
  if (x.ndim() == 0) return {extent};
  Shape shape = x.shape();
  shape[0] = extent;
  return shape;
}

void check_reduction(const char* who, Dtype dtype, const Reduce& op) {
  const bool averages = op.kind == Reduction::kMean || op.kind == Reduction::kWeighted;
  CATENA_CHECK(DtypeError, !averages || is_float(dtype), who, ": ", op.kind,
               " needs a floating dtype, got ", dtype,
               "; reduce the sum and divide, or convert with astype");
}

const char* begin_of(const Array& a) { return static_cast<const char*>(a.raw_data()); }

bool overlap(const Array& a, const Array& b) {
  if (a.size() == 0 || b.size() == 0) return false;
  if (!a.is_contiguous() || !b.is_contiguous()) return a.shares_memory_with(b);
  return begin_of(a) < begin_of(b) + b.nbytes() && begin_of(b) < begin_of(a) + a.nbytes();
}

// Refuses shared memory, unless x and out are at the same place after the offsets in bytes.
void check_overlap(const char* who, const Array& x, const Array& out, int64_t x_offset,
                   int64_t out_offset) {
  if (x.same_body(out) || !overlap(x, out)) return;
  const bool same_strides = x.is_contiguous() ? out.is_contiguous() : x.strides() == out.strides();
  const bool in_place = same_strides && begin_of(x) + x_offset == begin_of(out) + out_offset;
  CATENA_CHECK(ValueError, in_place, who,
               ": the input and the output overlap in a way that is not the in-place form of this "
               "call; copy one of them");
}

void check_out(const char* who, const Array& out, const Shape& shape, Dtype dtype) {
  CATENA_CHECK(ShapeError, out.shape() == shape, who, ": the output has shape ", out.shape(),
               ", expected ", shape);
  CATENA_CHECK(DtypeError, out.dtype() == dtype, who, ": the output is ", out.dtype(),
               ", the input ", dtype, "; both must be equal");
}

// The output of a call with x: `out` if given, which must have that shape and x's dtype and device,
// else a new array.
Array output_of(const char* who, const OptionalArray& out, const Shape& shape, const Array& x) {
  if (!out.given(who)) return Array::uninitialized(shape, x.dtype(), x.device());
  check_out(who, out, shape, x.dtype());
  check_same_device(who, x, out);
  return out;
}

// The first axis of one of `pieces` equal pieces.
int64_t piece_of(const char* who, const Array& x, int pieces) {
  CATENA_CHECK(ShapeError, x.ndim() > 0 && x.shape()[0] % pieces == 0, who,
               ": the first axis of shape ", x.shape(), " cannot be divided among ", pieces,
               " ranks; pad it to a multiple");
  return x.shape()[0] / pieces;
}

// Of calls with the elements of `x`, and for some a root or a peer; and of those that reduce.
CallSignature signature_of(CommOp op, const Array& x, int root = -1, const CallTag& tag = {}) {
  return {.op = op, .dtype = x.dtype(), .root = root, .count = x.size(), .tag = tag};
}
CallSignature signature_of(CommOp op, const Reduce& reduce, const Array& x, int root = -1,
                           const CallTag& tag = {}) {
  CallSignature call = signature_of(op, x, root, tag);
  call.reduction = reduce.kind;
  return call;
}

}  // namespace

void Communicator::check_array(const char* who, const Array& a) const {
  CATENA_CHECK(ValueError, a.defined(), who, ": the array is undefined");
  const Device d = a.device();
  const bool fits = d == device_ || (device_.is_cuda() && d.is_cpu());
  CATENA_CHECK(DeviceError, fits, who, ": the array is on ", d, ", this rank's communicator on ",
               device_, "; move it with to(comm.device())");
}

void Communicator::check_peer(const char* who, int peer, const char* role) const {
  CATENA_CHECK(ValueError, peer >= 0 && peer < size(), who, ": ", role, " ", peer,
               " is not a rank of this communicator, expected 0 to ", size() - 1);
}

// A send waits for its recv, which this rank could only call after it. In a group both are there.
void Communicator::check_other(const char* who, int peer, const char* role) const {
  check_peer(who, peer, role);
  CATENA_CHECK(
      ValueError, peer != rank() || state_->grouping, who, ": ", role, " ", peer,
      " is this rank itself, and a send outside of a group waits for its recv, so it would "
      "wait for ever; put both into one group(...), or copy the value");
}

Array Communicator::all_reduce(const Array& x, const Reduce& op, const OptionalArray& out) {
  constexpr const char* kWho = "all_reduce";
  check_array(kWho, x);
  check_reduction(kWho, x.dtype(), op);
  Array result = output_of(kWho, out, x.shape(), x);
  check_overlap(kWho, x, result, 0, 0);
  Request request{.who = kWho,
                  .call = signature_of(CommOp::kAllReduce, op, x),
                  .weight = op.weight,
                  .input = x,
                  .output = std::move(result)};
  return submit(request);
}

Array Communicator::reduce(const Array& x, const Reduce& op, int root, const OptionalArray& out) {
  constexpr const char* kWho = "reduce";
  check_array(kWho, x);
  check_peer(kWho, root, "root");
  check_reduction(kWho, x.dtype(), op);
  Array result;
  if (rank() == root) {
    result = output_of(kWho, out, x.shape(), x);
    check_overlap(kWho, x, result, 0, 0);
  }
  Request request{.who = kWho,
                  .call = signature_of(CommOp::kReduce, op, x, root),
                  .weight = op.weight,
                  .input = x,
                  .output = result};
  return submit(request);
}

Array Communicator::reduce_scatter(const Array& x, const Reduce& op, const OptionalArray& out) {
  constexpr const char* kWho = "reduce_scatter";
  check_array(kWho, x);
  check_reduction(kWho, x.dtype(), op);
  const Shape shape = with_first_axis(x, piece_of(kWho, x, size()));
  const Array result = output_of(kWho, out, shape, x);
  check_overlap(kWho, x, result, rank() * result.nbytes(), 0);
  Request request{.who = kWho,
                  .call = signature_of(CommOp::kReduceScatter, op, result),
                  .weight = op.weight,
                  .input = x,
                  .output = result};
  return submit(request);
}

Array Communicator::all_gather(const Array& x, const OptionalArray& out) {
  constexpr const char* kWho = "all_gather";
  check_array(kWho, x);
  const Shape shape = with_first_axis(x, first_axis(x) * size());
  const Array result = output_of(kWho, out, shape, x);
  check_overlap(kWho, x, result, 0, rank() * x.nbytes());
  Request request{
      .who = kWho, .call = signature_of(CommOp::kAllGather, x), .input = x, .output = result};
  return submit(request);
}

Array Communicator::gather(const Array& x, int root, const OptionalArray& out) {
  constexpr const char* kWho = "gather";
  check_array(kWho, x);
  check_peer(kWho, root, "root");
  Array result;
  if (rank() == root) {
    const Shape shape = with_first_axis(x, first_axis(x) * size());
    result = output_of(kWho, out, shape, x);
    check_overlap(kWho, x, result, 0, rank() * x.nbytes());
  }
  Request request{
      .who = kWho, .call = signature_of(CommOp::kGather, x, root), .input = x, .output = result};
  return submit(request);
}

Array Communicator::broadcast(const Array& x, int root, const OptionalArray& out) {
  constexpr const char* kWho = "broadcast";
  check_array(kWho, x);
  check_peer(kWho, root, "root");
  const Array result = out.given(kWho) ? output_of(kWho, out, x.shape(), x) : x;
  check_overlap(kWho, x, result, 0, 0);
  Request request{.who = kWho, .call = signature_of(CommOp::kBroadcast, x, root)};
  // The root in place sends only; the others only receive.
  if (rank() == root) request.input = x;
  if (rank() != root || !result.same_body(x)) request.output = result;
  submit(request);
  return result;
}

Array Communicator::scatter(const Array& x, const Array& out, int root) {
  constexpr const char* kWho = "scatter";
  check_array(kWho, out);
  check_peer(kWho, root, "root");
  Request request{.who = kWho, .call = signature_of(CommOp::kScatter, out, root), .output = out};
  if (rank() == root) {
    check_array(kWho, x);
    piece_of(kWho, x, size());
    check_out(kWho, out, with_first_axis(x, x.shape()[0] / size()), x.dtype());
    check_same_device(kWho, x, out);
    check_overlap(kWho, x, out, rank() * out.nbytes(), 0);
    request.input = x;
  }
  return submit(request);
}

Array Communicator::all_to_all(const Array& x, const OptionalArray& out) {
  constexpr const char* kWho = "all_to_all";
  check_array(kWho, x);
  piece_of(kWho, x, size());
  const Array result = output_of(kWho, out, x.shape(), x);
  CATENA_CHECK(ValueError, !overlap(x, result), kWho,
               ": the output must not share memory with the input");
  Request request{.who = kWho,
                  .call = {.op = CommOp::kAllToAll, .dtype = x.dtype(), .count = x.size() / size()},
                  .input = x,
                  .output = result};
  return submit(request);
}

void Communicator::send(const Array& x, int destination) {
  check_array("send", x);
  check_other("send", destination, "destination");
  Request request{.who = "send", .call = signature_of(CommOp::kSend, x, destination), .input = x};
  submit(request);
}

void Communicator::recv(const Array& out, int source) {
  check_array("recv", out);
  check_other("recv", source, "source");
  Request request{.who = "recv", .call = signature_of(CommOp::kRecv, out, source), .output = out};
  submit(request);
}

Event Communicator::all_reduce_async(const Array& x, const Reduce& op, const Stream& on,
                                     const CallTag& tag) {
  check_array("all_reduce_async", x);
  check_reduction("all_reduce_async", x.dtype(), op);
  Request request{.who = "all_reduce_async",
                  .call = signature_of(CommOp::kAllReduce, op, x, -1, tag),
                  .weight = op.weight,
                  .input = x,
                  .output = x};
  return submit_on(on, request);
}

Event Communicator::reduce_scatter_async(const Array& x, const Reduce& op, const Array& out,
                                         const Stream& on, const CallTag& tag) {
  constexpr const char* kWho = "reduce_scatter_async";
  check_array(kWho, x);
  check_array(kWho, out);
  check_reduction(kWho, x.dtype(), op);
  check_out(kWho, out, with_first_axis(x, piece_of(kWho, x, size())), x.dtype());
  check_overlap(kWho, x, out, rank() * out.nbytes(), 0);
  Request request{.who = kWho,
                  .call = signature_of(CommOp::kReduceScatter, op, out, -1, tag),
                  .weight = op.weight,
                  .input = x,
                  .output = out};
  return submit_on(on, request);
}

Event Communicator::all_gather_async(const Array& x, const Array& out, const Stream& on,
                                     const CallTag& tag) {
  constexpr const char* kWho = "all_gather_async";
  check_array(kWho, x);
  check_array(kWho, out);
  check_out(kWho, out, with_first_axis(x, first_axis(x) * size()), x.dtype());
  check_overlap(kWho, x, out, 0, rank() * x.nbytes());
  Request request{
      .who = kWho, .call = signature_of(CommOp::kAllGather, x, -1, tag), .input = x, .output = out};
  return submit_on(on, request);
}

Event Communicator::send_async(const Array& x, int destination, const Stream& on) {
  constexpr const char* kWho = "send_async";
  check_array(kWho, x);
  check_other(kWho, destination, "destination");
  Request request{.who = kWho, .call = signature_of(CommOp::kSend, x, destination), .input = x};
  return submit_on(on, request);
}

Event Communicator::recv_async(const Array& out, int source, const Stream& on) {
  constexpr const char* kWho = "recv_async";
  check_array(kWho, out);
  check_other(kWho, source, "source");
  Request request{.who = kWho, .call = signature_of(CommOp::kRecv, out, source), .output = out};
  return submit_on(on, request);
}

}  // namespace catena::comm
