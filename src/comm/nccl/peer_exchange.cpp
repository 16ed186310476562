// See peer_exchange.h.
#include "peer_exchange.h"

#include <algorithm>

namespace catena::comm::nccl {

std::shared_ptr<PeerExchange> PeerExchange::create(Communicator& control, const PeerRanks& peers,
                                                   int device) {
  if (!peers.all()) return nullptr;
  std::shared_ptr<PeerExchange> made(new PeerExchange);
  made->region_ = PeerRegion::create(control, exchange_bytes(control.size()));
  if (!made->region_) return nullptr;
  const PeerRegion& region = *made->region_;
  made->device_ = device;
  made->parts_.rank = region.rank();
  made->parts_.ranks = region.ranks();
  made->parts_.states = reinterpret_cast<BlockState*>(region.own());
  for (int r = 0; r < region.ranks(); ++r)
    made->parts_.words[r] = reinterpret_cast<MarkedWord*>(region.of(r) + kStateBytes);
  CATENA_NCCL_CUDA(cudaStreamCreateWithFlags(&made->releases_, cudaStreamNonBlocking));
  return made;
}

// By what all ranks have in common. The address of an array is not: smaller elements may begin
// between two words on some ranks alone.
bool PeerExchange::takes(const Call& call, int64_t most) {
  const int64_t bytes = bytes_of(call);
  if (bytes == 0 || bytes > std::min(most, int64_t(kMostBytes))) return false;
  if (call.op == CommOp::kAllGather) return itemsize(call.dtype) % 4 == 0;
  if (call.op != CommOp::kAllReduce || !adds(call)) return false;
  return call.dtype == Dtype::kFloat32 ||
         (call.dtype == Dtype::kFloat64 && call.reduction != Reduction::kWeighted);
}

namespace {

ExchangeKind kind_of(const Call& call) {
  if (call.op == CommOp::kAllGather) return ExchangeKind::kGather;
  return call.dtype == Dtype::kFloat64 ? ExchangeKind::kSumFloat64 : ExchangeKind::kSumFloat32;
}

}  // namespace

void PeerExchange::run(const Call& call) {
  order_.enter(call.stream);
  const ExchangeKind kind = kind_of(call);
  CATENA_NCCL_CUDA(launch_exchange(parts_,
                                   {.in = call.in(),
                                    .out = call.out(),
                                    .words = size_t(bytes_of(call)) / 4,
                                    .number = call_number(call.sequence),
                                    .kind = kind,
                                    .weight = weight_of(call),
                                    .divisor = divisor_of(call, parts_.ranks)},
                                   native(call.stream)));
  order_.leave(call.stream);
}

void PeerExchange::release() noexcept {
  stop_blocks(parts_.states, kMostBlocks, device_, releases_);
}

void PeerExchange::close(Communicator& control) {
  if (order_.captured()) return control.barrier();
  region_->close(control);
  region_->free();
  cudaStreamDestroy(releases_);
}

}  // namespace catena::comm::nccl
