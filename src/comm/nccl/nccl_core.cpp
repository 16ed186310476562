// See nccl_core.h.
#include "nccl_core.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

#include "catena/core/log.h"
#include "copy_collectives.h"
#include "peer_copies.h"
#include "peer_exchange.h"
#include "two_shot.h"

namespace catena::comm::nccl {

namespace {
// How long the end of an aborted communicator is waited for, and before another one and at the end
// of the process.
constexpr double kAbortWait = 0.3, kLongAbortWait = 2;
// How long the waits of messages that copy engines move are ended, those of graphs among them.
constexpr double kReleaseTime = 1;

std::atomic<int> aborts_running{0};

// An abort that still runs when the driver is taken down would end the process with a signal, and
// one that meets the start of another communicator shares NCCL's memory with it.
void finish_aborts() {
  const Clock::time_point start = Clock::now();
  while (aborts_running.load() > 0 && seconds_since(start) < kLongAbortWait)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
}  // namespace

Core::~Core() {
  for (StreamProgress& progress : streams_)
    for (const ProgressMarker& marker : {progress.first, progress.last})
      if (marker.event) cudaEventDestroy(marker.event);
}

std::string Core::failure() const {
  std::lock_guard lock(failure_mutex_);
  return failure_.text;
}

void Core::throw_if_failed() const {
  if (!failed()) [[likely]]
    return;
  std::lock_guard lock(failure_mutex_);
  if (failure_.cause != Cause::kPeers) throw CommError(failure_.text);
  throw PeerError(failure_.text, failure_.culprit);
}

void Core::fail(const Problem& noticed) {
  Problem problem = noticed;
  if (problem.cause != Cause::kThisRank && !about_.empty())
    problem.text += message(" (", about_, ")");
  {
    // The watchdog may come here without the core's mutex.
    std::lock_guard lock(failure_mutex_);
    if (failed()) return;
    failure_ = problem;
    failed_.store(true, std::memory_order_release);
  }
  logging::error("nccl: ", problem.text);
  if (owner_ && problem.cause != Cause::kThisRank)
    internals(*owner_).note_failure(problem.text, problem.cause == Cause::kPeers, problem.culprit);
  // Ends the kernels that wait on the GPU, so that host waits return.
  abort();
}

namespace {
// A thread of its own for what ends a communicator; false where there is none.
template <class F>
bool abort_in_thread(F work) {
  // Registered after the driver's and NCCL's own, so that it runs before them.
  [[maybe_unused]] static const int registered = std::atexit(finish_aborts);
  ++aborts_running;
  try {
    std::thread([work = std::move(work)]() mutable {
      work();
      --aborts_running;
    }).detach();
    return true;
  } catch (const std::system_error& error) {
    --aborts_running;
    logging::error("nccl: no thread to abort the communicator with: ", error.what());
    return false;
  }
}
}  // namespace

void Core::abort() {
  if (exchange) abort_in_thread([part = std::exchange(exchange, nullptr)] { part->release(); });
  if (two_shot) abort_in_thread([part = std::exchange(two_shot, nullptr)] { part->release(); });
  if (copies)
    abort_in_thread([copies = std::exchange(copies, nullptr)] { copies->release(kReleaseTime); });
  if (copied) abort_in_thread([part = std::exchange(copied, nullptr)] { part->release(); });
  if (!comm) return;
  const auto done = std::make_shared<std::atomic<bool>>(false);
  // Detached: it returns when no graph holds calls any more.
  const auto work = [aborted = std::exchange(comm, nullptr), device = device_, done] {
    const RelaxedMode relaxed;  // for what it frees
    cudaSetDevice(device);
    ncclCommAbort(aborted);
    done->store(true, std::memory_order_release);
  };
  if (!abort_in_thread(work)) return;
  // The graph that this rank's thread records is only destroyed after the rank has been notified.
  const Clock::time_point start = Clock::now();
  while (!capturing_ && !done->load(std::memory_order_acquire) && seconds_since(start) < kAbortWait)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

Core::Problem Core::problem(double waited, double timeout, const char* target, double& next_poll,
                            uint64_t first_call, uint64_t call) const {
  const Wait wait{.doing = message("for ", target),
                  .rank = owner_ ? owner_->rank() : -1,
                  .sequence = call,
                  .first = first_call,
                  .on_gpu = true};
  const WaitDiagnosis found = diagnose_wait(owner_, waited, timeout, wait, next_poll);
  return {found.text, found.culprit};
}

void Core::give_up(ncclResult_t code, const char* call) {
  throw_if_failed();  // the watchdog ended the call and knows why
  const std::string text = nccl_text(code, call, comm);
  if (code != ncclInvalidArgument) fail({text});  // that one had no effect
  throw CommError(text);
}

ncclComm_t Core::run_collectively(const char* name, double timeout,
                                  std::function<ncclResult_t(ncclComm_t*)> call) {
  struct Running {
    std::atomic<bool> done{false};
    ncclResult_t code = ncclSuccess;
    ncclComm_t made = nullptr;
  };
  finish_aborts();
  const auto running = std::make_shared<Running>();
  // Detached: it may never come back when another rank has died.
  std::thread([running, call = std::move(call), device = device_] {
    cudaSetDevice(device);
    running->code = call(&running->made);
    running->done.store(true, std::memory_order_release);
  }).detach();
  WaitClock clock;
  double next_poll = kFirstPoll;
  while (!running->done.load(std::memory_order_acquire)) {
    const double waited = clock.seconds();
    if (const Problem found = problem(waited, timeout, name, next_poll); !found.text.empty()) {
      fail(found);
      throw_if_failed();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(waited < 0.1 ? 20 : 1000));
  }
  finish(running->code, name);
  return running->made;
}

Core::StreamProgress* Core::find_stream(const Stream& stream) {
  for (StreamProgress& progress : streams_)
    if (progress.number != 0 && progress.stream == stream) return &progress;
  return nullptr;
}

Core::StreamProgress& Core::make_stream(const Stream& stream) {
  StreamProgress& oldest = *std::min_element(
      streams_.begin(), streams_.end(),
      [](const StreamProgress& a, const StreamProgress& b) { return a.number < b.number; });
  if (!oldest.last.event) {
    use_gpu(device_);
    for (ProgressMarker* marker : {&oldest.first, &oldest.last})
      if (!marker->event)
        CATENA_NCCL_CUDA(cudaEventCreateWithFlags(&marker->event, cudaEventDisableTiming));
  }
  oldest.stream = stream;
  oldest.first.pending = oldest.last.pending = false;
  oldest.only_calls = true;
  oldest.unmarked = 0;
  return oldest;
}

namespace {

constexpr std::chrono::microseconds kMarkerPeriod{100};

}  // namespace

cudaError_t Core::drop_passed(StreamProgress& progress) {
  const RelaxedMode relaxed;  // another stream of this thread may record a graph
  cudaError_t code = cudaSuccess;
  while (progress.first.pending) {
    code = cudaEventQuery(progress.first.event);
    if (code != cudaSuccess) break;
    std::swap(progress.first, progress.last);
    progress.last.pending = false;
  }
  if (code == cudaErrorNotReady) cudaGetLastError();  // not an error of the next call
  return code;
}

// False while the stream records a graph.
bool Core::record(StreamProgress& progress) {
  progress.dirty = false;
  if (records_graph(progress.stream)) return false;
  drop_passed(progress);
  ProgressMarker& marker = progress.first.pending ? progress.last : progress.first;
  // It replaces a marker that nobody waits for any more, and covers its work too.
  const bool only_calls = progress.only_calls && !(marker.pending && marker.call == 0);
  if (!marker.pending) marker.first = progress.unmarked;
  CATENA_NCCL_CUDA(cudaEventRecord(marker.event, native(progress.stream)));
  marker.pending = true;
  marker.call = only_calls ? progress.call : 0;
  progress.only_calls = true;
  progress.unmarked = 0;
  progress.number = ++marks_;
  progress.recorded = Clock::now();
  return true;
}

void Core::mark(const Stream& stream, uint64_t call) {
  caller_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  StreamProgress* progress = find_stream(stream);
  if (!progress) {
    if (records_graph(stream)) {
      // The calls before a capture must agree, as those in it will be repeated for ever.
      if (!capturing_.exchange(true)) verify();
      return;
    }
    progress = &make_stream(stream);
  }
  if (call == 0)
    progress->only_calls = false;
  else if (progress->unmarked == 0)
    progress->unmarked = call;
  if (call > 0) progress->call = call;
  if (progress->first.pending && Clock::now() - progress->recorded < kMarkerPeriod) {
    progress->dirty = true;
    return;
  }
  capturing_ = !record(*progress);
}

void Core::flush() {
  for (StreamProgress& progress : streams_)
    if (progress.dirty) record(progress);
}

void Core::drain() {
  flush();
  WaitClock clock;
  double next_poll = kFirstPoll;
  for (StreamProgress& progress : streams_) {
    while (!failed()) {
      const cudaError_t code = drop_passed(progress);
      if (code == cudaSuccess) break;
      if (code != cudaErrorNotReady) check_cuda(code, "cudaEventQuery");
      const Problem found = problem(clock.seconds(), timeout_, "collectives on the GPU", next_poll,
                                    progress.first.first, progress.first.call);
      if (!found.text.empty()) fail(found);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  throw_if_failed();
}

void Core::poll_stream(StreamProgress& progress) {
  const cudaError_t code = drop_passed(progress);
  if (code == cudaSuccess) return;
  if (code != cudaErrorNotReady)
    return fail({message("the GPU failed: ", cudaGetErrorString(code)), -1, Cause::kThisGpu});
  if (progress.seen != progress.number) {
    // Newer work than at the last poll: the clock starts again.
    progress.seen = progress.number;
    progress.since = {};
    progress.next_poll = kFirstPoll;
    return;
  }
  const Problem found = problem(progress.since.seconds(), timeout_, "a collective on the GPU",
                                progress.next_poll, progress.first.first, progress.first.call);
  if (!found.text.empty()) fail(found);
}

// NCCL notices messages of different sizes and lost connections, and says no more than that.
Core::Problem Core::explain(const std::string& of_nccl) const {
  Problem found;
  if (owner_) found.text = internals(*owner_).find_problem(0, &found.culprit);
  return found.text.empty() ? Problem{of_nccl} : found;
}

void Core::poll() {
  if (failed() || !comm) return;
  ncclResult_t state = ncclSuccess;
  if (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state != ncclSuccess &&
      state != ncclInProgress)
    return fail(explain(nccl_text(state, "a collective failed asynchronously", comm)));
  for (StreamProgress& progress : streams_)
    if (!failed()) poll_stream(progress);
}

void Core::poll_while_in_nccl(double waited) {
  if (waited < kFirstPoll) {
    next_busy_poll_ = kFirstPoll;
    return;
  }
  const Problem found =
      problem(waited, timeout_, "a collective that waits for other ranks", next_busy_poll_);
  if (!found.text.empty()) fail(found);
}

void Core::verify() {
  throw_if_failed();
  // Without an owner the communicator is gone.
  if (!owner_ || internals(*owner_).is_compared()) return;
  Problem difference{internals(*owner_).find_difference()};
  if (difference.text.empty()) return;
  internals(*owner_).find_problem(0, &difference.culprit);
  fail(difference);
  throw_if_failed();
}

void Core::close() {
  if (!comm || failed()) return;
  run_collectively("ncclCommFinalize", timeout_,
                   [c = comm](ncclComm_t*) { return ncclCommFinalize(c); });
  ncclCommDestroy(std::exchange(comm, nullptr));
}

}  // namespace catena::comm::nccl
