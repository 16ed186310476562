// Interface that a device type implements for the core: memory, streams, events and byte copies.
// Implemented by plug-ins (cuda) and by the built-in CPU backend; kernels go through slots instead.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "catena/core/device.h"
#include "catena/core/memory.h"
#include "catena/core/stream.h"

namespace catena {

struct GraphState;  // the backend's own record of a captured graph

// One device type. Methods take the index of a device; their contracts are those of the free
// functions and classes of the same names (device.h, memory.h, stream.h).
class Backend {
 public:
  virtual ~Backend() = default;

  // Devices that can be used; 0 where there is none.
  virtual int device_count() = 0;
  // One line: model, memory, compute capability. Index -1: why there is no usable device ("" if
  // there is).
  virtual std::string describe(int index) = 0;
  virtual void synchronize(int index) = 0;
  // Makes the device current for the runtime calls that the calling thread makes itself: plug-ins
  // and programs that call CUDA use this instead of cudaSetDevice, which the backend would not
  // notice.
  virtual void make_current(int index);

  // The results of device_properties, memory_info, can_access_peer and device_of_pointer; owner_of
  // is -1 for memory that belongs to none of its devices. These methods, and others with a default,
  // throw DeviceError in a backend that does not support them.
  virtual DeviceProperties properties(int index);
  virtual MemoryInfo memory_info(int index);
  virtual bool can_access_peer(int index, int peer);
  virtual int owner_of(const void* memory);

  // Memory on the current stream of the calling thread.
  virtual StoragePtr allocate(int index, size_t bytes) = 0;
  virtual StoragePtr allocate_pinned(Device cpu_device, size_t bytes) = 0;
  virtual StoragePtr allocate_unpooled(int index, size_t bytes);
  // Memory that another process may open: CUDA's handle of the allocation, and the offset of
  // `memory` (in the storage) from its beginning.
  struct IpcMemory {
    char handle[64] = {};
    size_t offset = 0;
  };
  // DeviceError in a backend whose memory other processes cannot open.
  virtual IpcMemory export_memory(const Storage& storage, const void* memory);
  // Closed when the last reference is dropped.
  virtual StoragePtr import_memory(int index, const IpcMemory& memory, size_t bytes);
  virtual void record_use(const Storage& storage, const Stream& stream) = 0;
  virtual PoolStatistics statistics(int index) = 0;
  virtual PoolStatistics pinned_statistics() = 0;
  virtual void free_all_blocks(int index) = 0;
  virtual void free_all_pinned_blocks() = 0;
  virtual void set_limit(int index, size_t bytes) = 0;
  virtual void reset_peak(int index) = 0;
  // Counts memory of a device that a plug-in allocates itself against the pool's limit, for which
  // free blocks are given back; discount_outside() says that it is gone. False, and not counted,
  // where it is above the limit.
  virtual bool count_outside(int index, size_t bytes);
  virtual void discount_outside(int index, size_t bytes);

  // Streams. The caller owns one reference of what is returned.
  virtual StreamState* default_stream(int index) = 0;
  virtual StreamState* create_stream(int index, int priority) = 0;
  // The kind that the legacy stream waits for.
  virtual StreamState* create_blocking_stream(int index, int priority);
  virtual void destroy_stream(StreamState* state) = 0;
  virtual void synchronize_stream(StreamState* state) = 0;
  virtual bool query_stream(StreamState* state) = 0;
  virtual void stream_wait_event(StreamState* state, EventState* event) = 0;

  // Stream::add_callback and Stream::launch_host_func.
  virtual void add_callback(StreamState* state, Stream::Callback callback);
  virtual void launch_host_func(StreamState* state, std::function<void()> function);

  // Events. The caller owns one reference of what is returned.
  virtual EventState* create_event(int index, bool timing) = 0;
  virtual EventState* create_event_with(int index, const EventOptions& options);
  // An event that another process may open: CUDA's handle.
  struct IpcEvent {
    char handle[64] = {};
  };
  // Handles of interprocess events, and events of handles; recording, waiting and timing of events.
  virtual IpcEvent export_event(EventState* state);
  virtual EventState* import_event(int index, const IpcEvent& event);
  virtual void destroy_event(EventState* state) = 0;
  virtual void record_event(EventState* state, StreamState* stream) = 0;
  virtual void synchronize_event(EventState* state) = 0;
  virtual bool query_event(EventState* state) = 0;
  virtual double elapsed_ms(EventState* start, EventState* stop) = 0;

  // Copies bytes of one contiguous range between devices of which at least one is this backend's,
  // in the order of `stream` (a stream of a device of this backend). Host memory that is not pinned
  // may be reused or written when the call returns.
  virtual void copy_bytes(void* dst, Device dst_device, const void* src, Device src_device,
                          size_t bytes, const Stream& stream) = 0;
  // Sets `bytes` bytes to the low byte of `value`, in the order of the stream.
  virtual void fill_bytes(void* dst, int value, size_t bytes, const Stream& stream);

  // Graphs: work that the calling thread enqueues on `stream` between begin_capture and end_capture
  // is recorded instead of run, and replayed by launch_graph. Used through cuda::Graph. Devices
  // that cannot capture throw DeviceError.
  virtual void begin_capture(int index, const Stream& stream);
  // Ends the capture and makes the recorded work ready to launch.
  virtual GraphState* end_capture(const Stream& stream);
  // Ends the capture and forgets what was recorded.
  virtual void abort_capture(const Stream& stream) noexcept;
  // What the stream gets from here on runs after launches of the graph on other streams.
  virtual void order_launch(GraphState* graph, const Stream& stream);
  virtual void launch_graph(GraphState* graph, const Stream& stream);
  // Waits for the last launch, then gives back the memory the graph held.
  virtual void destroy_graph(GraphState* graph) noexcept;
  virtual bool is_capturing(const Stream& stream);

  // Named ranges for a profiler's time line (NVTX); nothing happens unless CATENA_NVTX=1.
  virtual void range_push(const char* name);
  virtual void range_pop();
};

// The backend of a type; loads its plug-in on first use. Throws DeviceError with the reason.
Backend& backend(DeviceType type);
// Null instead of an exception.
Backend* find_backend(DeviceType type);
// Plug-ins with further kernels for the device type, cudnn for cuda and onednn for cpu. They are
// loaded behind its own: a GPU's by load_plugin with its plug-in, the CPU's with its first kernel.
// Missing ones are left out; plugin_error() has the reason.
std::span<const char* const> companions(DeviceType type);
void load_companions(DeviceType type);
// Called by a plug-in's entry function.
void register_backend(DeviceType type, Backend* implementation);

}  // namespace catena
