// Window functions against their formulas.
#include <cmath>
#include <cstdint>

#include "array/devices.h"
#include "catena/array/logic.h"
#include "catena/array/windows.h"
#include "error_text.h"

namespace catena {
namespace {

using namespace test;
using ::error_of;

class WindowFunctions : public OnDevice {
 protected:
  void expect_close(const Array& got, const V& expected) {
    EXPECT_TRUE(allclose(got.ravel().to(cpu()), array(expected, cpu()), 1e-12, 1e-14)) << got;
  }
};

TEST_P(WindowFunctions, Windows) {
  const DeviceScope scope(GetParam());
  expect_close(bartlett(5), {0, 0.5, 1, 0.5, 0});
  expect_close(hanning(5), {0, 0.5, 1, 0.5, 0});
  expect_close(hamming(3), {0.08, 1, 0.08});
  EXPECT_TRUE(allclose(blackman(5), on(array({0, 0.34, 1, 0.34, 0})), 1e-12, 1e-15));
  EXPECT_EQ(hanning(4, Dtype::kFloat32).dtype(), Dtype::kFloat32);
  for (const auto& window : {bartlett, hanning, hamming, blackman}) {
    EXPECT_EQ(values(window(1, {})), V{1});
    EXPECT_EQ(window(0, {}).size(), 0);
  }
}

CATENA_ON_DEVICES(WindowFunctions);

}  // namespace
}  // namespace catena
