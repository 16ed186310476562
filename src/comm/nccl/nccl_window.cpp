// See nccl_window.h.
#include "nccl_window.h"

#include <dlfcn.h>

#include <utility>

#include "catena/core/log.h"
#include "peer_memory.h"

namespace catena::comm::nccl {

#if NCCL_VERSION_CODE >= 22700

namespace {

// Of the library that is loaded, which may be older than the one that this was compiled with.
struct WindowCalls {
  decltype(&ncclMemAlloc) allocate = nullptr;
  decltype(&ncclMemFree) free = nullptr;
  decltype(&ncclCommWindowRegister) enter = nullptr;
  decltype(&ncclCommWindowDeregister) leave = nullptr;
  bool known() const { return allocate && free && enter && leave; }
};

template <class F>
void find_call(F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}

const WindowCalls& window_calls() {
  static const WindowCalls found = [] {
    WindowCalls calls;
    find_call(calls.allocate, "ncclMemAlloc");
    find_call(calls.free, "ncclMemFree");
    find_call(calls.enter, "ncclCommWindowRegister");
    find_call(calls.leave, "ncclCommWindowDeregister");
    return calls;
  }();
  return found;
}

}  // namespace

bool NcclWindow::allocate(size_t bytes) {
  if (!window_calls().known()) return false;
  const ncclResult_t code = window_calls().allocate(&data_, bytes);
  if (code != ncclSuccess) data_ = nullptr;
  return data_ && cudaMemset(data_, 0, bytes) == cudaSuccess &&
         cudaDeviceSynchronize() == cudaSuccess;
}

// Whether NCCL has made it a window: it says yes, and gives none, where ranks cannot reach each
// other's memory.
bool NcclWindow::enter(Core& core, size_t bytes) {
  struct Entered {
    ncclResult_t code = ncclSuccess;
    ncclWindow_t window = nullptr;
  };
  const auto entered = std::make_shared<Entered>();
  // An error of NCCL's leaves the communicator as it is.
  core.run_collectively("ncclCommWindowRegister", core.timeout(),
                        [entered, comm = core.comm, data = data_, bytes](ncclComm_t*) {
                          entered->code = window_calls().enter(comm, data, bytes, &entered->window,
                                                               NCCL_WIN_COLL_SYMMETRIC);
                          return ncclSuccess;
                        });
  if (entered->code != ncclSuccess)
    logging::info("nccl: ", nccl_text(entered->code, "ncclCommWindowRegister", core.comm));
  window_ = entered->code == ncclSuccess ? entered->window : nullptr;
  return window_ != nullptr;
}

void NcclWindow::close(Core& core) {
  if (!window_) return;
  const auto window = static_cast<ncclWindow_t>(std::exchange(window_, nullptr));
  core.run_collectively(
      "ncclCommWindowDeregister", core.timeout(),
      [comm = core.comm, window](ncclComm_t*) { return window_calls().leave(comm, window); });
}

void NcclWindow::free() {
  if (data_) window_calls().free(std::exchange(data_, nullptr));
}

#else

bool NcclWindow::allocate(size_t) { return false; }
bool NcclWindow::enter(Core&, size_t) { return false; }
void NcclWindow::close(Core&) {}
void NcclWindow::free() {}

#endif

std::unique_ptr<NcclWindow> NcclWindow::create(Core& core, Communicator& control, size_t bytes) {
  std::unique_ptr<NcclWindow> made(new NcclWindow);
  // Only memory that all ranks have is registered, and only windows of all ranks stay.
  if (all_agree(control, made->allocate(bytes))) {
    std::unique_lock lock(core.mutex);
    core.throw_if_failed();
    const bool entered = made->enter(core, bytes);
    lock.unlock();
    if (all_agree(control, entered)) return made;
    lock.lock();
    made->close(core);
  }
  made->free();
  return nullptr;
}

}  // namespace catena::comm::nccl
