// For implementers of communicators: the part that moves bytes.
//
// Communicator checks arguments, makes arrays contiguous, keeps the call records and chooses
// streams; a Transport gets calls that are right on this rank. See
// docs/how-to/add-a-communicator.md.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/comm/factory.h"

namespace catena::comm {

enum class CommOp : uint8_t {
  kNone,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kSend,
  kRecv,
  kBarrier,
  kSplit,
  kObject,
  kClose,
};
// Between two ranks, the others take no part.
inline bool is_message(CommOp op) { return op == CommOp::kSend || op == CommOp::kRecv; }
const char* name(CommOp op);

// One call. `count` is the number of elements that a rank contributes to or gets from one other
// rank: all of x for all_reduce, reduce, broadcast, send, recv; one piece for the others.
struct Call {
  CommOp op = CommOp::kNone;
  Dtype dtype = Dtype::kUInt8;
  Reduction reduction = Reduction::kSum;  // bool: kSum and kProduct arrive as kMax and kMin
  double weight = 1;
  int root = -1;  // root, destination or source
  int64_t count = 0;
  const Array* input = nullptr;   // contiguous; null where this rank gives nothing
  const Array* output = nullptr;  // contiguous; null where it gets nothing. In place: same address
  Stream stream;
  uint64_t sequence = 0;         // number of the call on this communicator (of the pair for p2p)
  uint64_t hash = 0;             // of this call and all before
  std::string describe() const;  // "all_reduce #12 sum float32[1000]"
  uint8_t recorded_op = 0;       // what to name it in messages (object calls)
  uint8_t recorded_reduction = 0;

  const void* in() const { return input ? input->raw_data() : nullptr; }
  void* out() const { return output ? output->raw_data() : nullptr; }
};

// A failure that this rank noticed and another one is to blame for.
class PeerError : public CommError {
 public:
  PeerError(const std::string& text, int blamed_rank)
      : CommError(text), blamed_rank_(blamed_rank) {}
  int blamed_rank() const { return blamed_rank_; }  // -1: nobody in particular

 private:
  int blamed_rank_;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;
  virtual int rank() const = 0;
  // For every rank a number that is equal on one host.
  virtual const std::vector<int>& hosts() const = 0;
  // Whether run() takes arrays of this device type. Arrays it does not take are staged through host
  // memory (GPU arrays) or go to control() (host arrays).
  virtual bool moves(DeviceType type) const = 0;
  // The communicator of the same ranks that moves host data; null when this one does it.
  virtual CommunicatorPtr control() const { return nullptr; }
  // Called once, before anything else; the communicator outlives the transport.
  virtual void attach(Communicator& owner) {}
  // Issues calls that belong together: one call, or a group. Host arrays are done on return; device
  // arrays are queued on call.stream. Throws CommError on failure; the communicator is then dead.
  virtual void run(std::span<const Call> calls) = 0;
  // The ranks `members` (in the order of their new ranks) form a new group; all ranks call it,
  // those that sit out with an empty list, and get null.
  virtual std::unique_ptr<Transport> split(const std::vector<int>& members, int new_rank,
                                           int color) = 0;
  virtual void watch(const Stream& stream) {}
  // Makes the calls of all ranks fail, soon. Thread-safe.
  virtual void abort(const std::string& reason) noexcept = 0;
  // The communicator goes while an exception is on its way: tell the others, wait for nobody.
  virtual void abandon() noexcept {}
  // Whether all ranks meet in a call before close(), so that a rank that closes while others still
  // make calls is named like any other difference.
  virtual bool meets_to_close() const { return true; }
  // Text of a failure that happened behind the calls (asynchronously); empty when there is none.
  virtual std::string failure() const { return {}; }
  // Collective, at most once; not after a failure.
  virtual void close() = 0;
};

// Wraps a transport. All ranks must call it at the same point.
CommunicatorPtr make_communicator(std::unique_ptr<Transport> transport, Device device,
                                  const CommunicatorOptions& options);

// A plug-in's entry function registers what create_communicator(name) calls.
using CommunicatorMaker = std::function<CommunicatorPtr(const CommunicatorOptions& options)>;
void register_communicator(const std::string& name, CommunicatorMaker maker);

// The text of a mismatch: calls[r] is what rank r did ("called all_reduce #3 ..."), empty when
// unknown.
std::string describe_mismatch(const std::vector<std::string>& calls, uint64_t sequence,
                              bool exact = true);

// "rank 1", "ranks 0, 2".
std::string list_ranks(const std::vector<int>& ranks);

// The one rank that did something else than all others, of at least three; -1 when there is none.
int odd_rank(const std::vector<std::string>& calls);

// What a transport waits for, as far as it knows.
struct Wait {
  std::string doing;      // "in all_reduce #3 sum float32[4]": goes after "rank 0 waited 10 s"
  int rank = -1;          // who waits; -1: not known
  int peer = -1;          // the one rank that must come, for a message
  uint64_t sequence = 0;  // else the call, of all ranks, that must be made; 0: not known
  uint64_t first = 0;     // the first of several calls up to that one; 0: it alone
  bool on_gpu = false;    // the calls only queue what is waited for
};
// Why a wait cannot end, and the rank of the job to blame (-1: none in particular). Without a text
// it may still end.
struct WaitProblem {
  std::string text;
  int blamed = -1;
};
// What has been waited for `timeout` seconds: names the ranks that did not come, as far as the
// records of `owner` tell (null: they tell nothing). A rank is blamed only when a call of its own
// is missing.
WaitProblem describe_delay(const Communicator* owner, double timeout, const Wait& wait);
// For transports that poll: after `waited` seconds, what keeps the wait from ending. The records of
// the other ranks are looked at from `next_look` on, which begins as kFirstLook and is moved on;
// after `timeout` seconds describe_delay tells. Thread-safe.
inline constexpr double kFirstLook = 2;
WaitProblem find_wait_problem(const Communicator* owner, double waited, double timeout,
                              const Wait& wait, double& next_look);

// The deadlines in effect: from the options, else the environment, else the default.
double timeout_of(const CommunicatorOptions& options);
double start_timeout_of(const CommunicatorOptions& options);
// The device of a rank, see CommunicatorOptions::device.
Device default_device(const CommunicatorOptions& options, int local_rank);

// output[i] = the reduction of inputs[0][i], inputs[1][i], ... in this order, as Reduce says; used
// by everything that sums on the host, so that all give the same bits. `weights` is read for
// kWeighted. The output must not overlap the inputs.
void ordered_reduce(Dtype dtype, Reduction reduction, std::span<const void* const> inputs,
                    std::span<const double> weights, int64_t count, void* output);

}  // namespace catena::comm
