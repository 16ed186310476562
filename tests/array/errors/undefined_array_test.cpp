// An array without a value is refused by whatever it is passed to.
#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "array/devices.h"
#include "catena/array/creation.h"
#include "catena/array/host_view.h"
#include "catena/array/indexing.h"
#include "catena/array/io.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/array/sorting.h"

namespace catena {
namespace {

TEST(UndefinedArrayTest, FunctionsNameThemselves) {
  const Array n;
  const Array x = ones({2});
  expect_contains(error_of<ValueError>([&] { n.copy(); }), {"copy", "undefined"});
  expect_contains(error_of<ValueError>([&] { n.item(); }), {"item", "undefined"});
  expect_contains(error_of<ValueError>([&] { n.astype(dtype::int8); }), {"astype", "undefined"});
  expect_contains(error_of<ValueError>([&] { n.to("cpu:1"); }), {"to:", "undefined"});
  expect_contains(error_of<ValueError>([&] { n.fill(1); }), {"fill", "undefined"});
  expect_contains(error_of<ValueError>([&] { n.assign(x); }), {"assign", "undefined"});
  expect_contains(error_of<ValueError>([&] { x.assign(n); }), {"assign", "undefined"});
  expect_contains(error_of<ValueError>([&] { concatenate({x, n}); }), {"concatenate", "undefined"});
  expect_contains(error_of<ValueError>([&] { stack({n, n}); }), {"stack", "undefined"});
  expect_contains(error_of<ValueError>([&] { cumsum(n); }), {"undefined"});
  expect_contains(error_of<ValueError>([&] { zeros_like(n); }), {"zeros_like", "undefined"});
  expect_contains(error_of<ValueError>([&] { array(n); }), {"array", "undefined"});
  expect_contains(error_of<ValueError>([&] { save("undefined.npy", n); }),
                  {"save", "undefined.npy", "not defined"});
  for (const auto& call :
       std::vector<std::function<void()>>{[&] { x(n) += 1; }, [&] { x[n]; },
                                          [&] { x(0, n).fill(2); }, [&] { index_get(x, {n}); }}) {
    expect_contains(error_of<ValueError>(call), {"index", "undefined"});
  }
  expect_contains(error_of<ValueError>([&] { n + 1; }), {"add", "argument 1", "undefined"});
  expect_contains(error_of<ValueError>([&] { add(x, 1, n); }), {"add", "output", "undefined"});
}

// Whatever else is called comes to a property of the array.
TEST(UndefinedArrayTest, EveryUseIsAnError) {
  const Array n;
  const auto refused = [](auto call) {
    expect_contains(error_of<ValueError>(call), {"undefined array", "assign an array"});
  };
  refused([&] { n.shape(); });
  refused([&] { n.dtype(); });
  refused([&] { n.device(); });
  refused([&] { n.flags(); });
  refused([&] { n.base(); });
  refused([&] { n.is_writable(); });
  refused([&] { n.raw_data(); });
  refused([&] { n(0); });
  refused([&] { n[Slice()]; });
  refused([&] { n.reshape(2); });
  refused([&] { n.note_write(); });
  refused([&] { sum(n); });
  refused([&] { n.max(); });
  refused([&] { sort(n); });
  refused([&] { matmul(n, n); });
  refused([&] { take(n, 0); });
  refused([&] { host_view<double, 1>(n); });
  Array moved = ones({2});
  const Array taken = std::move(moved);
  refused([&] { moved.size(); });  // NOLINT: a handle that was moved from is undefined
}

}  // namespace
}  // namespace catena
