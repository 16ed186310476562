// Threads with small stacks compute.
#include <gtest/gtest.h>
#include <pthread.h>

#include "catena/array/creation.h"
#include "catena/array/linalg.h"
#include "catena/array/reduction.h"
#include "catena/array/sorting.h"

namespace catena {
namespace {

// What takes most memory on the stack: buffers of reductions, sorts and copies.
void compute() {
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    const Array a = ones({300, 2500}, dtype);
    const Array strided = a.transpose();
    EXPECT_EQ(amax(sum(a, 0)).item<double>(), 300);
    EXPECT_EQ(amax(sum(strided, 1)).item<double>(), 300);
    EXPECT_EQ(amax(argmax(a, 0)).item<int64_t>(), 0);
    EXPECT_EQ(amax(sort(a, 0)).item<double>(), 1);
    EXPECT_TRUE(strided.contiguous().is_contiguous());
    EXPECT_EQ(amax(dot(a, strided)).item<double>(), 2500);
  }
}

void* run(void*) {
  compute();
  return nullptr;
}

TEST(SmallStack, Of128KiBIsEnough) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more";
#endif
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, &run, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace
}  // namespace catena
