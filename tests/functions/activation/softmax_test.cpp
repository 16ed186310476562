#include "catena/functions/activation/softmax.h"

#include "functions/functions_test_util.h"

namespace catena {
namespace {

class Softmax : public OnDevice {};

TEST_P(Softmax, OfLargeNumbers) {
  const Array x = array({{1e4, 0.0}, {-1e4, -1e4}}).to(device());
  const std::vector<double> y = F::softmax(x).data().to_vector<double>();
  EXPECT_EQ(y, (std::vector<double>{1, 0, 0.5, 0.5}));
}

CATENA_ON_DEVICES(Softmax);

}  // namespace
}  // namespace catena
