// The threads of one CUDA block as fibers of one thread of the host, so that kernels whose threads
// meet run in tests. Fibers change only where they meet, in an order drawn from a fixed seed: a
// kernel that leaves out a meeting computes something else, in every run.
#pragma once

#include <functional>
#include <vector>

namespace fibers {

// Which of the fibers that can go on does: any, or one of those that have met last, so that they
// overtake all others.
enum class Order { kAny, kLastMet };

// Runs `body(index)` in `count` fibers, at most 1024, and returns when all have ended. Throws
// std::logic_error when those that are left wait for others that have ended or wait elsewhere.
// `body` must not throw.
void run(unsigned count, const std::function<void(unsigned)>& body, Order order = Order::kAny);

// Where `expected` fibers of the running block wait for one another, again and again.
class Meeting {
 public:
  explicit Meeting(unsigned expected) : expected_(expected) {}
  void wait();

 private:
  unsigned expected_;
  std::vector<unsigned> waiting_;
};

}  // namespace fibers
