#include "nccl_core.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

#include "catena/core/log.h"

namespace catena::comm::nccl {

namespace {
// How long the end of an aborted communicator is waited for, and at the end of the process.
constexpr double kAbortWait = 0.3, kAbortWaitAtExit = 2;

std::atomic<int> aborts_running{0};

// An abort that still runs when the driver is taken down would end the process with a signal.
void finish_aborts() {
  const Clock::time_point start = Clock::now();
  while (aborts_running.load() > 0 && seconds_since(start) < kAbortWaitAtExit)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
}  // namespace

Core::~Core() {
  for (Point& point : points_)
    for (const Mark& mark : {point.first, point.last})
      if (mark.event) cudaEventDestroy(mark.event);
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
  throw PeerError(failure_.text, failure_.blamed);
}

void Core::fail(const Problem& problem) {
  {
    // The watchdog may come here without the core's mutex.
    std::lock_guard lock(failure_mutex_);
    if (failed()) return;
    failure_ = problem;
    failed_.store(true, std::memory_order_release);
  }
  logging::error("nccl: ", problem.text);
  if (owner_ && problem.cause != Cause::kThisRank)
    owner_->note_failure(problem.text, problem.cause == Cause::kPeers, problem.blamed);
  // Ends the kernels that wait on the GPU, so that host waits return.
  abort();
}

void Core::abort() {
  if (!comm) return;
  // Registered after the driver's and NCCL's own, so that it runs before them.
  [[maybe_unused]] static const int registered = std::atexit(finish_aborts);
  const auto done = std::make_shared<std::atomic<bool>>(false);
  ++aborts_running;
  // Detached: it returns when no graph holds calls any more.
  const auto work = [aborted = std::exchange(comm, nullptr), device = device_, done] {
    // What it frees must not disturb graphs that other threads record.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    cudaSetDevice(device);
    ncclCommAbort(aborted);
    done->store(true, std::memory_order_release);
    --aborts_running;
  };
  try {
    std::thread(work).detach();
  } catch (const std::system_error& error) {
    --aborts_running;
    logging::error("nccl: no thread to abort the communicator with: ", error.what());
    return;
  }
  // The graph that this rank's thread records only goes after the rank has been told.
  const Clock::time_point start = Clock::now();
  while (!capturing_ && !done->load(std::memory_order_acquire) && seconds_since(start) < kAbortWait)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

Core::Problem Core::problem(double waited, double timeout, const char* target, double& next_look,
                            uint64_t first_call, uint64_t call) const {
  const Wait wait{.doing = message("for ", target),
                  .rank = owner_ ? owner_->rank() : -1,
                  .sequence = call,
                  .first = first_call,
                  .on_gpu = true};
  const WaitProblem found = find_wait_problem(owner_, waited, timeout, wait, next_look);
  return {found.text, found.blamed};
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
  const auto running = std::make_shared<Running>();
  // Detached: it may never come back when another rank has died.
  std::thread([running, call = std::move(call), device = device_] {
    cudaSetDevice(device);
    running->code = call(&running->made);
    running->done.store(true, std::memory_order_release);
  }).detach();
  const Clock::time_point start = Clock::now();
  double next_look = kFirstLook;
  while (!running->done.load(std::memory_order_acquire)) {
    const double waited = seconds_since(start);
    if (const Problem found = problem(waited, timeout, name, next_look); !found.text.empty()) {
      fail(found);
      throw_if_failed();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(waited < 0.1 ? 20 : 1000));
  }
  finish(running->code, name);
  return running->made;
}

Core::Point* Core::find_point(const Stream& stream) {
  for (Point& point : points_)
    if (point.number != 0 && point.stream == stream) return &point;
  return nullptr;
}

Core::Point& Core::make_point(const Stream& stream) {
  Point& oldest =
      *std::min_element(points_.begin(), points_.end(),
                        [](const Point& a, const Point& b) { return a.number < b.number; });
  if (!oldest.last.event) {
    int previous = 0;
    cudaGetDevice(&previous);
    CATENA_NCCL_CUDA(cudaSetDevice(device_));
    for (Mark* mark : {&oldest.first, &oldest.last})
      if (!mark->event)
        CATENA_NCCL_CUDA(cudaEventCreateWithFlags(&mark->event, cudaEventDisableTiming));
    cudaSetDevice(previous);
  }
  oldest.stream = stream;
  oldest.first.pending = oldest.last.pending = false;
  oldest.only_calls = true;
  oldest.unmarked = 0;
  return oldest;
}

namespace {

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

bool records_graph(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CATENA_NCCL_CUDA(cudaStreamIsCapturing(native(stream), &status));
  return status != cudaStreamCaptureStatusNone;
}

constexpr std::chrono::microseconds kMarkPeriod{100};

}  // namespace

cudaError_t Core::pass(Point& point) {
  // Another stream of this thread may record a graph.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  cudaError_t code = cudaSuccess;
  while (point.first.pending) {
    code = cudaEventQuery(point.first.event);
    if (code != cudaSuccess) break;
    std::swap(point.first, point.last);
    point.last.pending = false;
  }
  cudaThreadExchangeStreamCaptureMode(&mode);
  if (code == cudaErrorNotReady) cudaGetLastError();  // it is no error of what comes next
  return code;
}

// False while the stream records a graph.
bool Core::record(Point& point) {
  point.dirty = false;
  if (records_graph(point.stream)) return false;
  pass(point);
  Mark& mark = point.first.pending ? point.last : point.first;
  // It takes the place of a mark that is not looked at any more, and stands for its work too.
  const bool only_calls = point.only_calls && !(mark.pending && mark.call == 0);
  if (!mark.pending) mark.first = point.unmarked;
  CATENA_NCCL_CUDA(cudaEventRecord(mark.event, native(point.stream)));
  mark.pending = true;
  mark.call = only_calls ? point.call : 0;
  point.only_calls = true;
  point.unmarked = 0;
  point.number = ++marks_;
  point.recorded = Clock::now();
  return true;
}

void Core::mark(const Stream& stream, uint64_t call) {
  caller_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  Point* point = find_point(stream);
  if (!point) {
    if (records_graph(stream)) {
      // The calls before a capture must agree, as those in it will be repeated for ever.
      if (!capturing_.exchange(true)) verify();
      return;
    }
    point = &make_point(stream);
  }
  if (call == 0)
    point->only_calls = false;
  else if (point->unmarked == 0)
    point->unmarked = call;
  if (call > 0) point->call = call;
  if (point->first.pending && Clock::now() - point->recorded < kMarkPeriod) {
    point->dirty = true;
    return;
  }
  capturing_ = !record(*point);
}

void Core::flush() {
  for (Point& point : points_)
    if (point.dirty) record(point);
}

void Core::drain() {
  flush();
  const Clock::time_point start = Clock::now();
  double next_look = kFirstLook;
  for (Point& point : points_) {
    while (!failed()) {
      const cudaError_t code = pass(point);
      if (code == cudaSuccess) break;
      if (code != cudaErrorNotReady) check_cuda(code, "cudaEventQuery");
      const Problem found = problem(seconds_since(start), timeout_, "collectives on the GPU",
                                    next_look, point.first.first, point.first.call);
      if (!found.text.empty()) fail(found);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  throw_if_failed();
}

void Core::look_at(Point& point) {
  const cudaError_t code = pass(point);
  if (code == cudaSuccess) return;
  if (code != cudaErrorNotReady)
    return fail({message("the GPU failed: ", cudaGetErrorString(code)), -1, Cause::kThisGpu});
  if (point.seen != point.number) {
    // Newer work than at the last look: the clock starts again.
    point.seen = point.number;
    point.since = Clock::now();
    point.next_look = kFirstLook;
    return;
  }
  const Problem found = problem(seconds_since(point.since), timeout_, "a collective on the GPU",
                                point.next_look, point.first.first, point.first.call);
  if (!found.text.empty()) fail(found);
}

void Core::look() {
  if (failed() || !comm) return;
  ncclResult_t state = ncclSuccess;
  if (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state != ncclSuccess &&
      state != ncclInProgress)
    return fail({nccl_text(state, "a collective failed asynchronously", comm)});
  for (Point& point : points_)
    if (!failed()) look_at(point);
}

void Core::look_while_busy(double waited) {
  if (waited < kFirstLook) {
    next_busy_look_ = kFirstLook;
    return;
  }
  const Problem found =
      problem(waited, timeout_, "a collective that waits for other ranks", next_busy_look_);
  if (!found.text.empty()) fail(found);
}

void Core::verify() {
  throw_if_failed();
  // Without an owner the communicator is gone.
  if (!owner_ || owner_->calls() == verified_) return;
  verified_ = owner_->calls();
  Problem difference{owner_->find_difference()};
  if (difference.text.empty()) return;
  owner_->find_problem(0, &difference.blamed);
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
