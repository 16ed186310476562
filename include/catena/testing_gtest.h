// Joins testing.h to GoogleTest: markers of tests that need GPUs (testing_markers.h), and trials
// that use EXPECT_ and ASSERT_. For programs that have GoogleTest; nothing else of catena includes
// this header.
#pragma once

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "catena/testing.h"
#include "catena/testing_markers.h"

namespace catena::testing {

// A trial whose failed expectations, in this thread, count as its failure in place of the test's:
//   retry(3, expectations([] { EXPECT_LT(error_of_a_random_run(), 0.1); }));
template <class Body>
auto expectations(Body body) {
  return [body = std::move(body)]() mutable {
    ::testing::TestPartResultArray results;
    {
      const ::testing::ScopedFakeTestPartResultReporter reporter(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
      body();
    }
    std::string failures;
    for (int i = 0; i < results.size(); ++i) {
      const ::testing::TestPartResult& part = results.GetTestPartResult(i);
      if (part.failed()) failures.append(failures.empty() ? "" : "\n").append(part.message());
    }
    if (!failures.empty()) throw ValueError(failures);
  };
}

}  // namespace catena::testing
