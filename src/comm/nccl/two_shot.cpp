// See two_shot.h.
#include "two_shot.h"

#include <algorithm>

namespace catena::comm::nccl {

namespace {

// Slices and parts are whole lines of 128 bytes.
constexpr size_t kLinePacks = 128 / kPackBytes;
// What one launch takes. Larger arrays go piece by piece.
constexpr int64_t kPieceBytes = 16 << 20;

size_t divided(size_t number, size_t by) { return (number + by - 1) / by; }
size_t in_lines(size_t packs) { return divided(packs, kLinePacks) * kLinePacks; }
size_t slice_of(size_t packs, int ranks) { return in_lines(divided(packs, size_t(ranks))); }

}  // namespace

bool adds_in_float(const Call& call) {
  const std::optional<SumType> type = sum_type(call.dtype);
  return adds(call) && type &&
         (type == SumType::kFloat32 || call.reduction != Reduction::kWeighted);
}

std::optional<SumType> sum_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16: return SumType::kFloat16;
    case Dtype::kBFloat16: return SumType::kBFloat16;
    case Dtype::kFloat32: return SumType::kFloat32;
    default: return {};
  }
}

std::shared_ptr<TwoShotSums> TwoShotSums::create(Communicator& control, int device,
                                                 const Ways& ways) {
  if (ways.two_shot <= 0 || ways.blocks <= 0) return nullptr;
  std::shared_ptr<TwoShotSums> made(new TwoShotSums);
  const size_t ranks = size_t(control.size()), blocks = size_t(ways.blocks);
  made->piece_bytes_ = size_t(std::min(ways.two_shot, kPieceBytes));
  TwoShot& parts = made->parts_;
  // A call of fewer blocks has smaller parts than kTwoShotThreads packs, see run().
  parts.block_packs = std::max(
      in_lines(divided(slice_of(divided(made->piece_bytes_, kPackBytes), int(ranks)), blocks)),
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
    case CommOp::kAllReduce: return bytes > 0 && bytes <= most_bytes_ && adds_in_float(call);
    case CommOp::kReduceScatter: return is_whole_slice(bytes) && adds_in_float(call);
    case CommOp::kAllGather:  // elements of a byte may begin between those of two
      return is_whole_slice(bytes) && itemsize(call.dtype) % 2 == 0;
    default: return false;
  }
}

bool TwoShotSums::is_whole_slice(int64_t bytes) const {
  return bytes > 0 && bytes * parts_.ranks <= most_bytes_ && bytes % int64_t(kPackBytes) == 0;
}

void TwoShotSums::run(const Call& call, const SeenBy* output) {
  order_.enter(call.stream);
  TwoShotCall of{};
  of.weight = reduces(call.op) ? weight_of(call) : 1.f;
  of.divisor = reduces(call.op) ? divisor_of(call, parts_.ranks) : 1.f;
  of.number = call_number(call.sequence);
  call.op == CommOp::kAllReduce ? run_whole(of, call, output) : run_slices(of, call, output);
  order_.leave(call.stream);
}

// Each piece is cut into slices of its own.
void TwoShotSums::run_whole(TwoShotCall& of, const Call& call, const SeenBy* output) {
  const auto bytes = size_t(bytes_of(call));
  of.kind = TwoShotKind::kAllReduce;
  of.type = sum_type(call.dtype).value();
  for (size_t begin = 0; begin < bytes; begin += piece_bytes_) {
    const size_t piece = std::min(piece_bytes_, bytes - begin);
    of.packs = divided(piece, kPackBytes);
    of.in_last = unsigned((piece - (of.packs - 1) * kPackBytes) / size_t(itemsize(call.dtype)));
    of.slice = of.stride = slice_of(of.packs, parts_.ranks);
    of.in = static_cast<const char*>(call.in()) + begin;
    of.out = static_cast<char*>(call.out()) + begin;
    launch(of, call.stream, output, begin);
  }
}

// Each rank's array is a slice of its own, which must not be moved: a piece is one of each slice.
void TwoShotSums::run_slices(TwoShotCall& of, const Call& call, const SeenBy* output) {
  const auto bytes = size_t(bytes_of(call));
  const size_t packs = bytes / kPackBytes, before = bytes * size_t(parts_.rank);
  const bool halves = itemsize(call.dtype) % 4 != 0, scatters = call.op == CommOp::kReduceScatter;
  of.kind = scatters ? TwoShotKind::kReduceScatter : TwoShotKind::kAllGather;
  // A gather is of words of the size to which arrays are aligned, whatever they hold.
  of.type = scatters ? sum_type(call.dtype).value()
            : halves ? SumType::kFloat16
                     : SumType::kFloat32;
  of.in_last = unsigned(kPackBytes / (halves ? 2 : 4));
  of.stride = packs;
  const size_t most = piece_bytes_ / kPackBytes / size_t(parts_.ranks);
  for (size_t begin = 0; begin < packs; begin += most) {
    of.slice = std::min(most, packs - begin);
    of.packs = of.stride * size_t(parts_.ranks - 1) + of.slice;
    const size_t offset = begin * kPackBytes;
    of.in = static_cast<const char*>(call.in()) + offset - (scatters ? 0 : before);
    of.out = static_cast<char*>(call.out()) + offset - (scatters ? before : 0);
    launch(of, call.stream, output, offset);
  }
}

// `offset`: where the piece begins in the output that others see.
void TwoShotSums::launch(TwoShotCall& of, const Stream& stream, const SeenBy* output,
                         size_t offset) {
  of.blocks = unsigned(std::min(divided(of.slice, kTwoShotThreads), size_t(blocks_)));
  of.part = in_lines(divided(of.slice, of.blocks));
  of.aligned_in = is_aligned(of.in);
  of.aligned_out = is_aligned(of.out);
  of.direct = output && of.aligned_out;
  for (int r = 0; of.direct && r < parts_.ranks; ++r)
    of.targets[r] = output->rank[r] ? output->rank[r] + offset : nullptr;
  CATENA_NCCL_CUDA(launch_two_shot(parts_, of, native(stream)));
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
