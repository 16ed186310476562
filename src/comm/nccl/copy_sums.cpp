// See copy_sums.h.
//
// An array is cut into a slice for each rank, and the slices into pieces, one for each step. In
// step s a rank
//   1. copies its operands of the s-th piece of every other slice to the rank of that slice;
//   2. when those of its own slice have come, adds them;
//   3. copies the sums to all others;
//   4. copies the sums that come into its array.
// Each rank has two places for what another one sends, so that the copies of a step run while those
// of the step before are being used. Words say when a place is full, and when it is free again.
#include "copy_sums.h"

#include <algorithm>

#include "stream_words.h"

namespace catena::comm::nccl {

namespace {

constexpr int kPlaces = 2;
constexpr int kWordKinds = 4;
constexpr size_t kLine = 128;            // bytes; slices and pieces are whole lines
constexpr size_t kMemory = 96 << 20;     // of a rank, for all places
constexpr size_t kUnit = 64 << 10;       // of a place
constexpr size_t kWordBytes = 64 << 10;  // at the head of the memory of a rank

size_t divided(size_t number, size_t by) { return (number + by - 1) / by; }
size_t in_lines(size_t bytes) { return divided(bytes, kLine) * kLine; }

bool adds_in_float(const Call& call) {
  return adds(call) && call.reduction != Reduction::kWeighted &&
         (call.dtype == Dtype::kFloat32 || call.dtype == Dtype::kFloat16 ||
          call.dtype == Dtype::kBFloat16);
}

SumType sum_type(Dtype dtype) {
  return dtype == Dtype::kFloat16    ? SumType::kFloat16
         : dtype == Dtype::kBFloat16 ? SumType::kBFloat16
                                     : SumType::kFloat32;
}

void copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  CATENA_NCCL_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

// A call, cut into slices. Where an array has the slice of this rank alone, `in` or `out` is where
// the whole would begin.
struct CopySums::Work {
  const char* in;
  char* out;
  bool adds, shares;              // whether there are sums; whether all ranks get all slices
  size_t bytes, slice, itemsize;  // of the whole array, of a slice, of an element
  size_t piece;                   // of a slice, in a step
  SumType type;
  float divisor;
};

// One piece of each slice.
struct CopySums::Step {
  int place;
  size_t begin;  // in each slice

  size_t at(const Work& work, int slice) const { return size_t(slice) * work.slice + begin; }
  size_t bytes(const Work& work, int slice) const {
    const size_t first = at(work, slice);
    if (begin >= work.slice || first >= work.bytes) return 0;
    return std::min({work.piece, work.slice - begin, work.bytes - first});
  }
};

std::shared_ptr<CopySums> CopySums::create(Communicator& control, int device) {
  const size_t ranks = size_t(control.size());
  if (ranks < 2 || !all_agree(control, stream_words_work())) return nullptr;
  std::shared_ptr<CopySums> made(new CopySums);
  made->place_bytes_ = kMemory / (2 * kPlaces * (ranks - 1)) / kUnit * kUnit;
  const size_t places = 2 * kPlaces * (ranks - 1);
  made->region_ = PeerRegion::create(control, kWordBytes + places * made->place_bytes_);
  if (!made->region_) return nullptr;
  made->rank_ = control.rank();
  made->ranks_ = int(ranks);
  made->device_ = device;
  for (size_t r = 0; r < ranks; ++r) made->to_.push_back(Stream::create(cuda_device(device)));
  made->fetches_ = Stream::create(cuda_device(device));
  for (Event& event : made->added_) event = Event::create(cuda_device(device));
  CATENA_NCCL_CUDA(cudaStreamCreateWithFlags(&made->releases_, cudaStreamNonBlocking));
  made->allow_all();
  control.barrier();  // nobody writes words before
  return made;
}

// In the beginning all places are free.
void CopySums::allow_all() const {
  for (int r = 0; r < ranks_; ++r) {
    for (int p = 0; p < kPlaces; ++p) {
      for (const Word kind : {Word::kOperandsMayCome, Word::kSumsMayCome})
        CATENA_NCCL_CUDA(cudaMemcpy(word(kind, rank_, r, p), &kWordSet, sizeof kWordSet,
                                    cudaMemcpyHostToDevice));
    }
  }
}

uint32_t* CopySums::word(Word kind, int at, int about, int place) const {
  const int index = (int(kind) * kMostRanks + about) * kPlaces + place;
  return reinterpret_cast<uint32_t*>(region_->of(at)) + index;
}

// Where rank `from` puts operands or sums into the memory of rank `at`.
char* CopySums::place(bool sums, int at, int from, int place) const {
  const int other = from < at ? from : from - 1;
  const int index = (int(sums) * (ranks_ - 1) + other) * kPlaces + place;
  return region_->of(at) + kWordBytes + size_t(index) * place_bytes_;
}

bool CopySums::takes(const Call& call, const Ways& ways, int ranks) {
  const int64_t bytes = bytes_of(call), least = ways.copies;
  if (least <= 0) return false;
  switch (call.op) {
    case CommOp::kAllReduce:
      return bytes >= least && adds_in_float(call);
    case CommOp::kReduceScatter:
      return bytes * ranks >= least && adds_in_float(call);
    case CommOp::kAllGather:
      return bytes * ranks >= least;
    default:
      return false;
  }
}

CopySums::Work CopySums::work_of(const Call& call) const {
  Work work{};
  const auto bytes = size_t(bytes_of(call));
  work.in = static_cast<const char*>(call.in());
  work.out = static_cast<char*>(call.out());
  work.adds = call.op != CommOp::kAllGather;
  work.shares = call.op != CommOp::kReduceScatter;
  work.itemsize = size_t(itemsize(call.dtype));
  work.type = sum_type(call.dtype);
  work.divisor = work.adds ? divisor_of(call, ranks_) : 1.f;
  if (call.op == CommOp::kAllReduce) {
    work.bytes = bytes;
    work.slice = in_lines(divided(bytes, size_t(ranks_)));
  } else {
    work.bytes = bytes * size_t(ranks_);
    work.slice = bytes;
    if (work.adds) work.out -= bytes * size_t(rank_);
    if (!work.adds) work.in -= bytes * size_t(rank_);
  }
  // Steps of equal size.
  work.piece = in_lines(divided(work.slice, divided(work.slice, place_bytes_)));
  return work;
}

void CopySums::run(const Call& call) {
  order_.enter(call.stream);
  const Work work = work_of(call);
  for (int q = 1; q < ranks_; ++q) to_[size_t(after(q))].wait(call.stream);
  fetches_.wait(call.stream);
  const size_t steps = divided(work.slice, work.piece);
  const auto step = [&](size_t s) { return Step{int(s % kPlaces), s * work.piece}; };
  for (size_t s = 0; s < steps; ++s) {
    // The operands of the next step travel while those of this one are added.
    if (work.adds && s == 0) send_operands(work, step(0));
    if (work.adds && s + 1 < steps) send_operands(work, step(s + 1));
    if (work.adds) add(work, step(s), native(call.stream));
    if (!work.shares) continue;
    if (work.adds) added_[s % kPlaces].record(call.stream);
    send_slices(work, step(s));
    fetch_slices(work, step(s));
  }
  if (!work.adds && work.in != work.out) {
    const size_t own = size_t(rank_) * work.slice;
    copy(work.out + own, work.in + own, work.slice, native(call.stream));
  }
  for (int q = 1; q < ranks_; ++q) call.stream.wait(to_[size_t(after(q))]);
  call.stream.wait(fetches_);
}

void CopySums::send_operands(const Work& work, const Step& step) {
  for (int q = 1; q < ranks_; ++q) {
    const int to = after(q);
    const size_t bytes = step.bytes(work, to);
    if (bytes == 0) continue;
    const cudaStream_t stream = native(to_[size_t(to)]);
    uint32_t* const may_come = word(Word::kOperandsMayCome, rank_, to, step.place);
    WordBatch().wait_for(may_come).write(may_come, 0).queue(stream);
    copy(place(false, to, rank_, step.place), work.in + step.at(work, to), bytes, stream);
    write_word(stream, word(Word::kOperandsCame, to, rank_, step.place), kWordSet);
  }
}

void CopySums::add(const Work& work, const Step& step, cudaStream_t stream) {
  const size_t bytes = step.bytes(work, rank_);
  if (bytes == 0) return;
  WordBatch came, used;
  SliceSum sum{};
  for (int r = 0; r < ranks_; ++r) {
    sum.operands[r] = work.in + step.at(work, rank_);
    if (r == rank_) continue;
    sum.operands[r] = place(false, rank_, r, step.place);
    uint32_t* const word_of_r = word(Word::kOperandsCame, rank_, r, step.place);
    came.wait_for(word_of_r).write(word_of_r, 0);
    used.write(word(Word::kOperandsMayCome, r, rank_, step.place), kWordSet);
  }
  sum.sum = work.out + step.at(work, rank_);
  sum.ranks = ranks_;
  sum.elements = bytes / work.itemsize;
  sum.type = work.type;
  sum.divisor = work.divisor;
  came.queue(stream);
  CATENA_NCCL_CUDA(launch_slice_sum(sum, stream));
  used.queue(stream);
}

// This rank's slice, of sums or, in a gather, of the array.
void CopySums::send_slices(const Work& work, const Step& step) {
  const size_t bytes = step.bytes(work, rank_);
  if (bytes == 0) return;
  const char* const from = (work.adds ? work.out : work.in) + step.at(work, rank_);
  for (int q = 1; q < ranks_; ++q) {
    const int to = after(q);
    const Stream& lane = to_[size_t(to)];
    if (work.adds) lane.wait(added_[step.place]);
    uint32_t* const may_come = word(Word::kSumsMayCome, rank_, to, step.place);
    WordBatch().wait_for(may_come).write(may_come, 0).queue(native(lane));
    copy(place(true, to, rank_, step.place), from, bytes, native(lane));
    write_word(native(lane), word(Word::kSumsCame, to, rank_, step.place), kWordSet);
  }
}

void CopySums::fetch_slices(const Work& work, const Step& step) {
  const cudaStream_t stream = native(fetches_);
  for (int q = 1; q < ranks_; ++q) {
    const int from = after(ranks_ - q);  // whose copies to this rank come first
    const size_t bytes = step.bytes(work, from);
    if (bytes == 0) continue;
    uint32_t* const came = word(Word::kSumsCame, rank_, from, step.place);
    wait_for_word(stream, came);
    copy(work.out + step.at(work, from), place(true, rank_, from, step.place), bytes, stream);
    WordBatch()
        .write(came, 0)
        .write(word(Word::kSumsMayCome, from, rank_, step.place), kWordSet)
        .queue(stream);
  }
}

void CopySums::release(double seconds) noexcept {
  const RelaxedMode relaxed;
  cudaSetDevice(device_);
  set_words(reinterpret_cast<uint32_t*>(region_->own()), kWordKinds * kMostRanks * kPlaces,
            releases_, seconds);
}

void CopySums::close(Communicator& control) {
  if (order_.captured()) return control.barrier();
  region_->close(control);
  region_->free();
  cudaStreamDestroy(releases_);
}

}  // namespace catena::comm::nccl
