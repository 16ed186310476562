// For implementers of communicators: the part that moves bytes.
//
// Communicator checks arguments, makes arrays contiguous, keeps the call records, chooses streams
// and records the use of memory on them. A Transport gets calls that are right on this rank. See
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
#include "catena/comm/internals.h"

namespace catena::comm {

// One call: its signature, and what this rank brings to it.
struct Call : CallSignature {
  double weight = 1;              // with kWeighted
  const Array* input = nullptr;   // contiguous; null where this rank gives nothing
  const Array* output = nullptr;  // contiguous; null where it gets nothing. In place: same address
  Stream stream;                  // the current stream of the arrays' device
  uint64_t sequence = 0;          // number of the call on this communicator (of the pair for p2p)
  uint64_t hash = 0;              // of this call and all before
  const std::type_info* type = nullptr;  // of the host object that the call serves, if any
  const char* purpose = nullptr;         // see PurposeScope; null: the call itself
  double* rider = nullptr;               // see RiderScope; null: this rank adds 0

  std::string describe() const;  // "all_reduce #12 sum float32[1000]"
  // The reduction to compute. On bool a sum is a maximum and a product a minimum.
  Reduction effective_reduction() const;
  const void* in() const { return input ? input->raw_data() : nullptr; }
  void* out() const { return output ? output->raw_data() : nullptr; }
};

// A failure that this rank noticed and that is not its own fault.
class PeerError : public CommError {
 public:
  PeerError(const std::string& text, int culprit) : CommError(text), culprit_(culprit) {}
  // The rank of the job at fault; -1: no rank in particular.
  int culprit() const { return culprit_; }

 private:
  int culprit_;
};

// What moves the data of a communicator. Derive from it to add an implementation
// (docs/how-to/add-a-communicator.md).
class Transport {
 public:
  virtual ~Transport() = default;
  // The name of the implementation, and this rank's number.
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
  // Issues calls that belong together: one call, or a group. Calls on host arrays are complete on
  // return, calls on device arrays are queued on call.stream. The arrays' storage need not be
  // recorded as used on it (record_use); the transport's own memory must be. Throws CommError on
  // failure; the communicator is then dead.
  virtual void run(std::span<const Call> calls) = 0;
  // Whether messages on one stream go on while those on another wait for their peers. Equal on all
  // ranks.
  virtual bool messages_are_independent() const { return false; }
  // Whether collectives on host arrays add up what rides with them: Call::rider, of all ranks in
  // order of rank, or exactly, so that all get the same bits. A transport that compares calls
  // before it moves data does it there.
  virtual bool adds_riders() const { return false; }
  // See CommunicatorInternals::allocate_shared. Null: from the pool, as all arrays.
  virtual StoragePtr allocate_shared(size_t bytes) { return {}; }
  // See CommunicatorInternals::prepare_scattered_sums.
  virtual void prepare_scattered_sums(size_t bytes) {}
  // See CommunicatorInternals::moves_by_copies.
  virtual bool moves_by_copies(size_t bytes) const { return false; }
  // How collectives are made, for reports: the library's version, sizes; "" when there is one way.
  virtual std::string ways() const { return {}; }
  // The ranks `members` (in the order of their new ranks) form a new group. All ranks call it.
  // Ranks outside of the group pass an empty list and get null.
  virtual std::unique_ptr<Transport> split(const std::vector<int>& members, int new_rank,
                                           int color) = 0;
  // See CommunicatorInternals::watch.
  virtual void watch(const Stream& stream) {}
  // Makes the calls of all ranks fail, soon. Thread-safe.
  virtual void abort(const std::string& reason) noexcept = 0;
  // An exception is about to destroy the communicator: notify the other ranks, wait for nobody.
  virtual void abandon() noexcept {}
  // Whether all ranks meet in a call before close(). A rank that closes while others still make
  // calls is then reported like any other difference.
  virtual bool meets_to_close() const { return true; }
  // Whether what it is made on has ended before it, as MPI at the end of a process: no call can be
  // made any more, not even to close.
  virtual bool outlived() const { return false; }
  // Text of a failure that happened behind the calls (asynchronously); empty when there is none.
  virtual std::string failure() const { return {}; }
  // Collective, at most once; not after a failure.
  virtual void close() = 0;
};

// Wraps a transport. All ranks must call it at the same point.
CommunicatorPtr make_communicator(std::unique_ptr<Transport> transport, Device device,
                                  const CommunicatorOptions& options);

// Called by a plug-in's entry function: create_communicator(name) will call `maker`.
using CommunicatorMaker = std::function<CommunicatorPtr(const CommunicatorOptions& options)>;
void register_communicator(const std::string& name, CommunicatorMaker maker);

// The text of a mismatch: calls[r] is what rank r did ("called all_reduce #3 ..."), empty when
// unknown.
std::string describe_mismatch(const std::vector<std::string>& calls, uint64_t sequence,
                              bool exact = true);

// "rank 1", "ranks 0, 2".
std::string list_ranks(const std::vector<int>& ranks);
// The same of a communicator's ranks, with coordinates where a Mesh has given them: "rank 5 (data
// 0, pipeline 1, tensor 1)". Lists of more than four ranks are without.
std::string list_ranks(const Communicator& comm, const std::vector<int>& ranks);

// The only rank whose call differs from all others (three or more ranks), or -1.
int odd_rank(const std::vector<std::string>& calls);

// What a transport waits for, if known.
struct Wait {
  std::string doing;      // "in all_reduce #3 sum float32[4]": follows "rank 0 waited 10 s"
  int rank = -1;          // who waits; -1: not known
  int peer = -1;          // the other rank, for a message
  uint64_t sequence = 0;  // else the call, of all ranks, that must be made; 0: not known
  uint64_t first = 0;     // the first of several calls up to that one; 0: it alone
  bool on_gpu = false;    // the calls only queue what is waited for
};
// Why a wait cannot end. An empty text means that it may still end.
struct WaitDiagnosis {
  std::string text;
  int culprit = -1;  // the rank of the job at fault; -1: no rank in particular
};
// The seconds that a wait has lasted, for waits that poll. A time in which the process was stopped
// (Ctrl-Z, a debugger, a suspended machine) does not count: two readings that lie further apart
// than kLongestPoll count as that far.
class WaitClock {
 public:
  double seconds();
  static constexpr double kLongestPoll = 1;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point read_ = Clock::now();
  double seconds_ = 0;
};

// For transports that poll: why a wait that has lasted `waited` seconds cannot end. Reads the other
// ranks' records when `next_poll` seconds have passed, and then advances it. It begins as
// kFirstPoll, or as kFirstLook: until kFirstPoll only ranks that wait for each other are looked
// for. From `timeout` seconds on the result is diagnose_timeout's. `owner` may be null: then
// nothing is known about other ranks. Thread-safe.
inline constexpr double kFirstPoll = 2;
inline constexpr double kFirstLook = 0.1;
WaitDiagnosis diagnose_wait(const Communicator* owner, double waited, double timeout,
                            const Wait& wait, double& next_poll);
// The same for a wait that has reached its timeout: names the ranks that are missing, according to
// the records of `owner`. A rank is the culprit only if one of its own calls is missing.
WaitDiagnosis diagnose_timeout(const Communicator* owner, double timeout, const Wait& wait);

// The deadlines in effect: from the options, else the environment, else the default.
double timeout_of(const CommunicatorOptions& options);
double start_timeout_of(const CommunicatorOptions& options);
// The device of a rank, see CommunicatorOptions::device.
Device default_device(const CommunicatorOptions& options, int local_rank);

// output[i] = the reduction of inputs[0][i], inputs[1][i], ... in this order, as Reduce says. All
// host sums use it, so that all give the same bits. `weights` is read for kWeighted. The output
// must not overlap the inputs.
void ordered_reduce(Dtype dtype, Reduction reduction, std::span<const void* const> inputs,
                    std::span<const double> weights, int64_t count, void* output);

}  // namespace catena::comm
