// Communicator and its state: making a call, splitting, failing and closing.
#include "catena/comm/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "catena/comm/internals.h"
#include "catena/core/graph.h"
#include "catena/core/log.h"
#include "catena/core/profiler_range.h"
#include "catena/core/trace.h"
#include "communicator_state.h"
#include "core/ranks_in_use.h"

namespace catena::comm {

Communicator::State::State(std::unique_ptr<Transport> moved, Device on,
                           const CommunicatorOptions& chosen, uint64_t number)
    : transport(std::move(moved)),
      control(transport->control()),
      topology(make_topology(transport->rank(), transport->hosts())),
      device(on),
      options(chosen),
      id(number),
      history(number),
      process(getpid()) {
  options.bootstrap.reset();
  for (auto& list : pairs) list.resize(static_cast<size_t>(topology.size));
}

CallHistory& Communicator::State::pair_history(bool receive, int peer) {
  auto& entry = pairs[receive][static_cast<size_t>(peer)];
  if (!entry) {
    const int rank = topology.rank;
    entry =
        std::make_unique<CallHistory>(receive ? pair_id(id, peer, rank) : pair_id(id, rank, peer));
  }
  return *entry;
}

void Communicator::State::mark_failed(const std::exception& error) {
  const auto peer = dynamic_cast<const PeerError*>(&error);
  mark_failed(error.what(), true, peer ? peer->culprit() : -1);
}

void Communicator::State::mark_failed(const std::string& text, bool by_peer, int culprit) {
  std::lock_guard lock(failure_mutex);
  if (failed.load(std::memory_order_relaxed)) return;
  failure = text;
  failed.store(true, std::memory_order_release);
  if (by_peer)
    own_slot.fail_because_of_peer(culprit < 0 ? this->culprit.load() : culprit, text);
  else
    own_slot.fail(text);
}

void set_place(Communicator& comm, BoardPlace place, uint64_t id) {
  auto& state = Communicator::State::of(comm);
  state.id = id;
  state.history = CallHistory(id);
  state.made = 0;
  state.place = std::move(place);
  state.own_slot = state.place.board->slot(state.place.slots[static_cast<size_t>(comm.rank())]);
}

Communicator::Communicator(std::unique_ptr<State> state)
    : topology_(state->topology), device_(state->device), state_(std::move(state)) {
  if (size() > 1) ++ranks_in_use().communicators;
}

Communicator::~Communicator() {
  if (size() > 1) --ranks_in_use().communicators;
  if (getpid() != state_->process) {
    // A child that the rank forked has no part in the communicator, and the threads of the
    // transport have stayed with the rank.
    static_cast<void>(state_.release());
    return;
  }
  if (std::uncaught_exceptions() > 0 && !state_->closed) {
    // The other ranks will not come to close it.
    if (!failed()) state_->transport->abandon();
    state_->closed = true;
  }
  try {
    state_->run_callbacks();
    close();
  } catch (const std::exception& error) {
    logging::warning("closing a communicator: ", error.what());
  }
  // Before the rest of the state, which its threads may read.
  state_->transport.reset();
}

std::string Communicator::name() const { return state_->transport->name(); }
const MeshAxes& Communicator::axis() const { return state_->axes; }
bool Communicator::failed() const { return state_->failed.load(std::memory_order_acquire); }
void Communicator::note(std::string_view text) { state_->own_slot.set_operation(text); }

Stream Communicator::side_stream() {
  if (!state_->side.state()) state_->side = Stream::create(device_, -5);
  return state_->side;
}

void Communicator::State::throw_if_failed() {
  std::string text = transport->failure();
  if (!text.empty()) mark_failed(text, true);
  if (!failed.load(std::memory_order_acquire)) return;
  std::lock_guard lock(failure_mutex);
  throw CommError(failure);
}

void Communicator::check() {
  state_->throw_if_failed();
  int culprit = -1;
  std::string problem = internals(*this).find_problem(0, &culprit);
  if (problem.empty() && state_->control && inter_size() > 1)
    problem = state_->difference_over_hosts();
  if (problem.empty()) return;
  state_->mark_failed(problem, true, culprit);
  abort(problem);
  state_->throw_if_failed();
}

namespace {
constexpr char kRecorderGone[] = "the communicator whose calls were recorded is closed";
}  // namespace

void Communicator::take_part_in_capture(uint64_t capture, const Request& request) {
  State& s = *state_;
  CATENA_CHECK(CommError, s.control || size() == 1, request.who, ": the \"", name(),
               "\" communicator needs the host to move arrays of a GPU, so a graph cannot record "
               "the call; use \"nccl\", or call it outside the captured step");
  const bool message = is_message(request.call);
  if (s.capture == capture) {
    s.capture_of_all |= !message;
    return;
  }
  s.capture = capture;
  s.capture_of_all = !message;
  const std::weak_ptr<Communicator> weak = weak_from_this();
  // Launches are watched like calls: they end when another rank does not come.
  cuda::add_launch_hook(
      [weak] {
        const CommunicatorPtr comm = weak.lock();
        CATENA_CHECK(CommError, comm, "Graph::launch: ", kRecorderGone);
        internals(*comm).throw_if_failed();
      },
      [weak, device = s.device] {
        if (const CommunicatorPtr comm = weak.lock())
          internals(*comm).watch(current_stream(device));
      });
  std::erase_if(s.graphs, [](const cuda::GraphDestroyer& graph) { return graph.gone(); });
  s.graphs.push_back(cuda::graph_destroyer());
  cuda::add_capture_check(
      [weak] {
        const CommunicatorPtr comm = weak.lock();
        if (!comm) return std::string();
        return comm->state_->capture_of_all ? internals(*comm).compare_with_all()
                                            : internals(*comm).find_difference();
      },
      [weak](const std::string& problem) {
        if (const CommunicatorPtr comm = weak.lock()) comm->abort(problem);
        throw CommError(problem);
      });
}

void Communicator::abort(const std::string& reason) {
  if (getpid() != state_->process) return;  // the child of a rank ends nobody's job
  state_->mark_failed(reason, false);
  state_->transport->abort(reason);
  if (state_->control) state_->control->abort(reason);
}

void Communicator::State::run_callbacks() {
  for (const auto& destroy : std::exchange(graphs, {})) destroy(kRecorderGone);
  // A callback may cancel itself or others.
  while (!callbacks.empty()) {
    auto node = callbacks.extract(callbacks.begin());
    node.mapped()();
  }
}

void Communicator::close() {
  State& s = *state_;
  if (s.closed || getpid() != s.process) return;
  CATENA_CHECK(CommError, s.capture == 0 || s.capture != cuda::capture_id(),
               "close: a graph that records calls of this communicator is being captured; close it "
               "after the capture");
  s.run_callbacks();
  if (s.transport->outlived()) {
    s.closed = true;
    logging::warning(
        "a communicator is destroyed after MPI_Finalize, as one in a global variable is: the ranks "
        "do not meet, so that a difference at the end is not found; destroy it before main "
        "returns");
    return;
  }
  if (size() > 1 && !failed() && s.transport->meets_to_close() && s.transport->failure().empty()) {
    const CallTag tag{s.updates > 0 ? TagKind::kUpdates : TagKind::kNone, 0, s.updates};
    Request request{.who = "close",
                    .call = {.op = CommOp::kBarrier, .kind = CallKind::kClose, .tag = tag}};
    submit_to_host(request);
    if (s.when_met) s.when_met();
  }
  s.closed = true;
  if (!failed() && s.transport->failure().empty()) s.transport->close();
}

CommunicatorPtr Communicator::split(int color, int key, const CallTag& tag) {
  const OneThread caller(*this, "split");
  Request request{.who = "split",
                  .call = {.op = CommOp::kBarrier, .kind = CallKind::kSplit, .tag = tag}};
  submit(request);
  struct Choice {
    int color, key;
  };
  const auto choices = all_gather_object(Choice{color, key});
  std::vector<int> members;
  for (int r = 0; r < size(); ++r)
    if (color >= 0 && choices[size_t(r)].color == color) members.push_back(r);
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return choices[size_t(a)].key < choices[size_t(b)].key; });
  const auto mine = std::find(members.begin(), members.end(), rank());
  const int new_rank = static_cast<int>(mine - members.begin());
  ++state_->splits;
  auto transport = state_->transport->split(members, members.empty() ? -1 : new_rank, color);
  if (members.empty()) return nullptr;
  return make_part(*this, std::move(transport), members,
                   {.sequence = static_cast<uint64_t>(state_->splits), .call = {.root = color}});
}

CommunicatorPtr make_part(const Communicator& comm, std::unique_ptr<Transport> transport,
                          const std::vector<int>& members, const CallRecord& origin) {
  const auto& state = Communicator::State::of(comm);
  const BoardPlace& all = state.place;
  BoardPlace place{all.board, {}};
  for (int r : members) {
    place.slots.push_back(all.slots[size_t(r)]);
    if (!all.ranks.empty()) place.ranks.push_back(all.ranks[size_t(r)]);
    if (!all.hosts.empty()) place.hosts.push_back(all.hosts[size_t(r)]);
    if (!state.coordinates.empty()) place.coordinates.push_back(state.coordinates[size_t(r)]);
  }
  std::vector<std::string> coordinates = place.coordinates;
  CommunicatorPtr part = make_communicator_at(std::move(transport), comm.device(), state.options,
                                              std::move(place), fold_call(state.id, origin));
  Communicator::State::of(*part).coordinates = std::move(coordinates);
  return part;
}

// Making a call

OneThread::OneThread(Communicator& comm, const char* who) {
  auto& state = Communicator::State::of(comm);
  const std::thread::id self = std::this_thread::get_id();
  if (state.caller.load(std::memory_order_relaxed) == self) return;
  const char* other = nullptr;
  if (!state.running.compare_exchange_strong(other, who, std::memory_order_acquire)) [[unlikely]] {
    const std::string text = message(
        who, ": called while another thread of rank ", comm.rank(), " is in ", other,
        " on the same communicator, which serves one thread at a time; make all calls from one "
        "thread, or have the threads take turns in the same order on all ranks");
    comm.abort(text);
    throw CommError(text);
  }
  state.caller.store(self, std::memory_order_relaxed);
  state_ = &state;
}

OneThread::~OneThread() {
  if (state_ == nullptr) return;
  state_->caller.store({}, std::memory_order_relaxed);
  state_->running.store(nullptr, std::memory_order_release);
}

bool Communicator::State::apply_fault() const {
  if (fault.kind == Fault::Kind::kNone || made != fault.at_call) return true;
  switch (fault.kind) {
    case Fault::Kind::kDelay:
      std::this_thread::sleep_for(std::chrono::duration<double>(fault.seconds));
      break;
    case Fault::Kind::kSkip: return false;
    case Fault::Kind::kThrow: throw std::runtime_error("injected fault");
    case Fault::Kind::kExit: std::exit(int(fault.seconds));
    case Fault::Kind::kKill: std::raise(SIGKILL); break;
    case Fault::Kind::kNone: break;
  }
  return true;
}

CallRecord Communicator::State::next_record(const CallSignature& call) {
  CallHistory& one = is_message(call) ? pair_history(call.op == CommOp::kRecv, call.root) : history;
  return one.next(call);
}

void Communicator::State::record_host_call(const CallSignature& call) {
  if (is_message(call)) return;
  const CallRecord record = next_record(call);
  own_slot.begin_call(record);
  own_slot.end_call(record);
}

Array Communicator::submit_to_host(Request& request) {
  const OneThread caller(*this, request.who);
  if (!state_->control) return submit(request);
  state_->throw_if_failed();
  ++state_->made;
  state_->record_host_call(request.call);
  request.purpose = state_->purpose;
  return state_->control->submit(request);
}

namespace {

// Whether it may serve an exchange of gradients.
bool exchanges_values(CommOp op) {
  return reduces(op) || is_message(op) || op == CommOp::kAllToAll || op == CommOp::kAllGather;
}

}  // namespace

void Communicator::issue(const Request& request, const Array& input, const Array& output) {
  State& s = *state_;
  Call call{request.call};
  call.weight = request.weight;
  call.type = request.type;
  call.purpose = request.purpose ? request.purpose : s.purpose;
  if (!is_message(call)) call.rider = std::exchange(s.rider, nullptr);
  if (s.grouping && call.kind == CallKind::kArrays) call.kind = CallKind::kGrouped;
  const Array& any = input.defined() ? input : output;
  if (any.defined()) call.stream = current_stream(any.device());
  if (call.count > 1 && is_float(call.dtype) && exchanges_values(call.op))
    ranks_in_use().exchanges.store(true, std::memory_order_relaxed);
  const CallRecord record = s.next_record(call);
  call.sequence = record.sequence;
  call.hash = record.hash;
  if (s.grouping) {
    const bool temporary = output.defined() && !output.same_body(request.output);
    s.pending.push_back({call, record, input, output, temporary ? request.output : Array(),
                         temporary ? current_stream(request.output.device()) : Stream()});
    return;
  }
  s.own_slot.begin_call(record, call.purpose ? call.purpose : "");
  if (input.defined()) call.input = &input;
  if (output.defined()) call.output = &output;
  try {
    s.transport->run({&call, 1});
  } catch (const std::exception& error) {
    s.mark_failed(error);
    throw;
  }
  s.own_slot.end_call(record);
  // What came of it is of no use where another thread has broken in.
  if (s.failed.load(std::memory_order_relaxed)) [[unlikely]]
    s.throw_if_failed();
}

namespace {

// The one place that records the use of device arrays on the current stream.
void record_uses(const Array& input, const Array& output) {
  const Array& any = input.defined() ? input : output;
  const Stream stream = current_stream(any.device());
  record_use(*any.storage(), stream);
  if (output.defined() && output.storage() != any.storage()) record_use(*output.storage(), stream);
}

// What a trace shows of a call.
void trace_call(const char* who, const CallSignature& call, const Array& any, const char* purpose) {
  tracing::describe(who, tracing::Category::kCommunication,
                    {.bytes = any.defined() ? any.nbytes() : 0,
                     .peer = call.root,
                     .serves = purpose ? purpose : ""});
}

}  // namespace

Array Communicator::submit(Request& request) {
  State& s = *state_;
  CATENA_CHECK(CommError, getpid() == s.process, request.who,
               ": called in a process that was forked from the rank; only the rank itself can use "
               "its communicators");
  const OneThread caller(*this, request.who);
  CATENA_CHECK(CommError, !s.closed, request.who, ": the communicator is closed");
  if (s.failed.load(std::memory_order_relaxed)) [[unlikely]]
    s.throw_if_failed();
  if (request.output.defined()) check_writable(request.who, request.output);
  ++s.made;
  if (s.fault.kind != Fault::Kind::kNone) [[unlikely]]
    if (!s.apply_fault()) return request.output;
  const Array& any = request.input.defined() ? request.input : request.output;
  const DeviceType type = any.defined() ? any.device().type() : DeviceType::kCpu;
  if (type == DeviceType::kCuda) {
    if (const uint64_t capture = cuda::capture_id(); capture != 0) [[unlikely]]
      take_part_in_capture(capture, request);
    record_uses(request.input, request.output);
  }
  const bool stage = !s.transport->moves(type);
  if (stage && type == DeviceType::kCpu && s.control) {
    s.record_host_call(request.call);
    return s.control->submit(request);
  }
  const ProfilerRange range(request.who);
  if (tracing::active()) [[unlikely]]
    trace_call(request.who, request.call, any, request.purpose ? request.purpose : s.purpose);
  if (!stage && (!request.input.defined() || request.input.is_contiguous()) &&
      (!request.output.defined() || request.output.is_contiguous())) {
    issue(request, request.input, request.output);
    if (request.output.defined() && !s.grouping) request.output.note_write();
    return request.output;
  }
  Array input = request.input, output = request.output;
  if (input.defined()) input = stage ? input.contiguous().copy_to(cpu(0)) : input.contiguous();
  if (output.defined() && (stage || !output.is_contiguous()))
    output = Array::uninitialized(output.shape(), output.dtype(), stage ? cpu(0) : output.device());
  if (stage && request.input.defined()) current_stream(request.input.device()).synchronize();
  issue(request, input, output);
  if (output.defined() && !s.grouping) {
    if (output.same_body(request.output))
      output.note_write();
    else
      request.output.assign(output);
  }
  return request.output;
}

Event Communicator::submit_on(const Stream& on, Request& request) {
  for (const Array* array : {&request.input, &request.output})
    CATENA_CHECK(ValueError, !array->defined() || array->is_contiguous(), request.who,
                 ": asynchronous calls need contiguous arrays, got strides ", array->strides(),
                 " for shape ", array->shape());
  const Array& x = request.input.defined() ? request.input : request.output;
  if (!x.device().is_cuda()) {
    submit(request);
    return {};
  }
  CATENA_CHECK(DeviceError, on.device() == x.device(), request.who, ": the stream is on ",
               on.device(), ", the array on ", x.device());
  if (on != current_stream(x.device())) on.wait(current_stream(x.device()));
  StreamScope scope(on);
  submit(request);
  return state_->grouping ? Event() : on.record();
}

void Communicator::barrier() {
  Request request{.who = "barrier", .call = {.op = CommOp::kBarrier}};
  submit_to_host(request);
}

}  // namespace catena::comm
