// An axis out of range is an IndexError in every function that takes one, as it is of arrays.
#include <functional>

#include "catena/functions/activation/elementwise.h"
#include "catena/functions/activation/maxout.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/array.h"
#include "catena/functions/loss/cosine_similarity.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

struct Function {
  const char* text;
  std::function<void(const Variable& x, int64_t axis)> call;
};
#define CATENA_FUNCTION(...)                                                   \
  {                                                                            \
#__VA_ARGS__, [](const Variable& x, int64_t axis) { (void)(__VA_ARGS__); } \
  }

const Function kFunctions[] = {
    CATENA_FUNCTION(F::softmax(x, axis)),
    CATENA_FUNCTION(F::log_softmax(x, axis)),
    CATENA_FUNCTION(F::maxout(x, 1, axis)),
    CATENA_FUNCTION(F::crelu(x, axis)),
    CATENA_FUNCTION(F::concat({x, x}, axis)),
    CATENA_FUNCTION(F::stack({x, x}, axis)),
    CATENA_FUNCTION(F::split_axis(x, 1, axis)),
    CATENA_FUNCTION(F::split_axis(x, {1}, axis)),
    CATENA_FUNCTION(F::separate(x, axis)),
    CATENA_FUNCTION(F::take(x, array({0}), axis)),
    CATENA_FUNCTION(F::take_along_axis(x, zeros(x.shape(), dtype::int64), axis)),
    CATENA_FUNCTION(F::repeat(x, 2, axis)),
    CATENA_FUNCTION(F::flip(x, axis)),
    CATENA_FUNCTION(F::roll(x, 1, axis)),
    CATENA_FUNCTION(F::swapaxes(x, axis, axis)),
    CATENA_FUNCTION(F::moveaxis(x, axis, 0)),
    CATENA_FUNCTION(F::moveaxis(x, 0, axis)),
    CATENA_FUNCTION(F::rollaxis(x, axis)),
    CATENA_FUNCTION(F::sort(x, axis)),
    CATENA_FUNCTION(F::expand_dims(x, axis)),
    CATENA_FUNCTION(F::squeeze(x, axis)),
    CATENA_FUNCTION(F::sum(x, axis)),
    CATENA_FUNCTION(F::mean(x, axis)),
    CATENA_FUNCTION(F::average(x, axis)),
    CATENA_FUNCTION(F::max(x, axis)),
    CATENA_FUNCTION(F::min(x, axis)),
    CATENA_FUNCTION(F::prod(x, axis)),
    CATENA_FUNCTION(F::var(x, axis)),
    CATENA_FUNCTION(F::std(x, axis)),
    CATENA_FUNCTION(F::norm(x, axis)),
    CATENA_FUNCTION(F::logsumexp(x, axis)),
    CATENA_FUNCTION(F::cumsum(x, axis)),
    CATENA_FUNCTION(F::cumprod(x, axis)),
    CATENA_FUNCTION(F::diff(x, 1, axis)),
    CATENA_FUNCTION(F::cosine_similarity(x, x, axis)),
};
#undef CATENA_FUNCTION

TEST(AxesOutOfRange, AreIndexErrors) {
  for (const Function& function : kFunctions) {
    for (const int64_t axis : {5, -6}) {
      for (const Shape& shape : {Shape{2, 3}, Shape{}}) {
        SCOPED_TRACE(message(function.text, " of shape ", shape, " with axis ", axis));
        try {
          function.call(Variable(ones(shape)), axis);
          ADD_FAILURE() << "no error";
        } catch (const IndexError&) {
        } catch (const std::exception& e) {
          ADD_FAILURE() << "another error: " << e.what();
        }
      }
    }
  }
  const Variable x(ones({2, 3}));
  EXPECT_THROW(F::transpose(x, {0, 5}), IndexError);
  EXPECT_THROW(F::rot90(x, 1, {0, 5}), IndexError);
  EXPECT_THROW(F::diagonal(x, 0, -6, 1), IndexError);
  EXPECT_THROW(F::trace(x, 0, 0, 5), IndexError);
  EXPECT_THROW(F::tensordot(x, x, {5}, {0}), IndexError);
}

}  // namespace
}  // namespace catena
