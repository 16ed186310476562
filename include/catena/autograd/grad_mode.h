// Switches of the calling thread that decide whether function applications are recorded.
#pragma once

namespace catena {

// True unless a NoBackprop scope is open.
bool is_recording();

// Function applications inside the scope record nothing, as if every input were volatile.
class NoBackprop {
 public:
  NoBackprop();
  ~NoBackprop();
  NoBackprop(const NoBackprop&) = delete;
  NoBackprop& operator=(const NoBackprop&) = delete;

 private:
  bool previous_;
};

// Opposite of NoBackprop, for code that must record inside one.
class ForceBackprop {
 public:
  ForceBackprop();
  ~ForceBackprop();
  ForceBackprop(const ForceBackprop&) = delete;
  ForceBackprop& operator=(const ForceBackprop&) = delete;

 private:
  bool previous_;
};

// Whether the calling thread computes something again for a backward pass (recompute). What a
// forward pass moves, such as running averages, stays then.
bool is_repeated_forward();

// Marks the forward computations inside the scope as repeated.
class RepeatedForward {
 public:
  RepeatedForward();
  ~RepeatedForward();
  RepeatedForward(const RepeatedForward&) = delete;
  RepeatedForward& operator=(const RepeatedForward&) = delete;

 private:
  bool previous_;
};

}  // namespace catena
