// Step count and learning rate of an optimizer, on the host and on devices.
#pragma once

#include <cstdint>
#include <vector>

#include "catena/array/array.h"

namespace catena::optimizers {

// A device has them where kernels or replays of graphs read and advance them, which the host does
// not hear of: its count is then that of the device.
class StepNumbers {
 public:
  // What kernels of an arena read and advance: views of [t, 0, learning rate], float64 on its
  // device; undefined where the host's numbers count.
  struct OfArena {
    Array block, counter, step, learning_rate;
    bool is_here() const { return block.defined(); }
  };

  StepNumbers() = default;
  // Of so many updates.
  explicit StepNumbers(int64_t t) : t_(t) {}
  // Another arena follows.
  void append(Device device, bool on_device, double rate);
  // On the device of an arena, unless they are there.
  void bring(size_t arena, Device device, double rate);

  // Of arenas, in the order in which they were added.
  size_t size() const { return arenas_.size(); }
  const OfArena& of(size_t arena) const { return arenas_[arena]; }
  // The count; waits for a device that has it.
  int64_t t() const;
  // The host's, which replays do not advance.
  int64_t on_host() const { return t_; }
  // The count, 0-d float64 on the device of an arena.
  Array on_device(size_t arena, Device device) const;
  void set(int64_t t);
  void set_rate(double rate);
  void count_on_host() { ++t_; }
  // Counts an update of an arena on its device; with a flag there that is not 0, none.
  void count(size_t arena, const Array* skip) const;
  // Whether a graph is captured on a device that has them.
  bool is_capturing() const;

 private:
  OfArena made(Device device, int64_t t, double rate) const;

  std::vector<OfArena> arenas_;
  int64_t t_ = 0;
};

}  // namespace catena::optimizers
