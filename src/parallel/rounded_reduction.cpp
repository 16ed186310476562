// Gradients that travel in 16 bits and are added in float32. A library's own reduction of 16-bit
// arrays may round after each addition, from rank to rank; here every rank gets the pieces of its
// part from all others and rounds their sum once.
#include "bucket_reduction.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"

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

// Row after row, into float32.
Array sum_of_rows(const Array& rows) {
  Array sum = rows[0].astype(Dtype::kFloat32);
  for (int64_t r = 1; r < rows.length(); ++r) add(sum, rows[r].astype(Dtype::kFloat32), sum);
  return sum;
}

}  // namespace

void reduce_rounded(Communicator& comm, const BucketReduction& bucket) {
  const int64_t ranks = comm.size(), elements = bucket.gradient.size();
  const int64_t piece = (elements + ranks - 1) / ranks;  // exact where the ranks keep parts
  const Array pieces = rounded(bucket, piece * ranks);
  const Array sum = sum_of_rows(comm.all_to_all(pieces).reshape({ranks, piece}));
  if (bucket.op.kind == comm::Reduction::kMean) divide(sum, double(ranks), sum);
  if (bucket.own.defined()) return bucket.own.assign(sum);
  comm.all_gather(sum.astype(*bucket.travels_as), pieces);
  bucket.gradient.assign(pieces(Slice(0, elements)));
}

}  // namespace catena::parallel
