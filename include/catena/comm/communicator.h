// Communicator: a fixed group of ranks that move arrays and host objects among each other.
//
// A rank is a process (mpi, nccl) or a thread (threads). Every collective must be called by all
// ranks of the communicator, in the same order, with the same dtype, counts, reduction and root.
// If ranks disagree, all get a CommError that names the first differing call and the ranks. If a
// rank dies, or does not make the call within the deadline (CATENA_TIMEOUT seconds, 600), the
// others get a CommError that names it. After such an error the communicator is dead: every later
// call throws the same text.
//
// Arrays: the output may be given, else it is new. Giving the input as output works in place. An
// array must be on device(). If that is a GPU, host arrays are accepted too and are moved by the
// host. Any strides and zero-size arrays are allowed. Calls are queued on the calling thread's
// current stream of the array's device and are ordered with it. Calls on host arrays and objects
// are complete when they return.
//
// One thread at a time may use a communicator: a call, or a whole group, that another thread of the
// rank makes meanwhile is a CommError that names both, after which the communicator is dead. note,
// failed and abort may be called at any time, and check by ranks of one host. internals.h and
// fault.h have what transports, diagnosis and tests need in addition.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "catena/array/arguments.h"
#include "catena/array/array.h"
#include "catena/comm/objects.h"
#include "catena/comm/reduction.h"
#include "catena/comm/topology.h"

namespace catena::comm {

class Communicator;
// Communicators are shared: optimizers and graphs that use one keep it alive.
using CommunicatorPtr = std::shared_ptr<Communicator>;

// The axes of a mesh (mesh.h) along which the ranks of a communicator lie.
struct MeshAxes {
  int mesh = 0;                         // number of the mesh on its communicator, from 1 on
  std::vector<std::string> names = {};  // in the order of the mesh; empty: of no mesh
  // "tensor", "data+context"; "ranks" where there are none.
  std::string text() const;
};

// The contract of all calls is at the top of this file.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // Made by create_communicator, run_threads and split.
  struct State;
  explicit Communicator(std::unique_ptr<State> state);
  // Closes; errors of closing are logged.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // This rank and the number of ranks: in the communicator, on this host, and of hosts.
  int rank() const { return topology_.rank; }
  int size() const { return topology_.size; }
  int intra_rank() const { return topology_.intra_rank; }
  int intra_size() const { return topology_.intra_size; }
  int inter_rank() const { return topology_.inter_rank; }
  int inter_size() const { return topology_.inter_size; }
  const Topology& topology() const { return topology_; }
  // The device whose arrays this rank communicates.
  Device device() const { return device_; }
  // The implementation: "threads", "mpi" or "nccl".
  std::string name() const;
  // Set by Mesh::over.
  const MeshAxes& axis() const;

  // Ranks with the same color >= 0 form a new communicator, ordered by key, then by old rank. A
  // rank with a negative color gets null. Collective. The ranks must agree in the tag, which errors
  // name.
  CommunicatorPtr split(int color, int key = 0, const CallTag& tag = {});

  // Collectives on arrays. All return the output: `out`, or a new array when it is left out.

  // Combines the arrays of all ranks element by element; every rank gets the same bits. Elements
  // meet in row-major order, as in flat buffers: their number must be equal on all ranks, shapes
  // may differ ((2, 3) on one rank, (3, 2) on another), and each result has its own x's shape.
  Array all_reduce(const Array& x, const Reduce& op = {}, const OptionalArray& out = {});
  // The same; only the root gets a result, the others an undefined Array.
  Array reduce(const Array& x, const Reduce& op = {}, int root = 0, const OptionalArray& out = {});
  // Combines, then rank r keeps the r-th of size() equal pieces of the first axis.
  // In place: out is that piece of x. ShapeError when size() does not divide the first axis.
  Array reduce_scatter(const Array& x, const Reduce& op = {}, const OptionalArray& out = {});
  // All ranks' arrays concatenated along the first axis (0-d arrays count as length 1).
  // In place: x is the rank-th piece of out.
  Array all_gather(const Array& x, const OptionalArray& out = {});
  // The same; only the root gets a result.
  Array gather(const Array& x, int root = 0, const OptionalArray& out = {});
  // The root's array, written into x of the others (into out when given).
  Array broadcast(const Array& x, int root = 0, const OptionalArray& out = {});
  // Rank r receives into `out` the r-th of size() equal pieces of the root's x along the first
  // axis; x is ignored on the other ranks.
  Array scatter(const Array& x, const Array& out, int root = 0);
  // The j-th of size() equal pieces of x goes to rank j; piece j of the result came from rank j.
  Array all_to_all(const Array& x, const OptionalArray& out = {});
  // Host barrier: returns when all ranks have called it.
  void barrier();

  // Point to point. Messages between two ranks arrive in order; there are no tags. A send waits for
  // its recv, so an exchange belongs into one group. A message to this rank itself is only allowed
  // in a group (ValueError elsewhere).
  void send(const Array& x, int destination);
  void recv(const Array& out, int source);

  // Calls made in a group are issued together at its end, and their outputs are valid after it. At
  // most one group may be open.
  //   comm.group([&] { comm.send(a, next); comm.recv(b, previous); });
  void group(const std::function<void()>& calls);

  // Asynchronous calls on another stream

  // In-place all-reduce of a contiguous array on `on`, which first waits for the current stream.
  // The returned event completes with the call. On the CPU the call is complete on return and the
  // event is null. In a group the event is null as well: record one on `on` after the group. The
  // array's storage counts as used by `on`. The ranks must agree in the tag, which errors name:
  // buckets of gradients of equal size are not taken for each other.
  Event all_reduce_async(const Array& x, const Reduce& op, const Stream& on,
                         const CallTag& tag = {});
  // The same for the other two; out must be given and contiguous.
  Event reduce_scatter_async(const Array& x, const Reduce& op, const Array& out, const Stream& on,
                             const CallTag& tag = {});
  Event all_gather_async(const Array& x, const Array& out, const Stream& on,
                         const CallTag& tag = {});
  // Messages on another stream, in the same way: `on` first waits for the current stream, x and out
  // are contiguous and count as used by `on`, the returned event completes when the message has
  // been sent, or has arrived in `out`. With "nccl" the host queues the call and goes on, but for
  // the first large message (512 KiB) between two ranks of a host and each larger one, which may
  // wait for the other rank: put exchanges into one group.
  // "threads", "mpi" and host arrays wait for the other rank here, so that the order of the calls
  // is the order of the messages. Calls of one group may be on different streams.
  Event send_async(const Array& x, int destination, const Stream& on);
  Event recv_async(const Array& out, int source, const Stream& on);
  // A stream of device() that belongs to this communicator, of high priority.
  Stream side_stream();

  // Host objects: strings, trivially copyable values, vectors of such values (not of bool or
  // strings), NamedArrays.

  // The root's value for every rank; the value of the others is ignored.
  template <class T>
  T broadcast_object(const T& value, int root = 0) {
    return detail::unpack<T>(
        broadcast_bytes(rank() == root ? detail::pack(value) : std::string(), root, &typeid(T)));
  }
  // The values of all ranks, in rank order.
  template <class T>
  std::vector<T> all_gather_object(const T& value) {
    return detail::unpack_all<T>(all_gather_bytes(detail::pack(value), &typeid(T)));
  }
  // The values of all ranks on the root; empty on the others.
  template <class T>
  std::vector<T> gather_object(const T& value, int root = 0) {
    return detail::unpack_all<T>(gather_bytes(detail::pack(value), root, &typeid(T)));
  }
  // values[r] of the root for rank r; ignored on the others.
  template <class T>
  T scatter_object(const std::vector<T>& values, int root = 0) {
    std::vector<std::string> packed;
    if (rank() == root)
      for (const T& value : values) packed.push_back(detail::pack(value));
    return detail::unpack<T>(scatter_bytes(packed, root, &typeid(T)));
  }
  // Point to point; both ranks must use the same type.
  template <class T>
  void send_object(const T& value, int destination) {
    send_bytes(detail::pack(value), destination);
  }
  template <class T>
  T recv_object(int source) {
    return detail::unpack<T>(recv_bytes(source));
  }
  // One number of every rank, combined.
  template <class T>
  T all_reduce_value(T value, const Reduce& op = {}) {
    reduce_value(&value, dtype_of<T>, op);
    return value;
  }

  // The same for byte strings of any length, which may differ between ranks. The object calls above
  // use them, with the type of their object, in which ranks must then agree.
  std::string broadcast_bytes(std::string bytes, int root, const std::type_info* type = nullptr);
  std::vector<std::string> all_gather_bytes(const std::string& bytes,
                                            const std::type_info* type = nullptr);
  std::vector<std::string> gather_bytes(const std::string& bytes, int root,
                                        const std::type_info* type = nullptr);
  std::string scatter_bytes(const std::vector<std::string>& pieces, int root,
                            const std::type_info* type = nullptr);
  void send_bytes(const std::string& bytes, int destination);
  std::string recv_bytes(int source);

  // Failures and the end

  // Compares the calls made so far with those of the other ranks and throws CommError on a
  // difference. On one host it reads shared memory and waits for nobody. Over several hosts it is a
  // collective. "threads" and "mpi" compare at every call anyway. With "nccl" a multi-node
  // optimizer calls this every 64 updates, and host waits compare what is on their host.
  void check();
  // Whether a call of this rank has failed, or one of another rank that this one has heard of.
  bool failed() const;
  // Ends the job: every rank of the communicator gets a CommError with this text.
  void abort(const std::string& reason);
  // What this rank is doing, for the reports of other ranks and of the launcher ("epoch 3").
  void note(std::string_view text);
  // Collective. Later calls throw, and so do launches of graphs that recorded calls. The destructor
  // closes as well.
  void close();

 private:
  struct Request;
  Array submit(Request& request);
  Array submit_to_host(Request& request);
  Event submit_on(const Stream& on, Request& request);
  void issue(const Request& request, const Array& input, const Array& output);
  void take_part_in_capture(uint64_t capture, const Request& request);
  void begin_group();
  void end_group();
  void drop_group();
  void reduce_value(void* value, Dtype dtype, const Reduce& op);
  void host_call(const CallSignature& call, void* in, int64_t in_count, void* out,
                 int64_t out_count, const std::type_info* type = nullptr);
  void check_array(const char* who, const Array& a) const;
  void check_peer(const char* who, int peer, const char* role) const;
  void check_other(const char* who, int peer, const char* role) const;

  Topology topology_;
  Device device_;
  std::unique_ptr<State> state_;
};

}  // namespace catena::comm

namespace catena {
using comm::Communicator;
using comm::CommunicatorPtr;
}  // namespace catena
