#include "nccl_transport.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "catena/core/log.h"
#include "copy_collectives.h"
#include "peer_copies.h"
#include "peer_exchange.h"
#include "two_shot.h"
#include "watchdog.h"

namespace catena::comm::nccl {

namespace {

// Calls that NCCL has to make out of several, or whose data must be converted.
bool is_simple(const Call& call) {
  switch (call.op) {
    case CommOp::kAllReduce:
    case CommOp::kReduceScatter:
    case CommOp::kReduce: return !needs_widening(call.dtype);
    case CommOp::kAllGather:
    case CommOp::kBroadcast:
    case CommOp::kSend:
    case CommOp::kRecv: return true;
    default: return false;
  }
}

// As Core::mark takes it.
uint64_t number_among_all(const Call& call) { return is_message(call) ? 0 : call.sequence; }

// What NCCL takes for the host of this rank. With NCCL_HOSTID ranks that share a GPU can pretend to
// be on several hosts; NCCL then moves their data through sockets.
std::string host_of(const Communicator& control) {
  const char* id = std::getenv("NCCL_HOSTID");
  return id ? message("NCCL_HOSTID=", id) : message("host ", control.inter_rank());
}

void check_gpus(Communicator& control, Device device) {
  char bus[32] = {};
  CATENA_NCCL_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, device.index()));
  const std::vector<std::string> places =
      control.all_gather_object(message(bus, " of ", host_of(control)));
  std::map<std::string, int> first;
  for (int r = 0; r < control.size(); ++r) {
    const auto [entry, is_new] = first.emplace(places[size_t(r)], r);
    CATENA_CHECK(
        DeviceError, is_new, "nccl: ranks ", entry->second, " and ", r,
        " both use the GPU with PCI bus id ", places[size_t(r)],
        "; NCCL needs a separate GPU for every rank. Start at most as many ranks as the host has "
        "GPUs (catena-run does), leave the device to the communicator, or use \"mpi\"");
  }
}

ncclConfig_t blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  return config;
}

}  // namespace

std::unique_ptr<NcclTransport> NcclTransport::create(CommunicatorPtr control, Device device,
                                                     const CommunicatorOptions& options) {
  CATENA_CHECK(DeviceError, device.is_cuda(), "nccl: this rank's device is ", device,
               ", expected a GPU; use \"mpi\" for ranks without one");
  require_device(device);
  use_gpu(device.index());
  check_gpus(*control, device);
  ncclUniqueId id{};
  if (control->rank() == 0) {
    const ncclResult_t code = ncclGetUniqueId(&id);
    CATENA_CHECK(CommError, code == ncclSuccess, nccl_text(code, "ncclGetUniqueId", nullptr));
  }
  id = control->broadcast_object(id);
  auto core = std::make_shared<Core>(device.index(), timeout_of(options));
  // The control communicator's records show when a rank dies meanwhile.
  core->set_owner(control.get());
  {
    std::lock_guard lock(core->mutex);
    core->comm = core->run_collectively(
        "ncclCommInitRankConfig", start_timeout_of(options),
        [size = control->size(), rank = control->rank(), id](ncclComm_t* made) {
          ncclConfig_t config = blocking();
          return ncclCommInitRankConfig(made, size, id, rank, &config);
        });
  }
  return std::make_unique<NcclTransport>(std::move(control), std::move(core));
}

NcclTransport::NcclTransport(CommunicatorPtr control, std::shared_ptr<Core> core)
    : control_(std::move(control)), core_(std::move(core)), choice_(choose(*control_)) {
  use_gpu(core_->device());
  const PeerRanks peers = PeerRanks::find(*control_);
  copies_ = core_->copies = PeerCopies::create(*control_, peers, core_->device());
  exchange_ = core_->exchange = PeerExchange::create(*control_, peers, core_->device());
  two_shot_ = core_->two_shot =
      exchange_ ? TwoShotSums::create(*control_, core_->device(), choice_.ways) : nullptr;
  if (!two_shot_ && choice_.memory == SharedMemory::kPeers) choice_.memory = SharedMemory::kPool;
  blocks_ = std::make_unique<SharedBlocks>(core_->device(), choice_.memory);
  if (choice_.memory == SharedMemory::kPeers)
    copied_ = core_->copied = CopyCollectives::create(*control_, core_->device(), choice_.ways);
  core_->describe(ways());
  if (rank() == 0 && control_->size() > 1) logging::info("nccl: ", ways());
}

namespace {

const char* name_of(SharedMemory memory) {
  switch (memory) {
    case SharedMemory::kPeers: return "mapped by all ranks";
    case SharedMemory::kWindow: return "windows of NCCL";
    default: return "the pool";
  }
}

}  // namespace

std::string NcclTransport::ways() const {
  std::string text = "NCCL " + nccl_version();
  if (exchange_ && choice_.ways.exchange > 0)
    text += message("; sums up to ", choice_.ways.exchange, " bytes by exchange");
  if (two_shot_) {
    const int64_t most = choice_.ways.two_shot;
    text += most == std::numeric_limits<int64_t>::max() ? "; all larger ones"
                                                        : message("; up to ", most);
    text += message(" in two steps by ", choice_.ways.blocks, " blocks");
  }
  if (copied_) {
    const auto from = [](const char* what, int64_t least) {
      return least > 0 ? message("; ", what, " of arenas from ", least, " bytes") : std::string();
    };
    text += from("scattered sums", copied_->makes_sums() ? choice_.ways.copied_sum : 0) +
            from("gathers", choice_.ways.copied_gather) + " by copy engines";
  }
  return text + message("; memory of arenas: ", name_of(choice_.memory));
}

StoragePtr NcclTransport::allocate_shared(size_t bytes) {
  use_gpu(core_->device());
  core_->throw_if_failed();
  return blocks_->allocate(bytes, *core_, *control_);
}

void NcclTransport::prepare_scattered_sums(size_t bytes) {
  use_gpu(core_->device());
  core_->throw_if_failed();
  if (!copied_) return;
  copied_->prepare(bytes, *control_);
  std::lock_guard lock(core_->mutex);
  core_->describe(ways());
}

bool NcclTransport::moves_by_copies(size_t bytes) const {
  return copied_ && choice_.memory == SharedMemory::kPeers && copied_->may_sum(bytes);
}

NcclTransport::~NcclTransport() {
  unwatch(core_);
  // Not closed: an exception is on its way or the communicator failed.
  std::lock_guard lock(core_->mutex);
  core_->set_owner(nullptr);
  core_->abort();
}

void NcclTransport::attach(Communicator& owner) {
  {
    std::lock_guard lock(core_->mutex);
    core_->set_owner(&owner);
  }
  nccl::watch(core_);
}

std::unique_ptr<Transport> NcclTransport::split(const std::vector<int>& members, int new_rank,
                                                int color) {
  CommunicatorPtr control = control_->split(members.empty() ? -1 : color, new_rank);
  use_gpu(core_->device());
  std::lock_guard lock(core_->mutex);
  core_->throw_if_failed();
  core_->drain();  // NCCL wants no work outstanding
  auto child = std::make_shared<Core>(core_->device(), core_->timeout());
  child->comm = core_->run_collectively(
      "ncclCommSplit", core_->timeout(),
      [parent = core_->comm, color = members.empty() ? NCCL_SPLIT_NOCOLOR : color,
       new_rank](ncclComm_t* made) {
        ncclConfig_t config = blocking();
        return ncclCommSplit(parent, color, new_rank, made, &config);
      });
  if (members.empty()) return nullptr;
  return std::make_unique<NcclTransport>(std::move(control), std::move(child));
}

void NcclTransport::watch(const Stream& stream) {
  std::lock_guard lock(core_->mutex);
  core_->throw_if_failed();
  core_->mark(stream, 0);
}

void NcclTransport::abort(const std::string& reason) noexcept {
  std::lock_guard lock(core_->mutex);
  core_->fail({reason, -1, Core::Cause::kThisRank});
}

void NcclTransport::abandon() noexcept {
  abort("an exception ended this rank's use of the communicator");
}

bool NcclTransport::outlived() const { return internals(*control_).transport().outlived(); }

void NcclTransport::close() {
  unwatch(core_);
  use_gpu(core_->device());
  std::lock_guard lock(core_->mutex);
  core_->drain();
  // What is being closed is not asked again if this fails and the communicator is aborted.
  core_->copies = nullptr;
  core_->exchange = nullptr;
  core_->two_shot = nullptr;
  core_->copied = nullptr;
  if (copies_) copies_->close(*control_);
  if (exchange_) exchange_->close(*control_);
  // Graphs that hold sums may write into blocks of other ranks.
  const bool captured = (two_shot_ && two_shot_->captured()) || (copied_ && copied_->captured());
  const bool keep = !all_agree(*control_, !captured);
  blocks_->close(keep, *core_, *control_);
  if (two_shot_) two_shot_->close(*control_);
  if (copied_) copied_->close(keep, *control_);
  core_->close();
}

// Calls -----------------------------------------------------------------------------------------

void NcclTransport::run(std::span<const Call> calls) {
  core_->throw_if_failed();
  const bool has_messages = copies_ && std::any_of(calls.begin(), calls.end(),
                                                   [](const Call& c) { return is_message(c); });
  std::vector<Call> others;
  if (has_messages) {
    others = run_copies(calls);
    if (others.empty()) return;
    calls = others;
  }
  calls.size() == 1 && is_simple(calls[0]) ? run_single(calls[0]) : run_group(calls);
}

bool NcclTransport::messages_are_independent() const { return copies_ && copies_->reaches_all(); }

// Without the mutex, for it may wait for other ranks. Returns the calls that are left to NCCL.
std::vector<Call> NcclTransport::run_copies(std::span<const Call> calls) {
  use_gpu(core_->device());
  std::vector<Call> others = copies_->run(*control_, calls);
  std::lock_guard lock(core_->mutex);
  core_->throw_if_failed();
  for (const Call& call : calls)
    if (is_message(call)) core_->mark(call.stream, 0);
  return others;
}

// Whether copy engines make the call; where the others' outputs of a gather are.
bool NcclTransport::goes_by_copies(const Call& call, SeenBy& outputs) const {
  if (!copied_ || !copied_->takes(call)) return false;
  return call.op != CommOp::kAllGather ||
         blocks_->find_others(call.out(), size_t(bytes_of(call) * control_->size()), outputs);
}

// By means of our own between the GPUs of one host, in a group or not. Under the mutex.
bool NcclTransport::run_by_peers(const Call& call) {
  const int64_t exchanged =
      call.op == CommOp::kAllGather ? choice_.ways.gather : choice_.ways.exchange;
  if (copied_) copied_->note(call);
  if (SeenBy outputs; goes_by_copies(call, outputs)) {
    copied_->run(call, outputs);
  } else if (exchange_ && PeerExchange::takes(call, exchanged)) {
    exchange_->run(call);
  } else if (two_shot_ && two_shot_->takes(call)) {
    const int slices = call.op == CommOp::kAllGather ? control_->size() : 1;
    SeenBy seen;
    const bool found = blocks_->find(call.out(), size_t(bytes_of(call) * slices), seen);
    two_shot_->run(call, found ? &seen : nullptr);
  } else {
    return false;
  }
  core_->mark(call.stream, number_among_all(call));
  return true;
}

void NcclTransport::run_single(const Call& call) {
  std::lock_guard lock(core_->mutex);
  core_->throw_if_failed();
  if (run_by_peers(call)) return;
  const ScopedRedOp op = reduces(call.op) ? ScopedRedOp(call, core_->comm) : ScopedRedOp();
  core_->finish(issue(call, op.get()), comm::name(call.op));
  core_->mark(call.stream, number_among_all(call));
}

namespace {

// A 16-bit integer reduction done in 32 bits: exact, and wraps alike when it is narrowed.
struct Widened {
  Call call;
  Array input, output;
  const Array* target = nullptr;
};

Widened widen(const Call& call) {
  StreamScope scope(call.stream);
  Widened wide{call, call.input->astype(Dtype::kInt32), {}, call.output};
  if (call.output)
    wide.output = Array::uninitialized(call.output->shape(), Dtype::kInt32, call.output->device());
  wide.call.dtype = Dtype::kInt32;
  return wide;
}

}  // namespace

void NcclTransport::run_group(std::span<const Call> calls) {
  std::vector<Widened> widened;
  widened.reserve(calls.size());  // calls keep pointers into it
  std::vector<Call> issued(calls.begin(), calls.end());
  for (Call& call : issued) {
    if (!reduces(call.op) || !needs_widening(call.dtype)) continue;
    Widened& wide = widened.emplace_back(widen(call));
    call = wide.call;
    call.input = &wide.input;
    call.output = wide.target ? &wide.output : nullptr;
  }
  {
    std::lock_guard lock(core_->mutex);
    core_->throw_if_failed();
    std::erase_if(issued, [this](const Call& call) { return run_by_peers(call); });
    std::vector<ScopedRedOp> operations;
    for (const Call& call : issued)
      operations.push_back(reduces(call.op) ? ScopedRedOp(call, core_->comm) : ScopedRedOp());
    ncclResult_t code = ncclGroupStart();
    for (size_t i = 0; i < issued.size() && code == ncclSuccess; ++i)
      code = issue(issued[i], operations[i].get());
    const ncclResult_t ended = ncclGroupEnd();
    core_->finish(code == ncclSuccess ? ended : code, "ncclGroupEnd");
    for (const Call& call : issued) core_->mark(call.stream, number_among_all(call));
  }
  for (const Widened& wide : widened) {
    if (!wide.target) continue;
    StreamScope scope(wide.call.stream);
    wide.target->assign(wide.output);
  }
}

ncclResult_t NcclTransport::issue(const Call& call, ncclRedOp_t op) {
  const void* in = call.in();
  void* out = call.out();
  const size_t n = static_cast<size_t>(call.count);
  const ncclDataType_t type = nccl_dtype(call.dtype);
  const ncclComm_t c = core_->comm;
  const cudaStream_t stream = native(call.stream);
  switch (call.op) {
    case CommOp::kAllReduce: return ncclAllReduce(in, out, n, type, op, c, stream);
    case CommOp::kReduceScatter: return ncclReduceScatter(in, out, n, type, op, c, stream);
    case CommOp::kReduce: return ncclReduce(in, out, n, type, op, call.root, c, stream);
    case CommOp::kAllGather: return ncclAllGather(in, out, n, type, c, stream);
    case CommOp::kBroadcast: {
      // In place the root has no output, the others no input.
      void* target = out ? out : const_cast<void*>(in);
      return ncclBroadcast(in ? in : out, target, n, type, call.root, c, stream);
    }
    case CommOp::kSend: return ncclSend(in, n, type, call.root, c, stream);
    case CommOp::kRecv: return ncclRecv(out, n, type, call.root, c, stream);
    case CommOp::kGather: return gather(call);
    case CommOp::kScatter: return scatter(call);
    case CommOp::kAllToAll: return all_to_all(call);
    default: fail<CommError>("nccl: cannot run ", comm::name(call.op));
  }
}

// These three are made of messages inside the group that run_group has opened: pieces of x or of
// the result, piece r of rank r.
ncclResult_t NcclTransport::send_piece(const Call& call, int piece, int to) {
  const size_t n = static_cast<size_t>(call.count), bytes = n * itemsize(call.dtype);
  return ncclSend(static_cast<const char*>(call.in()) + size_t(piece) * bytes, n,
                  nccl_dtype(call.dtype), to, core_->comm, native(call.stream));
}

ncclResult_t NcclTransport::recv_piece(const Call& call, int piece, int from) {
  const size_t n = static_cast<size_t>(call.count), bytes = n * itemsize(call.dtype);
  return ncclRecv(static_cast<char*>(call.out()) + size_t(piece) * bytes, n, nccl_dtype(call.dtype),
                  from, core_->comm, native(call.stream));
}

ncclResult_t NcclTransport::gather(const Call& call) {
  ncclResult_t code = send_piece(call, 0, call.root);
  for (int r = 0; code == ncclSuccess && rank() == call.root && r < control_->size(); ++r)
    code = recv_piece(call, r, r);
  return code;
}

ncclResult_t NcclTransport::scatter(const Call& call) {
  ncclResult_t code = recv_piece(call, 0, call.root);
  for (int r = 0; code == ncclSuccess && rank() == call.root && r < control_->size(); ++r)
    code = send_piece(call, r, r);
  return code;
}

ncclResult_t NcclTransport::all_to_all(const Call& call) {
  ncclResult_t code = ncclSuccess;
  for (int r = 0; code == ncclSuccess && r < control_->size(); ++r) {
    code = send_piece(call, r, r);
    if (code == ncclSuccess) code = recv_piece(call, r, r);
  }
  return code;
}

}  // namespace catena::comm::nccl
