#include "functions/host_copies.h"

#include <map>
#include <utility>

#include "autograd/contribute.h"
#include "catena/core/backend.h"
#include "catena/core/graph.h"

namespace catena::functions {
namespace {

constexpr const char* kWho = "Recompute";

// Of a device; they live as long as the process.
struct SideStreams {
  Stream to_host, to_device;
};

const SideStreams& side_streams(Device device) {
  static ForkMutex mutex;
  static auto* const all = new std::map<int, SideStreams>;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = all->try_emplace(device.index());
  if (is_new) found->second = {Stream::create(device), Stream::create(device)};
  return found->second;
}

void refuse_in_capture(Device device) {
  CATENA_CHECK(ValueError, cuda::capture_id() == 0, kWho, ": offload on ", device,
               " while a graph is captured; copies to the host are not captured: run the step "
               "without a graph, or recompute without offload");
}

StoragePtr pinned_memory_for(const Array& a) {
  try {
    return allocate_pinned(cpu(0), size_t(a.nbytes()));
  } catch (const OutOfMemoryError& error) {
    fail<OutOfMemoryError>(kWho, ": offload found no pinned host memory for an array of shape ",
                           a.shape(), " ", a.dtype(), ", ", a.nbytes(), " bytes: ", error.what(),
                           "; keep less, take a smaller batch, or recompute without offload");
  }
}

// Those whose device memory this thread has not let go: parts that have run forward last.
std::vector<std::weak_ptr<HostCopies>>& completed() {
  thread_local std::vector<std::weak_ptr<HostCopies>> parts;
  return parts;
}

}  // namespace

HostCopies::~HostCopies() { release(); }

void HostCopies::add(const Array& a) {
  Copy copy;
  copy.device = a;
  copy.writes = write_count(a);
  if (a.device().is_cuda() && a.size() > 0) {
    refuse_in_capture(a.device());
    copy.host = pinned_memory_for(a);
    copy.shape = a.shape();
    copy.dtype = a.dtype();
    copy.place = a.device();
    copy.stream = current_stream(a.device());
    copy.is_own = !a.is_dense();
    if (copy.is_own) copy.device = a.copy();
    copy.order = copy.device.order();
    const Stream& side = side_streams(a.device()).to_host;
    side.wait(copy.stream);
    backend(a.device().type())
        .copy_bytes(copy.host->data, cpu(0), copy.device.raw_data(), a.device(), size_t(a.nbytes()),
                    side);
    record_use(*copy.host, side);
    copy.done = side.record();
  }
  const std::lock_guard lock(mutex_);
  copies_.push_back(std::move(copy));
}

void HostCopies::complete(const std::shared_ptr<HostCopies>& copies) {
  for (const auto& before : std::exchange(completed(), {copies}))
    if (const auto part = before.lock()) part->release();
}

// The wait for `done` is for the copy to the host, if the current stream is another one by now.
void HostCopies::bring(Copy& copy) {
  refuse_in_capture(copy.place);
  const Array back = Array::uninitialized(copy.shape, copy.dtype, copy.place, copy.order);
  const Stream& side = side_streams(copy.place).to_device;
  copy.stream = current_stream(copy.place);
  side.wait(copy.done);
  side.wait(copy.stream);
  backend(copy.place.type())
      .copy_bytes(back.raw_data(), copy.place, copy.host->data, cpu(0), size_t(back.nbytes()),
                  side);
  record_use(*copy.host, side);
  copy.done = side.record();
  copy.device = back;
  copy.is_own = true;
}

// On the current stream, behind the copy.
void HostCopies::use_here(const Copy& copy) {
  const Stream here = current_stream(copy.place);
  here.wait(copy.done);
  if (!(here == copy.stream)) record_use(*copy.device.storage(), here);
}

void HostCopies::prefetch() {
  const std::lock_guard lock(mutex_);
  for (Copy& copy : copies_)
    if (!copy.device.defined()) bring(copy);
}

Arrays HostCopies::arrays() {
  prefetch();
  const std::lock_guard lock(mutex_);
  Arrays all;
  for (const Copy& copy : copies_) {
    if (!copy.is_own && write_count(copy.device) != copy.writes) was_written_ = true;
    if (copy.is_own && copy.host) use_here(copy);
    all.push_back(copy.device);
  }
  CATENA_CHECK(GradientError, !was_written_, kWho,
               ": what it keeps for backward was written to; with offload nobody may write to it "
               "until it is on the host, without offload until backward is done");
  return all;
}

void HostCopies::release() noexcept try {
  const std::lock_guard lock(mutex_);
  for (Copy& copy : copies_) {
    if (!copy.host || !copy.device.defined()) continue;
    if (!copy.is_own && write_count(copy.device) != copy.writes) was_written_ = true;
    copy.stream.wait(copy.done);
    copy.device = Array();
  }
} catch (...) {
  // A device that fails keeps its memory, and its next call says why.
}

}  // namespace catena::functions
