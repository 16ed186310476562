// See copy_collectives.h.
//
// In a gather the ranks meet, which says that their arrays may be written, and each copies its part
// to all others. A meeting behind the copies says that all parts have come. Those of a batch need
// one meeting to begin.
//
// In a sum the ranks meet, each copies its operands of the slices of others to these, and a second
// meeting says that they have come. The next meeting of all says that they have been added.
//
// Each rank begins with another one, and all go on in the same order on one stream, from meeting to
// meeting: no GPU is written by two at once, which would halve the speed of both.
#include "copy_collectives.h"

#include <algorithm>
#include <utility>

#include "slice_sum_kernel.h"

namespace catena::comm::nccl {

namespace {

constexpr size_t kLine = 128;         // bytes; pieces are whole lines
constexpr size_t kPlaces = 60 << 20;  // bytes of a rank for operands of all others
// At the head of the memory for meetings: the state of the rank, and the counts of the others.
constexpr size_t kCountsAt = kLine, kMeetingBytes = 2 * kLine;
static_assert(sizeof(BlockState) <= kCountsAt);
static_assert(kCountsAt + kMostRanks * sizeof(uint32_t) <= kMeetingBytes);

// Of the operands of one rank, so many bytes at a time.
size_t piece_bytes(int ranks) { return kPlaces / size_t(ranks - 1) / kLine * kLine; }

void copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  CATENA_NCCL_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
}

bool serves_arena(const Call& call) {
  return call.tag.kind == TagKind::kBucket || call.tag.kind == TagKind::kFollowing;
}

}  // namespace

std::shared_ptr<CopyCollectives> CopyCollectives::create(Communicator& control, int device,
                                                         const Ways& ways) {
  if (control.size() < 2 || (ways.copied_gather <= 0 && ways.copied_sum <= 0)) return nullptr;
  std::shared_ptr<CopyCollectives> made(new CopyCollectives);
  made->region_ = PeerRegion::create(control, kMeetingBytes);
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
  CATENA_NCCL_CUDA(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking));
  CATENA_NCCL_CUDA(cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming));
  CATENA_NCCL_CUDA(cudaEventCreateWithFlags(&end_, cudaEventDisableTiming));
  CATENA_NCCL_CUDA(cudaStreamCreateWithFlags(&releases_, cudaStreamNonBlocking));
}

void CopyCollectives::prepare(size_t bytes, Communicator& control) {
  if (places_ || least_sum_ <= 0 || int64_t(bytes) < least_sum_) return;
  places_ = PeerRegion::create(control, kPlaces);
  if (!places_) least_sum_ = 0;
}

bool CopyCollectives::takes(const Call& call) const {
  if (!serves_arena(call)) return false;
  const int64_t bytes = bytes_of(call) * meeting_.ranks;
  if (call.op == CommOp::kAllGather) return least_gather_ > 0 && bytes >= least_gather_;
  return call.op == CommOp::kReduceScatter && places_ && bytes >= least_sum_ &&
         adds_in_float(call) && call.reduction != Reduction::kWeighted;
}

void CopyCollectives::note(const Call& call) {
  if (call.op != CommOp::kAllGather || call.tag.kind != TagKind::kFollowing) is_in_batch_ = false;
}

void CopyCollectives::run(const Call& call, const SeenBy& outputs) {
  order_.enter(call.stream);
  call.op == CommOp::kAllGather ? gather(call, outputs) : scatter_sum(call);
  order_.leave(call.stream);
}

void CopyCollectives::gather(const Call& call, const SeenBy& outputs) {
  const cudaStream_t stream = native(call.stream);
  const auto bytes = size_t(bytes_of(call)), offset = bytes * size_t(meeting_.rank);
  begin_copies(stream, std::exchange(is_in_batch_, true));
  for (int q = 1; q < meeting_.ranks; ++q)
    copy(outputs.rank[after(q)] + offset, call.in(), bytes, copies_);
  char* const own = static_cast<char*>(call.out()) + offset;
  if (own != call.in()) copy(own, call.in(), bytes, stream);
  end_copies(stream);
}

void CopyCollectives::scatter_sum(const Call& call) {
  const int rank = meeting_.rank, ranks = meeting_.ranks;
  const cudaStream_t stream = native(call.stream);
  const auto slice = size_t(bytes_of(call));
  const auto* const in = static_cast<const char*>(call.in());
  SliceSum sum{};
  sum.ranks = ranks;
  sum.type = sum_type(call.dtype).value();
  sum.divisor = divisor_of(call, ranks);
  for (int r = 0; r < ranks; ++r)
    if (r != rank) sum.operands[r] = place(rank, r);
  for (size_t begin = 0; begin < slice; begin += piece_bytes(ranks)) {
    const size_t bytes = std::min(piece_bytes(ranks), slice - begin);
    begin_copies(stream, false);
    for (int q = 1; q < ranks; ++q)
      copy(place(after(q), rank), in + size_t(after(q)) * slice + begin, bytes, copies_);
    end_copies(stream);
    sum.operands[rank] = in + size_t(rank) * slice + begin;
    sum.sum = static_cast<char*>(call.out()) + begin;
    sum.elements = bytes / size_t(itemsize(call.dtype));
    CATENA_NCCL_CUDA(launch_slice_sum(sum, stream));
  }
}

// Where rank `from` puts operands into the memory of rank `at`.
char* CopyCollectives::place(int at, int from) const {
  return places_->of(at) + size_t(from < at ? from : from - 1) * piece_bytes(meeting_.ranks);
}

// The memory of all ranks may be written, of which the call before may have made sure.
void CopyCollectives::begin_copies(cudaStream_t stream, bool have_met) {
  if (!have_met) meet(stream);
  CATENA_NCCL_CUDA(cudaEventRecord(begin_, stream));
  CATENA_NCCL_CUDA(cudaStreamWaitEvent(copies_, begin_));
}

// What all ranks copy to this one has come.
void CopyCollectives::end_copies(cudaStream_t stream) {
  CATENA_NCCL_CUDA(cudaEventRecord(end_, copies_));
  CATENA_NCCL_CUDA(cudaStreamWaitEvent(stream, end_));
  meet(stream);
}

void CopyCollectives::meet(cudaStream_t stream) {
  CATENA_NCCL_CUDA(launch_meeting(meeting_, stream));
}

void CopyCollectives::release() noexcept { stop_blocks(meeting_.state, 1, device_, releases_); }

void CopyCollectives::close(bool keep, Communicator& control) {
  if (keep) return control.barrier();
  for (PeerRegion* region : {region_.get(), places_.get()})
    if (region) region->close(control);
  for (PeerRegion* region : {region_.get(), places_.get()})
    if (region) region->free();
  cudaStreamDestroy(copies_);
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
  cudaStreamDestroy(releases_);
}

}  // namespace catena::comm::nccl
