// A child of fork() computes on the CPU whatever other threads of its parent do.
#include <gtest/gtest.h>

#include <atomic>
#include <sstream>
#include <thread>
#include <vector>

#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/kernels/slot.h"
#include "forked_child.h"

namespace catena {
namespace {

namespace F = functions;

// Large blocks come from a cache that all threads share.
bool allocate() {
  const Array a = ones({200000});
  return catena::sum(a + a).item<double>() == 400000;
}

// So much that oneDNN's plug-in, where there is one, uses several threads of OpenMP.
bool convolve() {
  F::Convolution2D layer(16, 32, 3);
  Variable loss = F::sum(layer(Variable(ones({4, 16, 32, 32}, Dtype::kFloat32))));
  loss.backward();
  return layer.W.grad().defined();
}

// Parameters, their paths and random numbers.
bool train() {
  F::Linear layer(10, 10);
  const Variable y = layer(Variable(ones({4, 10}, Dtype::kFloat32)));
  Variable loss = F::sum(y);
  loss.backward();
  return layer.W.grad().defined();
}

bool print_and_draw() {
  std::ostringstream text;
  text << random::normal({3});
  return !text.str().empty();
}

bool choose_providers() {
  const ProviderScope scope("onednn:off");
  return allocate();
}

TEST(ForkedChildren, ComputeWhileThreadsOfTheParentDo) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer ends children that start threads";
#endif
  if (test::under_address_sanitizer()) GTEST_SKIP() << "its allocator hangs in children of fork()";
  const std::vector<bool (*)()> kinds = {allocate, train, print_and_draw, convolve,
                                         choose_providers};
  for (const auto kind : kinds) ASSERT_TRUE(kind());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      for (size_t next = size_t(i); !stop; ++next) kinds[next / 8 % kinds.size()]();
    });
  bool good = true;
  for (size_t round = 0; good && round < 120; ++round) {
    const auto kind = kinds[round % kinds.size()];
    good = test::forked_child_succeeds([&] { return kind() && train() && allocate(); });
    EXPECT_TRUE(good) << "child " << round;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace catena
