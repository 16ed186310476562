// See copy_collectives.h.
//
// In a gather the ranks meet, which says that their arrays may be written, and each copies its part
// to all others. Those of a batch need one such meeting, so that their copies follow each other
// without a pause. A meeting behind the copies says that all parts have come.
//
// A sum is cut into a slice for each rank, and the slices into pieces. A rank copies its operands
// of other slices to the ranks of these, which have a few places for them. A meeting says that a
// piece has come; the rank adds it, and copies the sums to the arrays of all others. Copies of the
// next pieces run meanwhile. The first meeting of a call says that what came in the call before has
// been added, and that of the s-th piece as much of the piece before it.
#include "copy_collectives.h"

#include <algorithm>

#include "slice_sum_kernel.h"

namespace catena::comm::nccl {

namespace {

constexpr size_t kLine = 128;            // bytes; slices of all-reduces and pieces are whole lines
constexpr size_t kSlotBytes = 12 << 20;  // of a rank, for pieces of all others
// At the head of the memory of a rank: its state, and the counts of the others.
constexpr size_t kCountsAt = kLine, kPlacesAt = 2 * kLine;

size_t divided(size_t number, size_t by) { return (number + by - 1) / by; }
size_t in_lines(size_t bytes) { return divided(bytes, kLine) * kLine; }

void copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  CATENA_NCCL_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
}

bool serves_arena(const Call& call) {
  return call.tag.kind == TagKind::kBucket || call.tag.kind == TagKind::kFollowing;
}

// Each rank adds operands as they are.
bool adds_plainly(const Call& call) {
  return adds_in_float(call) && call.reduction != Reduction::kWeighted;
}

}  // namespace

// `in` and `out`: where the whole array begins or, if only this rank's slice is there, would begin.
struct CopyCollectives::Sum {
  const char* in;
  char* out;
  size_t bytes, slice, piece;  // of the whole; of a slice, but the last; of a piece, likewise
  SumType type;
  size_t itemsize;
  float divisor;

  size_t pieces() const { return divided(slice, piece); }
};

// The same part of each slice.
struct CopyCollectives::Piece {
  size_t index;

  int slot() const { return int(index % kSlots); }
  size_t at(const Sum& sum, int slice) const {
    return size_t(slice) * sum.slice + index * sum.piece;
  }
  size_t bytes(const Sum& sum, int slice) const {
    const size_t begin = index * sum.piece, first = at(sum, slice);
    return first >= sum.bytes ? 0 : std::min({sum.piece, sum.slice - begin, sum.bytes - first});
  }
};

std::shared_ptr<CopyCollectives> CopyCollectives::create(Communicator& control, int device,
                                                         const Ways& ways) {
  if (control.size() < 2 || (ways.copied_gather <= 0 && ways.copied_sum <= 0)) return nullptr;
  std::shared_ptr<CopyCollectives> made(new CopyCollectives);
  const size_t others = size_t(control.size()) - 1;
  made->piece_bytes_ = kSlotBytes / others / kLine * kLine;
  const size_t places = ways.copied_sum > 0 ? kSlots * others * made->piece_bytes_ : 0;
  made->region_ = PeerRegion::create(control, kPlacesAt + places);
  if (!made->region_) return nullptr;
  made->least_gather_ = ways.copied_gather;
  made->least_sum_ = ways.copied_sum;
  made->open(device);
  return made;
}

void CopyCollectives::open(int device) {
  device_ = device;
  meeting_.rank = region_->rank();
  meeting_.ranks = region_->ranks();
  meeting_.state = reinterpret_cast<BlockState*>(region_->own());
  for (int r = 0; r < region_->ranks(); ++r)
    meeting_.counts[r] = reinterpret_cast<uint32_t*>(region_->of(r) + kCountsAt);
  for (int q = 1; q < region_->ranks(); ++q) {
    Lane& to = lane(after(q));
    CATENA_NCCL_CUDA(cudaStreamCreateWithFlags(&to.stream, cudaStreamNonBlocking));
    CATENA_NCCL_CUDA(cudaEventCreateWithFlags(&to.end, cudaEventDisableTiming));
    for (cudaEvent_t& sent : to.sent)
      CATENA_NCCL_CUDA(cudaEventCreateWithFlags(&sent, cudaEventDisableTiming));
  }
  CATENA_NCCL_CUDA(cudaEventCreateWithFlags(&met_, cudaEventDisableTiming));
  CATENA_NCCL_CUDA(cudaEventCreateWithFlags(&added_, cudaEventDisableTiming));
  CATENA_NCCL_CUDA(cudaStreamCreateWithFlags(&releases_, cudaStreamNonBlocking));
}

bool CopyCollectives::takes(const Call& call) const {
  if (!serves_arena(call)) return false;
  const int64_t bytes = bytes_of(call), ranks = region_->ranks();
  switch (call.op) {
    case CommOp::kAllGather:
      return least_gather_ > 0 && bytes * ranks >= least_gather_;
    case CommOp::kReduceScatter:
      return least_sum_ > 0 && bytes * ranks >= least_sum_ && adds_plainly(call);
    case CommOp::kAllReduce:
      return least_sum_ > 0 && bytes >= least_sum_ && adds_plainly(call);
    default:
      return false;
  }
}

void CopyCollectives::note(const Call& call) {
  if (call.op != CommOp::kAllGather || call.tag.kind != TagKind::kFollowing) is_in_batch_ = false;
}

void CopyCollectives::run(const Call& call, const SeenBy& outputs) {
  order_.enter(call.stream);
  call.op == CommOp::kAllGather ? gather(call, outputs) : sum(call, outputs);
  order_.leave(call.stream);
}

// Gathers -----------------------------------------------------------------------------------------

void CopyCollectives::gather(const Call& call, const SeenBy& outputs) {
  const cudaStream_t stream = native(call.stream);
  const auto bytes = size_t(bytes_of(call)), offset = bytes * size_t(region_->rank());
  if (!is_in_batch_) {
    meet(stream);
    begin_lanes_behind(stream, met_);
  }
  is_in_batch_ = true;
  // Each rank begins with another one, so that no GPU is written by all at once.
  for (int q = 1; q < region_->ranks(); ++q)
    copy(outputs.rank[after(q)] + offset, call.in(), bytes, lane(after(q)).stream);
  char* const own = static_cast<char*>(call.out()) + offset;
  if (own != call.in()) copy(own, call.in(), bytes, stream);
  end_lanes_before(stream);
  meet(stream);
}

// Sums --------------------------------------------------------------------------------------------

CopyCollectives::Sum CopyCollectives::sum_of(const Call& call) const {
  const auto bytes = size_t(bytes_of(call)), ranks = size_t(region_->ranks());
  Sum sum{};
  sum.in = static_cast<const char*>(call.in());
  sum.out = static_cast<char*>(call.out());
  sum.type = sum_type(call.dtype);
  sum.itemsize = size_t(itemsize(call.dtype));
  sum.divisor = divisor_of(call, region_->ranks());
  if (call.op == CommOp::kAllReduce) {
    sum.bytes = bytes;
    sum.slice = in_lines(divided(bytes, ranks));
  } else {
    sum.bytes = bytes * ranks;
    sum.slice = bytes;
    sum.out -= bytes * size_t(region_->rank());
  }
  // Pieces of equal size.
  sum.piece = in_lines(divided(sum.slice, divided(sum.slice, piece_bytes_)));
  return sum;
}

void CopyCollectives::sum(const Call& call, const SeenBy& outputs) {
  const Sum sum = sum_of(call);
  const cudaStream_t stream = native(call.stream);
  const bool shares = writes_others(call);
  const size_t pieces = sum.pieces(), ahead = kSlots - 1;
  meet(stream);
  begin_lanes_behind(stream, met_);
  for (size_t p = 0; p < std::min(ahead, pieces); ++p) send_operands(sum, {p});
  for (size_t p = 0; p < pieces; ++p) {
    wait_until_sent({p}, stream);
    meet(stream);
    if (p + ahead < pieces) {
      begin_lanes_behind(stream, met_);
      send_operands(sum, {p + ahead});
    }
    add(sum, {p}, stream);
    if (!shares) continue;
    begin_lanes_behind(stream, added_);
    send_sums(sum, {p}, outputs);
  }
  if (!shares) return;
  end_lanes_before(stream);
  meet(stream);
}

void CopyCollectives::send_operands(const Sum& sum, const Piece& piece) {
  for (int q = 1; q < region_->ranks(); ++q) {
    const int to = after(q);
    const Lane& way = lane(to);
    if (const size_t bytes = piece.bytes(sum, to); bytes > 0)
      copy(place(to, region_->rank(), piece.slot()), sum.in + piece.at(sum, to), bytes, way.stream);
    CATENA_NCCL_CUDA(cudaEventRecord(way.sent[size_t(piece.slot())], way.stream));
  }
}

void CopyCollectives::wait_until_sent(const Piece& piece, cudaStream_t stream) {
  for (int q = 1; q < region_->ranks(); ++q)
    CATENA_NCCL_CUDA(cudaStreamWaitEvent(stream, lane(after(q)).sent[size_t(piece.slot())]));
}

void CopyCollectives::add(const Sum& sum, const Piece& piece, cudaStream_t stream) {
  const int rank = region_->rank();
  SliceSum slice{};
  slice.ranks = region_->ranks();
  slice.elements = piece.bytes(sum, rank) / sum.itemsize;
  slice.type = sum.type;
  slice.divisor = sum.divisor;
  slice.sum = sum.out + piece.at(sum, rank);
  for (int r = 0; r < slice.ranks; ++r)
    slice.operands[r] = r == rank ? sum.in + piece.at(sum, rank) : place(rank, r, piece.slot());
  if (slice.elements > 0) CATENA_NCCL_CUDA(launch_slice_sum(slice, stream));
}

// Of this rank's slice.
void CopyCollectives::send_sums(const Sum& sum, const Piece& piece, const SeenBy& outputs) {
  const int rank = region_->rank();
  const size_t at = piece.at(sum, rank), bytes = piece.bytes(sum, rank);
  if (bytes == 0) return;
  for (int q = 1; q < region_->ranks(); ++q)
    copy(outputs.rank[after(q)] + at, sum.out + at, bytes, lane(after(q)).stream);
}

// Where rank `from` puts operands of a piece into the memory of rank `at`.
char* CopyCollectives::place(int at, int from, int slot) const {
  const int others = region_->ranks() - 1, index = slot * others + (from < at ? from : from - 1);
  return region_->of(at) + kPlacesAt + size_t(index) * piece_bytes_;
}

// Order -------------------------------------------------------------------------------------------

void CopyCollectives::meet(cudaStream_t stream) {
  CATENA_NCCL_CUDA(launch_meeting(meeting_, stream));
}

void CopyCollectives::begin_lanes_behind(cudaStream_t stream, cudaEvent_t event) {
  CATENA_NCCL_CUDA(cudaEventRecord(event, stream));
  for (int q = 1; q < region_->ranks(); ++q)
    CATENA_NCCL_CUDA(cudaStreamWaitEvent(lane(after(q)).stream, event));
}

void CopyCollectives::end_lanes_before(cudaStream_t stream) {
  for (int q = 1; q < region_->ranks(); ++q) {
    Lane& to = lane(after(q));
    CATENA_NCCL_CUDA(cudaEventRecord(to.end, to.stream));
    CATENA_NCCL_CUDA(cudaStreamWaitEvent(stream, to.end));
  }
}

// End ---------------------------------------------------------------------------------------------

void CopyCollectives::release() noexcept { stop_blocks(meeting_.state, 1, device_, releases_); }

void CopyCollectives::close(Communicator& control) {
  if (captured()) return control.barrier();
  region_->close(control);
  region_->free();
  for (int q = 1; q < control.size(); ++q) {
    const Lane& to = lane(after(q));
    cudaStreamDestroy(to.stream);
    cudaEventDestroy(to.end);
    for (const cudaEvent_t sent : to.sent) cudaEventDestroy(sent);
  }
  cudaEventDestroy(met_);
  cudaEventDestroy(added_);
  cudaStreamDestroy(releases_);
}

}  // namespace catena::comm::nccl
