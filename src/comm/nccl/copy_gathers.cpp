// See copy_gathers.h.
//
// A rank says to all others that its array may be written, which is when its stream has come to the
// call. When all have said so, it copies its part to each and says that it has come. The stream
// goes on when the parts of all others have come and its own has left.
#include "copy_gathers.h"

#include "stream_words.h"

namespace catena::comm::nccl {

namespace {

constexpr int kWordKinds = 2;

void copy(char* to, const void* from, size_t bytes, cudaStream_t stream) {
  CATENA_NCCL_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

std::shared_ptr<CopyGathers> CopyGathers::create(Communicator& control, int device) {
  if (control.size() < 2 || !all_agree(control, stream_words_work())) return nullptr;
  std::shared_ptr<CopyGathers> made(new CopyGathers);
  made->region_ =
      PeerRegion::create(control, size_t(kWordKinds) * size_t(kMostRanks) * sizeof(uint32_t));
  if (!made->region_) return nullptr;
  made->device_ = device;
  for (int q = 1; q < control.size(); ++q) {
    Lane& lane = made->lanes_[size_t(made->after(q))];
    CATENA_NCCL_CUDA(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
    CATENA_NCCL_CUDA(cudaEventCreateWithFlags(&lane.end, cudaEventDisableTiming));
  }
  CATENA_NCCL_CUDA(cudaEventCreateWithFlags(&made->begin_, cudaEventDisableTiming));
  CATENA_NCCL_CUDA(cudaStreamCreateWithFlags(&made->releases_, cudaStreamNonBlocking));
  return made;
}

bool CopyGathers::takes(const Call& call, int ranks, int64_t least) {
  return least > 0 && call.op == CommOp::kAllGather && call.tag.kind == TagKind::kBucket &&
         bytes_of(call) * ranks >= least;
}

uint32_t* CopyGathers::word(Word kind, int at, int from) const {
  return reinterpret_cast<uint32_t*>(region_->of(at)) + int(kind) * kMostRanks + from;
}

void CopyGathers::run(const Call& call, const SeenBy& outputs) {
  order_.enter(call.stream);
  const int rank = region_->rank(), ranks = region_->ranks();
  const auto bytes = size_t(bytes_of(call));
  const cudaStream_t stream = native(call.stream);
  for (int q = 1; q < ranks; ++q)
    write_word(stream, word(Word::kMayCome, after(q), rank), kWordSet);
  for (int q = 1; q < ranks; ++q) take_word(stream, word(Word::kMayCome, rank, after(q)));
  CATENA_NCCL_CUDA(cudaEventRecord(begin_, stream));
  // Each rank begins with another one, so that no GPU is written by all at once.
  for (int q = 1; q < ranks; ++q) {
    const int to = after(q);
    const Lane& lane = lanes_[size_t(to)];
    CATENA_NCCL_CUDA(cudaStreamWaitEvent(lane.stream, begin_));
    copy(outputs.rank[to] + size_t(rank) * bytes, call.in(), bytes, lane.stream);
    write_word(lane.stream, word(Word::kHasCome, to, rank), kWordSet);
    CATENA_NCCL_CUDA(cudaEventRecord(lane.end, lane.stream));
  }
  char* const own = static_cast<char*>(call.out()) + size_t(rank) * bytes;
  if (own != call.in()) copy(own, call.in(), bytes, stream);
  // The copies first: in a graph they could come behind the words in one queue of the GPU.
  for (int q = 1; q < ranks; ++q)
    CATENA_NCCL_CUDA(cudaStreamWaitEvent(stream, lanes_[size_t(after(q))].end));
  for (int q = 1; q < ranks; ++q) take_word(stream, word(Word::kHasCome, rank, after(q)));
  order_.leave(call.stream);
}

void CopyGathers::release(double seconds) noexcept {
  const RelaxedMode relaxed;
  cudaSetDevice(device_);
  set_words(reinterpret_cast<uint32_t*>(region_->own()), size_t(kWordKinds) * kMostRanks, releases_,
            seconds);
}

void CopyGathers::close(Communicator& control) {
  if (captured()) return control.barrier();
  region_->close(control);
  region_->free();
  for (int q = 1; q < control.size(); ++q) {
    const Lane& lane = lanes_[size_t(after(q))];
    cudaStreamDestroy(lane.stream);
    cudaEventDestroy(lane.end);
  }
  cudaEventDestroy(begin_);
  cudaStreamDestroy(releases_);
}

}  // namespace catena::comm::nccl
