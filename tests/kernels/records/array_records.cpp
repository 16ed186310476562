// Records of the slots of arrays.
#include "catena/array/creation.h"
#include "catena/array/fusion.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/array/sorting.h"
#include "catena/kernels/matmul.h"
#include "kernels/slot_record.h"

namespace catena {

CATENA_SLOT_RECORDS(array) {
  return {
      {"elementwise",
       [](Device d) -> Results {
         return {tanh(data(d, {3, 50})) * data(d, {50})};
       }},
      {"fused",
       [](Device d) -> Results {
         static auto chain = fuse([](auto x, auto y) { return x * y + exp(x); });
         return {chain(data(d, {40}), data(d, {40}, 2))};
       }},
      {"copy",
       [](Device d) -> Results {
         return {data(d, {6, 7}).T().copy()};
       }},
      {"fill",
       [](Device d) -> Results {
         return {full({5, 5}, 2.5, {Dtype::kFloat32, d})};
       }},
      {"arange",
       [](Device d) -> Results {
         return {arange(1, 9, 0.5, {Dtype::kFloat32, d})};
       }},
      {"concatenate",
       [](Device d) -> Results {
         return {concatenate({data(d, {3, 4}), data(d, {2, 4}, 2)}, 0)};
       }},
      {"reduce",
       [](Device d) -> Results {
         return {sum(data(d, {9, 40}), 1), amax(data(d, {9}))};
       }},
      {"arg_reduce",
       [](Device d) -> Results {
         return {argmax(data(d, {9, 40}), 1)};
       }},
      {"matmul",
       [](Device d) -> Results {
         const Array a = data(d, {33, 65}), b = data(d, {65, 17}, 2), wide = data(d, {257, 300}, 3);
         const Array narrow = b.astype(Dtype::kBFloat16), sums = data(d, {17, 17}, 4);
         const Array turned = narrow.T();
         kernels::matmul(d, {.a = &turned, .b = &narrow, .output = &sums, .accumulate = true});
         return {matmul(a, b), matmul(b.T(), a.T()), matmul(wide, wide.T()), sums};
       }},
      {"scan",
       [](Device d) -> Results {
         return {cumsum(data(d, {7, 50}), 1)};
       }},
      {"take",
       [](Device d) -> Results {
         return {take(data(d, {9, 4}), integers(d, {6}, 9), 0)};
       }},
      {"scatter_add",
       [](Device d) -> Results {
         const Array target = data(d, {9, 4});
         scatter_add(target, integers(d, {20}, 9), data(d, {20, 4}, 3));
         return {target};
       }},
      {"gather",
       [](Device d) -> Results {
         return {index_get(data(d, {9, 8}), {integers(d, {6}, 9), integers(d, {6}, 8)})};
       }},
      {"scatter",
       [](Device d) -> Results {
         const Array target = data(d, {9, 8});
         index_put(target, {arange(0, 9, 2, {Dtype::kInt64, d}), arange(5, {Dtype::kInt64, d})},
                   data(d, {5}, 2));
         return {target};
       }},
      {"nonzero_count",
       [](Device d) -> Results {
         return nonzero(integers(d, {6, 7}, 3));
       }},
      {"nonzero",
       [](Device d) -> Results {
         return nonzero(integers(d, {6, 7}, 3));
       }},
      {"sort",
       [](Device d) -> Results {
         return {sort(data(d, {7, 50})), argsort(data(d, {90}))};
       }},
      {"order_statistics",
       [](Device d) -> Results {
         return {median(data(d, {7, 50}), 1)};
       }},
      {"searchsorted",
       [](Device d) -> Results { return {searchsorted(sort(data(d, {30})), data(d, {50}, 2))}; }},
      {"run_starts", [](Device d) -> Results { return {unique(integers(d, {60}, 9)).values}; }},
      {"bincount", [](Device d) -> Results { return {bincount(integers(d, {80}, 9))}; }},
      {"histogram", [](Device d) -> Results { return {histogram(data(d, {500}), 10).first}; }},
      {"random",
       [](Device d) -> Results {
         return {RandomState(5).uniform({50}, -1, 3, {Dtype::kFloat32, d})};
       }},
      {"permutation", [](Device d) -> Results { return {RandomState(5).permutation(50, d)}; }},
  };
}

}  // namespace catena
