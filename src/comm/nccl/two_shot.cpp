// See two_shot.h.
#include "two_shot.h"

#include <algorithm>

namespace catena::comm::nccl {

namespace {

// Slices and parts are whole lines of 128 bytes.
constexpr size_t kLinePacks = 128 / kPackBytes;

size_t divided(size_t number, size_t by) { return (number + by - 1) / by; }
size_t in_lines(size_t packs) { return divided(packs, kLinePacks) * kLinePacks; }
size_t slice_of(size_t packs, int ranks) { return in_lines(divided(packs, size_t(ranks))); }

// Whether the kernel adds such elements. A weight would be rounded to 16 bits.
bool adds_in_float(const Call& call) {
  if (!adds(call)) return false;
  if (call.dtype == Dtype::kFloat32) return true;
  const bool is_16_bit = call.dtype == Dtype::kFloat16 || call.dtype == Dtype::kBFloat16;
  return is_16_bit && call.reduction != Reduction::kWeighted;
}

bool is_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kPackBytes == 0;
}

SumType sum_type(Dtype dtype) {
  return dtype == Dtype::kFloat16    ? SumType::kFloat16
         : dtype == Dtype::kBFloat16 ? SumType::kBFloat16
                                     : SumType::kFloat32;
}

}  // namespace

std::shared_ptr<TwoShotSums> TwoShotSums::create(Communicator& control, int device,
                                                 const Ways& ways) {
  if (ways.two_shot <= 0 || ways.blocks <= 0) return nullptr;
  std::shared_ptr<TwoShotSums> made(new TwoShotSums);
  const size_t ranks = size_t(control.size()), blocks = size_t(ways.blocks);
  TwoShot& parts = made->parts_;
  // A call of fewer blocks has smaller parts than kTwoShotThreads packs, see run().
  parts.block_packs = std::max(
      in_lines(divided(slice_of(divided(size_t(ways.two_shot), kPackBytes), int(ranks)), blocks)),
      in_lines(kTwoShotThreads));
  const size_t area = blocks * ranks * parts.block_packs * kPackBytes;
  parts.signals_at = in_lines(blocks) * sizeof(BlockState);  // as large as a pack
  parts.operands_at = parts.signals_at + in_lines(blocks * kMostRanks) * sizeof(BlockSignal);
  parts.sums_at = parts.operands_at + area;
  made->region_ = PeerRegion::create(control, parts.sums_at + area);
  if (!made->region_) return nullptr;
  parts.rank = made->region_->rank();
  parts.ranks = made->region_->ranks();
  for (int r = 0; r < parts.ranks; ++r) parts.memory[r] = made->region_->of(r);
  made->most_bytes_ = ways.two_shot;
  made->blocks_ = ways.blocks;
  made->device_ = device;
  CATENA_NCCL_CUDA(cudaStreamCreateWithFlags(&made->releases_, cudaStreamNonBlocking));
  return made;
}

// By what all ranks have in common, which addresses are not.
bool TwoShotSums::takes(const Call& call) const {
  const int64_t bytes = bytes_of(call);
  switch (call.op) {
    case CommOp::kAllReduce:
      return bytes > 0 && bytes <= most_bytes_ && adds_in_float(call);
    case CommOp::kReduceScatter:
      return is_whole_slice(bytes) && adds_in_float(call);
    case CommOp::kAllGather:  // elements of a byte may begin between those of two
      return is_whole_slice(bytes) && itemsize(call.dtype) % 2 == 0;
    default:
      return false;
  }
}

bool TwoShotSums::is_whole_slice(int64_t bytes) const {
  return bytes > 0 && bytes * parts_.ranks <= most_bytes_ && bytes % int64_t(kPackBytes) == 0;
}

void TwoShotSums::run(const Call& call, const SeenBy* output) {
  order_.enter(call.stream);
  TwoShotCall of{};
  of.in = call.in();
  of.out = call.out();
  of.type = sum_type(call.dtype);
  if (call.op == CommOp::kAllReduce)
    cut(of, size_t(bytes_of(call)), size_t(itemsize(call.dtype)));
  else
    take_slices(of, call);
  of.blocks = unsigned(std::min(divided(of.slice, kTwoShotThreads), size_t(blocks_)));
  of.part = in_lines(divided(of.slice, of.blocks));
  of.weight = reduces(call.op) ? weight_of(call) : 1.f;
  of.divisor = reduces(call.op) ? divisor_of(call, parts_.ranks) : 1.f;
  of.number = call_number(call.sequence);
  of.aligned_in = is_aligned(of.in);
  of.aligned_out = is_aligned(of.out);
  of.direct = output && of.aligned_out;
  if (of.direct) std::copy_n(output->rank, kMostRanks, of.targets);
  CATENA_NCCL_CUDA(launch_two_shot(parts_, of, native(call.stream)));
}

void TwoShotSums::cut(TwoShotCall& of, size_t bytes, size_t itemsize) const {
  of.kind = TwoShotKind::kAllReduce;
  of.packs = divided(bytes, kPackBytes);
  of.in_last = unsigned((bytes - (of.packs - 1) * kPackBytes) / itemsize);
  of.slice = slice_of(of.packs, parts_.ranks);
}

// Each rank's array is a slice of its own, which must not be moved.
void TwoShotSums::take_slices(TwoShotCall& of, const Call& call) const {
  const auto bytes = size_t(bytes_of(call));
  of.slice = bytes / kPackBytes;
  of.packs = of.slice * size_t(parts_.ranks);
  of.in_last = unsigned(kPackBytes / size_t(itemsize(call.dtype)));
  const size_t before = bytes * size_t(parts_.rank);
  if (call.op == CommOp::kReduceScatter) {
    of.kind = TwoShotKind::kReduceScatter;
    of.out = static_cast<char*>(of.out) - before;
  } else {
    of.kind = TwoShotKind::kAllGather;
    // Words of the size to which arrays are aligned, whatever they hold.
    const bool halves = itemsize(call.dtype) % 4 != 0;
    of.type = halves ? SumType::kFloat16 : SumType::kFloat32;
    of.in_last = unsigned(kPackBytes / (halves ? 2 : 4));
    of.in = static_cast<const char*>(of.in) - before;
  }
}

void TwoShotSums::release() noexcept {
  stop_blocks(reinterpret_cast<BlockState*>(region_->own()), size_t(blocks_), device_, releases_);
}

void TwoShotSums::close(Communicator& control) {
  if (captured()) return control.barrier();
  region_->close(control);
  region_->free();
  cudaStreamDestroy(releases_);
}

}  // namespace catena::comm::nccl
