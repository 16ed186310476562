// ParameterState: what all handles of a parameter share. Its gradient is written through the calls
// below alone, so that the memory and what is known of it cannot disagree.
#pragma once

#include <atomic>
#include <boost/container/small_vector.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "catena/autograd/backward_observer.h"
#include "catena/autograd/variable.h"
#include "catena/core/stream.h"

namespace catena {

struct Placement;

// What a process keeps of the values of a parameter that are not all there.
struct KeptValues {
  Array elements;     // 1-d, a view to read and write
  int64_t begin = 0;  // the first of them, among those of the parameter
  MemoryOrder order;  // of the parameter's axes, in which they are counted
};

// State behind Parameter handles.
struct ParameterState : RefCounted {
  Variable variable;                                    // root; its data is the parameter
  IntrusivePtr<ParameterData> data{new ParameterData};  // the same, for graphs
  std::string name;                    // full path in the model after setup, for messages: "/l1/W"
  std::string path;                    // "l1/W", the longest that a model's listing gave; note_path
  std::atomic<bool> used{false};       // took part in a recorded forward
  std::atomic<bool> listed{false};     // a set of functions or an optimizer has come across it
  std::atomic<bool> warned_of{false};  // as forgotten: used, and not listed
  std::atomic<bool> is_read{false};    // somebody has asked for the gradient (Parameter::grad)
  bool is_packed = false;              // see Parameter::pack

  ParameterState();
  ~ParameterState();
  // Called when the last handle is gone.
  static void destroy(ParameterState* state);

  // Gradient ------------------------------------------------------------------------------------
  // A contribution is written where accumulate_target() says, then mark_written() is called:
  //   const GradientTarget target = state.accumulate_target();
  //   kernel(..., *target.array, /*beta=*/target.accumulate ? 1 : 0);
  //   state.mark_written();

  // Memory of the parameter's dtype, shape and device, made on the first call.
  GradientTarget accumulate_target() {
    if (!gradient_.defined()) [[unlikely]]
      allocate_gradient();
    return {&gradient_, content_ != Content::kStale};
  }
  // The memory holds a gradient.
  void mark_written() { content_ = Content::kGradient; }
  // The gradient is zero. The memory is left alone: the next contribution overwrites it.
  void mark_zero() { content_ = Content::kStale; }
  // The memory was filled with zeros by the caller, as settle() does.
  void mark_filled() { content_ = Content::kZeros; }

  // Whether a gradient has flowed, or was given, since mark_zero().
  bool has_gradient() const { return content_ == Content::kGradient; }
  // Whether the gradient is zero although the memory holds other values, or does not exist.
  bool is_stale() const { return content_ == Content::kStale; }
  // False from release_gradient() on.
  bool has_gradient_here() const { return !gradient_is_released_; }
  // The memory as it is; undefined until first needed. settle() gives the gradient's value.
  const Array& gradient_memory() const { return gradient_; }
  // Writes the zeros that mark_zero() has put off; the gradient.
  const Array& settle();

  // Copies a gradient of the parameter's dtype and shape, from any device.
  void set_gradient(const Array& gradient);
  // Adds one that is on the parameter's device, or copies it, as accumulate_target() says.
  void add_gradient(const Array& gradient);
  // Gives the gradient another place, for arenas and moves: values are not copied, and what is
  // known of them stays. An undefined array gives the memory up, and with it the gradient.
  void bind_gradient(const Array& memory);
  // The gradient has no memory here until bind_gradient gives it some: what needs it is a
  // GradientError that names the parameter. What is known of the gradient stays: this process may
  // keep a part of it elsewhere.
  void release_gradient();

  // Use -----------------------------------------------------------------------------------------
  // A function is about to use the values: tells the observers that watch uses
  // (BackwardObserver::before_use), which may bring them. Whether they are here then.
  bool before_use();
  // `who` reads the values, which are not here: tells all observers
  // (BackwardObserver::before_read). ValueError if they have not brought them.
  void bring(const char* who);
  // What this process keeps of values that are not all here, as the observers know
  // (BackwardObserver::kept_values): for files, to which every process writes its part.
  std::optional<KeptValues> kept_values();
  // ValueError: `who` needs the values of the parameter, which are not here.
  [[noreturn]] void fail_absent(const std::string& who) const;

  // Whoever records work on the memory of values or gradient calls this. While the thread captures
  // a graph, launches of the graph are then an Error that names the parameter once it has moved
  // (ParameterData::moves): the graph would work on memory that nobody sees any more.
  void use_in_graph();

  // 16-bit copy ---------------------------------------------------------------------------------
  // The value in float16 or bfloat16: the parameter's array if it has that dtype, else a copy,
  // which is made again only where the parameter was written since. An optimizer's update writes
  // the copy with the parameter, at no further kernel. Threads may call it at once; the current
  // stream of the device waits for the copy where another one made it. DtypeError for other dtypes
  // and of parameters that are not floating numbers, ValueError where the values are not here.
  //
  // While a graph is captured the copy of an arena is used as it is, and brought up to date before
  // each launch if something else than the update wrote the parameter; other copies are made by the
  // graph. Where a captured step writes parameters by itself, not by an optimizer and not using
  // this copy, call data().note_write() after launches.
  Array low(Dtype dtype);
  // The copy; undefined until low() was asked for one. Its contents may be out of date.
  const Array& low_memory() const { return low_; }
  // Gives the copy another place, of its dtype and the parameter's shape, for arenas, whose updates
  // write it from then on. An undefined array gives the copy up.
  void bind_low(const Array& memory);
  // Whether the copy is that of the value as it was last written.
  bool is_low_current() const;
  // The caller has written the copy together with the value, on the current stream.
  void mark_low_current();

  // How the parameter lies over ranks; null: whole on each (Parameter::place).
  const std::shared_ptr<const Placement>& placement() const { return placement_; }
  void place(std::shared_ptr<const Placement> placement) { placement_ = std::move(placement); }

  // Observers -----------------------------------------------------------------------------------
  // In the order in which they came; links of those that are gone may be among them.
  using Observers = boost::container::small_vector<IntrusivePtr<detail::ObserverLink>, 1>;
  const Observers& observers() const { return observers_; }

 private:
  friend class BackwardObserver;
  enum class Content : uint8_t {
    kStale,    // of no meaning, the gradient is zero
    kZeros,    // zeros, no gradient has flowed
    kGradient  // a gradient
  };
  void allocate_gradient();
  void make_low(Dtype dtype);
  void follow_launches(Dtype dtype, bool updates_write);

  Array gradient_;
  Content content_ = Content::kStale;
  bool gradient_is_released_ = false;
  Array low_;
  const void* low_for_ = nullptr;       // the values with which updates write the copy
  std::optional<uint64_t> low_writes_;  // writes of the parameter that the copy has seen
  Stream low_stream_;                   // on which it was written
  uint64_t low_capture_ = 0;            // the last capture that used it
  Observers observers_;
  std::atomic<uint64_t> captured_in_{0};  // the last capture of use_in_graph
  std::shared_ptr<const Placement> placement_;
};

}  // namespace catena
