// Gradients that travel in 16 bits and are added in float32. A library's own reduction of 16-bit
// arrays may round after each addition, from rank to rank; here every rank gets the pieces of its
// part from all others and rounds their sum once.
#include "bucket_reduction.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"

namespace catena::parallel {

std::optional<Dtype> travelling_dtype(Dtype gradient, const BucketOptions& options) {
  if (!options.reduce_dtype) return std::nullopt;
  const bool applies = gradient == Dtype::kFloat32 || gradient == *options.reduce_dtype;
  return applies ? options.reduce_dtype : std::nullopt;
}

namespace {

// The gradients times this rank's weight, rounded once, filled up with zeros to whole pieces.
Array rounded(const BucketReduction& bucket, int64_t length) {
  Array values = bucket.gradient;
  if (bucket.op.kind == comm::Reduction::kWeighted)
    values = multiply(values.astype(Dtype::kFloat32, false), bucket.op.weight);
  if (values.size() == length) return values.astype(*bucket.travels_as);
  const Array result = zeros({length}, {*bucket.travels_as, values.device()});
  result(Slice(0, values.size())).assign(values);
  return result;
}

// The sum or mean of the rows, added in float32, into `out` where it is one of that dtype.
Array total(const Array& rows, bool mean, const Array& out) {
  ReduceOptions options{.axes = 0, .dtype = Dtype::kFloat32};
  if (out.defined() && out.dtype() == Dtype::kFloat32) options.out = out;
  return mean ? catena::mean(rows, options) : catena::sum(rows, options);
}

}  // namespace

void reduce_rounded(Communicator& comm, const BucketReduction& bucket) {
  const int64_t ranks = comm.size(), elements = bucket.gradient.size();
  const int64_t piece = (elements + ranks - 1) / ranks;  // exact where the ranks keep parts
  const Array pieces = rounded(bucket, piece * ranks);
  const bool is_mean = bucket.op.kind == comm::Reduction::kMean;
  const Array result = total(comm.all_to_all(pieces).reshape({ranks, piece}), is_mean, bucket.own);
  if (bucket.own.defined()) {
    if (result.raw_data() != bucket.own.raw_data()) bucket.own.assign(result);
    return;
  }
  comm.all_gather(result.astype(*bucket.travels_as), pieces);
  bucket.gradient.assign(pieces(Slice(0, elements)));
}

}  // namespace catena::parallel
