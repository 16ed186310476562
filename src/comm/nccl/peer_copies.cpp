// See peer_copies.h.
#include "peer_copies.h"

#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "call_order.h"
#include "catena/array/creation.h"
#include "catena/core/log.h"
#include "nccl_calls.h"

namespace catena::comm::nccl {
namespace {

// Words in device memory that streams wait for and write, and that other GPUs of the host write:
// 0 or kWordSet.
constexpr uint32_t kWordSet = 1;

struct StreamWords {
  decltype(&cuStreamWaitValue32) wait = nullptr;
  decltype(&cuStreamWriteValue32) write = nullptr;
};

template <class F>
void find_entry(F& function, const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found) ==
          cudaSuccess &&
      found == cudaDriverEntryPointSuccess)
    function = reinterpret_cast<F>(address);
}

const StreamWords& stream_words() {
  static const StreamWords found = [] {
    StreamWords words;
    find_entry(words.wait, "cuStreamWaitValue32");
    find_entry(words.write, "cuStreamWriteValue32");
    cudaGetLastError();
    return words;
  }();
  return found;
}

void check_driver(CUresult code, const char* call) {
  CATENA_CHECK(DeviceError, code == CUDA_SUCCESS, "nccl: ", call, " failed with error ", int(code));
}

CUdeviceptr address(const uint32_t* word) { return reinterpret_cast<CUdeviceptr>(word); }

// Whether the driver has both.
bool stream_words_work() { return stream_words().wait && stream_words().write; }

// The work that follows in the stream begins when the word is set. Only the lowest bit counts, so
// that filling words with ones ends all waits.
void wait_for_word(cudaStream_t stream, const uint32_t* word) {
  check_driver(stream_words().wait(stream, address(word), kWordSet, CU_STREAM_WAIT_VALUE_AND),
               "cuStreamWaitValue32");
}

// After the work before it in the stream.
void write_word(cudaStream_t stream, uint32_t* word, uint32_t value) {
  check_driver(stream_words().write(stream, address(word), value, CU_STREAM_WRITE_VALUE_DEFAULT),
               "cuStreamWriteValue32");
}

// Waits for the word, and clears it for the next time.
void take_word(cudaStream_t stream, uint32_t* word) {
  wait_for_word(stream, word);
  write_word(stream, word, 0);
}

// Sets `count` words again and again, for the GPU clears those that it has waited for: for a
// communicator that has failed. Takes up to `seconds`, any thread.
void set_words(uint32_t* words, size_t count, cudaStream_t stream, double seconds) noexcept {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (cudaMemsetAsync(words, kWordSet, count * sizeof(uint32_t), stream) != cudaSuccess ||
        cudaStreamSynchronize(stream) != cudaSuccess)
      return;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

constexpr int64_t kGranularity = 2 << 20;  // of the memory for messages

}  // namespace

// The receiver's offer of memory.
struct PeerCopies::Offer {
  int64_t bytes = 0;  // 0: it cannot be done
  cudaIpcMemHandle_t memory{};
};

struct PeerCopies::Lane {
  int peer = 0;
  bool sends = false;
  bool usable = true;           // false once the two ranks have found that they cannot
  int64_t capacity = 0;         // bytes of `memory`
  void* memory = nullptr;       // the receiver's; mapped where this rank sends
  uint32_t* set = nullptr;      // the word of the other rank that this one sets
  uint32_t* await = nullptr;    // the word of this rank that the other one sets
  std::vector<void*> outgrown;  // earlier memory
  Stream stream;                // for groups with several messages of the lane
  CallOrder order{true};        // of its messages, which may be on several streams
};

PeerCopies::PeerCopies(int rank, int device) : rank_(rank), device_(device) {}
PeerCopies::~PeerCopies() = default;

std::shared_ptr<PeerCopies> PeerCopies::create(Communicator& control, const PeerRanks& peers,
                                               int device) {
  if (!peers.any_two()) return nullptr;
  std::shared_ptr<PeerCopies> made(new PeerCopies(control.rank(), device));
  const size_t ranks = size_t(control.size()), bytes = ranks * 2 * sizeof(uint32_t);
  PeerMemory own;
  if (peers.has_any() && stream_words_work()) {
    void* memory = nullptr;
    own = share_memory(&memory, bytes);
    made->words_ = static_cast<uint32_t*>(memory);
    own.is_shared = own.is_shared && cudaStreamCreateWithFlags(
                                         &made->releases_, cudaStreamNonBlocking) == cudaSuccess;
  }
  const std::vector<PeerMemory> all = control.all_gather_object(own);
  for (size_t r = 0; r < ranks; ++r) {
    made->near_.push_back(own.is_shared && all[r].is_shared && peers.has(int(r)));
    made->words_from_.push_back(all[r].handle);
  }
  made->mapped_words_.resize(ranks);
  return made;
}

bool PeerCopies::may_take(const Call& call) const {
  return (call.op == CommOp::kSend || call.op == CommOp::kRecv) && near_[size_t(call.root)] &&
         bytes_of(call) >= kLeastBytes;
}

PeerCopies::Lane& PeerCopies::lane_of(const Call& call) {
  const bool sends = call.op == CommOp::kSend;
  std::unique_ptr<Lane>& lane = lanes_[{call.root, sends}];
  if (!lane) {
    lane = std::make_unique<Lane>();
    lane->peer = call.root;
    lane->sends = sends;
    lane->await = words_ + 2 * call.root + (sends ? 1 : 0);
  }
  return *lane;
}

bool PeerCopies::reaches_all() const {
  return std::count(near_.begin(), near_.end(), true) == int64_t(near_.size()) - 1;
}

namespace {
bool in_one_lane(const Call& a, const Call& b) { return a.op == b.op && a.root == b.root; }

bool has_lane(std::span<const Call> messages, const Call& call) {
  return std::any_of(messages.begin(), messages.end(),
                     [&](const Call& other) { return in_one_lane(other, call); });
}
}  // namespace

std::vector<Call> PeerCopies::run(Communicator& control, std::span<const Call> group) {
  std::vector<Call> others, messages;
  bool lanes_differ = true;
  for (const Call& call : group) {
    if (!may_take(call)) {
      others.push_back(call);
      continue;
    }
    lanes_differ &= !has_lane(messages, call);
    messages.push_back(call);
  }
  const RelaxedMode relaxed;  // memory may be allocated while a graph is captured
  lanes_differ ? run_rounds(control, std::move(messages), others)
               : run_beside(control, std::move(messages), others);
  return others;
}

// The second message of a lane waits for the first one, and must not wait for the others of the
// group: each lane has a stream, and all end in the streams of the calls.
void PeerCopies::run_beside(Communicator& control, std::vector<Call> messages,
                            std::vector<Call>& others) {
  std::vector<std::pair<Stream, Stream>> joins;
  for (Call& call : messages) {
    Lane& lane = lane_of(call);
    if (!lane.stream.defined()) lane.stream = Stream::create(cuda_device(device_));
    lane.stream.wait(call.stream);
    joins.emplace_back(lane.stream, call.stream);
    call.stream = lane.stream;
  }
  run_rounds(control, std::move(messages), others);
  for (const auto& [lane, of_call] : joins) of_call.wait(lane);
}

// In each round a lane has one message at most.
void PeerCopies::run_rounds(Communicator& control, std::vector<Call> messages,
                            std::vector<Call>& others) {
  std::vector<Call> round, later;
  for (; !messages.empty(); messages = std::exchange(later, {})) {
    round.clear();
    for (const Call& call : messages) (has_lane(round, call) ? later : round).push_back(call);
    meet(control, round);
    const auto unusable = std::stable_partition(
        round.begin(), round.end(), [&](const Call& call) { return lane_of(call).usable; });
    others.insert(others.end(), unusable, round.end());
    round.erase(unusable, round.end());
    run_round(round);
  }
}

// Meetings --------------------------------------------------------------------------------------

// Those of a round at once: each of them may wait for a rank that waits for another one.
void PeerCopies::meet(Communicator& control, std::span<const Call> messages) {
  std::vector<Lane*> lanes;
  std::vector<Array> offers, answers;
  for (const Call& call : messages) {
    Lane& lane = lane_of(call);
    if (!lane.usable || bytes_of(call) <= lane.capacity) continue;
    lanes.push_back(&lane);
    offers.push_back(zeros({int64_t(sizeof(Offer))}, {Dtype::kUInt8, cpu(0)}));
    answers.push_back(zeros({1}, {Dtype::kUInt8, cpu(0)}));
    if (lane.sends) continue;
    const Offer own = offer(lane, bytes_of(call));
    std::memcpy(offers.back().data<uint8_t>(), &own, sizeof own);
  }
  if (lanes.empty()) return;
  control.group([&] {
    for (size_t i = 0; i < lanes.size(); ++i)
      lanes[i]->sends ? control.recv(offers[i], lanes[i]->peer)
                      : control.send(offers[i], lanes[i]->peer);
  });
  for (size_t i = 0; i < lanes.size(); ++i) {
    if (!lanes[i]->sends) continue;
    Offer theirs;
    std::memcpy(&theirs, offers[i].data<uint8_t>(), sizeof theirs);
    *answers[i].data<uint8_t>() = accept(*lanes[i], theirs);
  }
  control.group([&] {
    for (size_t i = 0; i < lanes.size(); ++i)
      lanes[i]->sends ? control.send(answers[i], lanes[i]->peer)
                      : control.recv(answers[i], lanes[i]->peer);
  });
  for (size_t i = 0; i < lanes.size(); ++i) {
    lanes[i]->usable = *answers[i].data<uint8_t>() != 0;
    if (!lanes[i]->usable && lanes[i]->sends)
      logging::info("nccl: GPU memory of rank ", lanes[i]->peer,
                    " cannot be written by this rank; NCCL moves messages to it");
  }
}

PeerCopies::Offer PeerCopies::offer(Lane& lane, int64_t bytes) {
  Offer made;
  const int64_t capacity = (bytes + kGranularity - 1) / kGranularity * kGranularity;
  void* memory = nullptr;
  lane.set = words_of(lane.peer);
  if (!lane.set || cudaMalloc(&memory, size_t(capacity)) != cudaSuccess ||
      cudaIpcGetMemHandle(&made.memory, memory) != cudaSuccess) {
    cudaGetLastError();
    return made;
  }
  lane.set += 2 * rank_ + 1;
  if (lane.memory) lane.outgrown.push_back(lane.memory);
  lane.memory = memory;
  made.bytes = lane.capacity = capacity;
  return made;
}

bool PeerCopies::accept(Lane& lane, const Offer& offer) {
  lane.set = words_of(lane.peer);
  void* memory = offer.bytes > 0 && lane.set ? map_memory(offer.memory) : nullptr;
  if (!memory) return false;
  lane.set += 2 * rank_;
  if (lane.memory) lane.outgrown.push_back(lane.memory);
  lane.memory = memory;
  lane.capacity = offer.bytes;
  return true;
}

// The words of another rank, or null where they cannot be mapped.
uint32_t* PeerCopies::words_of(int rank) {
  uint32_t*& words = mapped_words_[size_t(rank)];
  if (!words) words = static_cast<uint32_t*>(map_memory(words_from_[size_t(rank)]));
  return words;
}

// Messages --------------------------------------------------------------------------------------

// All sends begin before a recv is waited for, and end after: no order of the calls in a group can
// keep two ranks waiting for each other.
void PeerCopies::run_round(std::span<const Call> messages) {
  struct Queued {
    Lane& lane;
    const Call& call;
    cudaStream_t stream;
  };
  std::vector<Queued> queued;
  for (const Call& call : messages) {
    captured_ |= records_graph(call.stream);
    queued.push_back({lane_of(call), call, native(call.stream)});
    queued.back().lane.order.enter(call.stream);
  }
  for (const Queued& q : queued) {
    if (!q.lane.sends) continue;
    CATENA_NCCL_CUDA(cudaMemcpyAsync(q.lane.memory, q.call.in(), size_t(bytes_of(q.call)),
                                     cudaMemcpyDeviceToDevice, q.stream));
    write_word(q.stream, q.lane.set, kWordSet);
  }
  for (const Queued& q : queued) {
    if (q.lane.sends) continue;
    wait_for_word(q.stream, q.lane.await);
    CATENA_NCCL_CUDA(cudaMemcpyAsync(q.call.out(), q.lane.memory, size_t(bytes_of(q.call)),
                                     cudaMemcpyDeviceToDevice, q.stream));
    write_word(q.stream, q.lane.await, 0);
    write_word(q.stream, q.lane.set, kWordSet);
  }
  for (const Queued& q : queued) {
    if (!q.lane.sends) continue;
    take_word(q.stream, q.lane.await);
  }
  for (const Queued& q : queued) q.lane.order.leave(q.call.stream);
}

// End -------------------------------------------------------------------------------------------

void PeerCopies::release(double seconds) noexcept {
  if (!releases_) return;
  const RelaxedMode relaxed;
  cudaSetDevice(device_);
  set_words(words_, near_.size() * 2, releases_, seconds);
}

void PeerCopies::close(Communicator& control) {
  std::vector<void*> own{words_};
  for (const auto& [key, lane] : lanes_) {
    std::vector<void*> memory = lane->outgrown;
    if (lane->memory) memory.push_back(lane->memory);
    for (void* m : memory) {
      if (!lane->sends)
        own.push_back(m);
      else if (!captured_)
        cudaIpcCloseMemHandle(m);
    }
  }
  for (uint32_t* words : mapped_words_)
    if (words && !captured_) cudaIpcCloseMemHandle(words);
  control.barrier();  // the others have closed what is freed here
  if (captured_) return;
  for (void* m : own) cudaFree(m);
  if (releases_) cudaStreamDestroy(releases_);
}

}  // namespace catena::comm::nccl
