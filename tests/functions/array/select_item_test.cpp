// select_item: many classes and labels outside; all else is in the function oracle and the records.
#include "catena/functions/array/select_item.h"

#include "catena/testing_gtest.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class SelectItem : public OnDevice {
 protected:
  Array labels(const std::vector<int64_t>& values, Dtype dtype = Dtype::kInt32) const {
    return array(values).astype(dtype).to(device());
  }
};

// Chainer's NumPy path failed above 32 classes.
TEST_P(SelectItem, TakesManyClasses) {
  const Array x = draw({3, 1000}), t = labels({999, 0, 517}, Dtype::kInt64);
  const std::vector<double> all = x.to_vector<double>();
  EXPECT_EQ(F::select_item(x, t).data().to_vector<double>(),
            (std::vector<double>{all[999], all[1000], all[2517]}));
}

TEST_P(SelectItem, LabelsOutsideAreErrorsOnACpuAndNaNOnAGpu) {
  const Variable x(draw({3, 4}));
  const int64_t far = int64_t{1} << 40;
  for (const Array& t :
       {labels({1, 4, 2}), labels({1, -1, 2}), labels({1, far, 2}, Dtype::kInt64)}) {
    if (device().is_cpu()) {
      EXPECT_EQ(error_of<ValueError>([&] { F::select_item(x, t); }),
                message("SelectItem: t is ", t(1).astype(Dtype::kInt64).item<int64_t>(),
                        " at position 1, outside [0, 4)"));
      continue;
    }
    const Variable y = F::select_item(x, t);
    const std::vector<double> values = y.data().to_vector<double>();
    EXPECT_FALSE(std::isnan(values[0]) || std::isnan(values[2]));
    EXPECT_TRUE(std::isnan(values[1]));
    y.set_grad(ones_like(y.data()));
    y.backward();
    EXPECT_EQ(x.grad().to_vector<double>(),
              (std::vector<double>{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}));
  }
}

CATENA_ON_DEVICES(SelectItem);

}  // namespace
}  // namespace catena
