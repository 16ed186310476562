// Steps that the ranks of a communicator capture, and in which one of them calls something else.
#include "catena/core/graph.h"
#include "catena/core/stream.h"
#include "comm/suite.h"

namespace catena::comm_suite {

using comm::Reduction;

void bucket(Communicator& comm, const Array& x, const comm::Reduce& how) {
  current_stream(comm.device()).wait(comm.all_reduce_async(x, how, comm.side_stream()));
}

namespace {

void reduction(Communicator& c, const Array& x, bool odd) {
  c.all_reduce(x, odd ? Reduction::kMax : Reduction::kSum, x);
}
void bucket_on_the_side_stream(Communicator& c, const Array& x, bool odd) {
  bucket(c, x, odd ? Reduction::kMax : Reduction::kMean);
}
void size(Communicator& c, const Array& x, bool odd) {
  const Array part = x(Slice(0, odd ? 4 : 8));
  c.all_reduce(part, Reduction::kSum, part);
}
void dtype(Communicator& c, const Array& x, bool odd) {
  const Array seen = odd ? x.view(Dtype::kInt32) : x;
  c.all_reduce(seen, Reduction::kSum, seen);
}
void call(Communicator& c, const Array& x, bool odd) {
  odd ? c.broadcast(x, 0) : c.all_reduce(x, Reduction::kSum, x);
}
void missing_call(Communicator& c, const Array& x, bool odd) {
  c.all_reduce(x, Reduction::kSum, x);
  if (!odd) c.all_reduce(x, Reduction::kSum, x);
}

}  // namespace

std::vector<CaptureCase> capture_cases() {
  return {
      {"reduction",
       reduction,
       {"call #5", "all_reduce #5 sum float32[8]", "all_reduce #5 max float32[8]"}},
      {"bucket_on_the_side_stream",
       bucket_on_the_side_stream,
       {"call #5", "all_reduce #5 mean float32[8]", "all_reduce #5 max float32[8]"}},
      {"size", size, {"call #5", "float32[8]", "float32[4]"}},
      {"dtype", dtype, {"call #5", "float32[8]", "int32[8]"}},
      {"call", call, {"call #5", "all_reduce #5", "broadcast #5"}},
      {"missing_call",
       missing_call,
       {"call #6", "all_reduce #6 sum float32[8]", "made no call after #5"}},
  };
}

void capture_differently(Communicator& comm, const CaptureCase& one) {
  const Array x = make(comm, {8}, Dtype::kFloat32, comm.rank());
  bucket(comm, x, Reduction::kSum);  // makes the side stream
  synchronize(comm.device());
  const bool odd = comm.rank() == comm.size() - 1;
  cuda::Graph::capture(comm.device(), [&] { one.step(comm, x, odd); });
}

}  // namespace catena::comm_suite
