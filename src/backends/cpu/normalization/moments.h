// Mean and squared deviations of numbers, and how those of parts are joined.
#pragma once

namespace catena::host {

// Statistics of n numbers, merged with Chan's formula (see loops/normalization.cpp).
struct Moments {
  double n = 0, mean = 0, rest = 0, squares = 0;  // rest: what rounding takes off the mean

  void merge(const Moments& other) {
    if (n == 0) {
      *this = other;
      return;
    }
    const double total = n + other.n, delta = (other.mean - mean) + (other.rest - rest);
    squares += other.squares + delta * delta * (n * other.n / total);
    move(rest + delta * (other.n / total));
    n = total;
  }

 private:
  // The mean becomes mean + step (D. Knuth's sum of two numbers), which replaces the old rest.
  void move(double step) {
    const double sum = mean + step, added = sum - mean;
    rest = (mean - (sum - added)) + (step - added);
    mean = sum;
  }
};

// What the mean of a channel lacks where it is stored as a C.
template <class C>
C rest_of(const Moments& m) {
  return C((m.mean - double(C(m.mean))) + m.rest);
}

}  // namespace catena::host
