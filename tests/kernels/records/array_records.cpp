// Records of the slots of arrays.
#define CATENA_FN inline
#include "device/philox.h"

#include <algorithm>
#include <numeric>

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
#include "catena/kernels/random.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

Plain transposed(const Plain& x) {
  const int64_t rows = x.shape[0], columns = x.shape[1];
  return plain({columns, rows}, [&](int64_t i) { return x(i % rows, i / rows); });
}
Plain product(const Plain& a, const Plain& b) {
  const int64_t columns = b.shape[1];
  return plain({a.shape[0], columns}, [&](int64_t at) {
    double total = 0;
    for (int64_t k = 0; k < a.shape[1]; ++k) total += a(at / columns, k) * b(k, at % columns);
    return total;
  });
}

// Each row of a matrix, as f of its numbers.
template <class F>
Plain of_rows(const Plain& x, F f) {
  return plain({x.shape[0]}, [&](int64_t row) {
    const auto begin = x.values.begin() + row * x.shape[1];
    return f(std::vector<double>(begin, begin + x.shape[1]));
  });
}
std::vector<double> sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}
// Positions in the order of their numbers.
std::vector<double> order_of(const std::vector<double>& numbers) {
  std::vector<double> order(numbers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](double a, double b) { return numbers[size_t(a)] < numbers[size_t(b)]; });
  return order;
}

SlotRecordList elementwise_records() {
  return {
      {"elementwise",
       [](Device d) -> Results {
         return {tanh(data(d, {3, 50})) * data(d, {50})};
       },
       []() -> Plains {
         const Plain x = plain_data({3, 50}), y = plain_data({50});
         return {plain(x.shape, [&](int64_t i) { return std::tanh(x(i)) * y(i % 50); })};
       }},
      {"fused",
       [](Device d) -> Results {
         static auto chain = fuse([](auto x, auto y) { return x * y + exp(x); });
         return {chain(data(d, {40}), data(d, {40}, 2))};
       },
       []() -> Plains {
         const Plain x = plain_data({40}), y = plain_data({40}, 2);
         return {plain(x.shape, [&](int64_t i) { return x(i) * y(i) + std::exp(x(i)); })};
       }},
      {"copy",
       [](Device d) -> Results {
         return {data(d, {6, 7}).T().copy()};
       },
       []() -> Plains {
         return {transposed(plain_data({6, 7}))};
       }},
      {"fill",
       [](Device d) -> Results {
         return {full({5, 5}, 2.5, {Dtype::kFloat32, d})};
       },
       []() -> Plains {
         return {plain({5, 5}, [](int64_t) { return 2.5; })};
       }},
      {"arange",
       [](Device d) -> Results {
         return {arange(1, 9, 0.5, {Dtype::kFloat32, d})};
       },
       []() -> Plains { return {plain({16}, [](int64_t i) { return 1 + 0.5 * double(i); })}; }},
      {"concatenate",
       [](Device d) -> Results {
         return {concatenate({data(d, {3, 4}), data(d, {2, 4}, 2)}, 0)};
       },
       []() -> Plains {
         const Plain x = plain_data({3, 4}), y = plain_data({2, 4}, 2);
         return {plain({5, 4}, [&](int64_t i) { return i < 12 ? x(i) : y(i - 12); })};
       }},
  };
}

SlotRecordList reduction_records() {
  return {
      {"reduce",
       [](Device d) -> Results {
         return {sum(data(d, {9, 40}), 1), amax(data(d, {9}))};
       },
       []() -> Plains {
         const auto total = [](const std::vector<double>& row) {
           return std::accumulate(row.begin(), row.end(), 0.0);
         };
         return {of_rows(plain_data({9, 40}), total),
                 plain({}, [](int64_t) { return std::ranges::max(plain_data({9}).values); })};
       }},
      {"arg_reduce",
       [](Device d) -> Results {
         return {argmax(data(d, {9, 40}), 1)};
       },
       []() -> Plains {
         return {of_rows(plain_data({9, 40}), [](const std::vector<double>& row) {
           return double(std::ranges::max_element(row) - row.begin());
         })};
       }},
      {"matmul",
       [](Device d) -> Results {
         const Array a = data(d, {33, 65}), b = data(d, {65, 17}, 2), wide = data(d, {257, 300}, 3);
         return {matmul(a, b), matmul(b.T(), a.T()), matmul(wide, wide.T())};
       },
       []() -> Plains {
         const Plain ab = product(plain_data({33, 65}), plain_data({65, 17}, 2)),
                     wide = plain_data({257, 300}, 3);
         return {ab, transposed(ab), product(wide, transposed(wide))};
       }},
      {"scan",
       [](Device d) -> Results {
         return {cumsum(data(d, {7, 50}), 1)};
       },
       []() -> Plains {
         Plain x = plain_data({7, 50});
         for (int64_t i = 0; i < x.size(); ++i)
           if (i % 50 > 0) x.values[size_t(i)] += x(i - 1);
         return {x};
       }},
  };
}

SlotRecordList indexing_records() {
  return {
      {"take",
       [](Device d) -> Results {
         return {take(data(d, {9, 4}), integers(d, {6}, 9), 0)};
       },
       []() -> Plains {
         const Plain x = plain_data({9, 4}), rows = plain_integers({6}, 9);
         return {plain({6, 4}, [&](int64_t i) { return x(int64_t(rows(i / 4)), i % 4); })};
       }},
      {"scatter_add",
       [](Device d) -> Results {
         const Array target = data(d, {9, 4});
         scatter_add(target, integers(d, {20}, 9), data(d, {20, 4}, 3));
         return {target};
       },
       []() -> Plains {
         Plain target = plain_data({9, 4});
         const Plain rows = plain_integers({20}, 9), added = plain_data({20, 4}, 3);
         for (int64_t i = 0; i < added.size(); ++i)
           target.values[size_t(rows(i / 4)) * 4 + size_t(i % 4)] += added(i);
         return {target};
       }},
      {"gather",
       [](Device d) -> Results {
         return {index_get(data(d, {9, 8}), {integers(d, {6}, 9), integers(d, {6}, 8)})};
       },
       []() -> Plains {
         const Plain x = plain_data({9, 8}), i = plain_integers({6}, 9), j = plain_integers({6}, 8);
         return {plain({6}, [&](int64_t k) { return x(int64_t(i(k)), int64_t(j(k))); })};
       }},
      {"scatter",
       [](Device d) -> Results {
         const Array target = data(d, {9, 8});
         index_put(target, {arange(0, 9, 2, {Dtype::kInt64, d}), arange(5, {Dtype::kInt64, d})},
                   data(d, {5}, 2));
         return {target};
       },
       []() -> Plains {
         Plain target = plain_data({9, 8});
         const Plain given = plain_data({5}, 2);
         for (int64_t k = 0; k < 5; ++k) target.values[size_t(2 * k * 8 + k)] = given(k);
         return {target};
       }},
      {"nonzero_count",
       [](Device d) -> Results {
         return nonzero(integers(d, {6, 7}, 3));
       },
       []() -> Plains {
         std::vector<double> rows, columns;
         const Plain x = plain_integers({6, 7}, 3);
         for (int64_t i = 0; i < x.size(); ++i) {
           if (x(i) == 0) continue;
           rows.push_back(double(i / 7));
           columns.push_back(double(i % 7));
         }
         return {{{int64_t(rows.size())}, rows}, {{int64_t(rows.size())}, columns}};
       }},
  };
}

SlotRecordList ordering_records() {
  return {
      {"sort",
       [](Device d) -> Results {
         return {sort(data(d, {7, 50})), argsort(data(d, {90}))};
       },
       []() -> Plains {
         Plain x = plain_data({7, 50});
         for (auto row = x.values.begin(); row != x.values.end(); row += 50)
           std::sort(row, row + 50);
         return {x, {{90}, order_of(plain_data({90}).values)}};
       }},
      {"order_statistics",
       [](Device d) -> Results {
         return {median(data(d, {7, 50}), 1)};
       },
       []() -> Plains {
         return {of_rows(plain_data({7, 50}), [](const std::vector<double>& row) {
           const std::vector<double> in_order = sorted(row);
           return (in_order[24] + in_order[25]) / 2;
         })};
       }},
      {"searchsorted",
       [](Device d) -> Results { return {searchsorted(sort(data(d, {30})), data(d, {50}, 2))}; },
       []() -> Plains {
         const std::vector<double> x = sorted(plain_data({30}).values);
         const Plain wanted = plain_data({50}, 2);
         return {plain({50}, [&](int64_t i) {
           return double(
               std::count_if(x.begin(), x.end(), [&](double v) { return v < wanted(i); }));
         })};
       }},
      {"run_starts", [](Device d) -> Results { return {unique(integers(d, {60}, 9)).values}; },
       []() -> Plains {
         std::vector<double> values = sorted(plain_integers({60}, 9).values);
         values.erase(std::unique(values.begin(), values.end()), values.end());
         return {{{int64_t(values.size())}, values}};
       }},
      {"bincount", [](Device d) -> Results { return {bincount(integers(d, {80}, 9))}; },
       []() -> Plains {
         const std::vector<double> x = plain_integers({80}, 9).values;
         return {plain({int64_t(std::ranges::max(x)) + 1},
                       [&](int64_t i) { return double(std::ranges::count(x, double(i))); })};
       }},
      {"histogram", [](Device d) -> Results { return {histogram(data(d, {500}), 10).first}; },
       []() -> Plains {
         const std::vector<double> x = plain_data({500}).values;
         const double low = std::ranges::min(x), high = std::ranges::max(x);
         Plain counts = plain({10}, [](int64_t) { return 0.0; });
         for (const double v : x)
           ++counts.values[std::min<size_t>(9, size_t((v - low) / (high - low) * 10))];
         return {counts};
       }},
  };
}

// The generator is held against published numbers in tests/array/random_test.cpp.
SlotRecordList random_records() {
  return {
      {"random",
       [](Device d) -> Results {
         return {RandomState(5).uniform({50}, -1, 3, {Dtype::kFloat32, d})};
       },
       []() -> Plains {
         const RandomBits bits = RandomState(5).reserve(13, cpu());
         return {plain({50}, [&](int64_t i) {
           const auto block = philox::block(bits.seed, bits.offset + uint64_t(i / 4));
           return -1 + 4 * std::ldexp(double(block.word[i % 4] >> 8), -24);
         })};
       }},
      {"permutation", [](Device d) -> Results { return {RandomState(5).permutation(50, d)}; },
       []() -> Plains {
         const RandomBits bits = RandomState(5).reserve(50, cpu());
         std::vector<std::pair<uint64_t, int64_t>> keys;
         for (int64_t i = 0; i < 50; ++i) {
           const auto block = philox::block(bits.seed, bits.offset + uint64_t(i));
           keys.emplace_back(block.word[0] | uint64_t(block.word[1]) << 32, i);
         }
         std::sort(keys.begin(), keys.end());
         return {plain({50}, [&](int64_t i) { return double(keys[size_t(i)].second); })};
       }},
  };
}

}  // namespace

CATENA_SLOT_RECORDS(array) {
  SlotRecordList all;
  for (const auto family : {elementwise_records, reduction_records, indexing_records,
                            ordering_records, random_records}) {
    for (const SlotRecord& record : family()) {
      all.push_back(record);
      if (std::string(record.slot) == "nonzero_count")
        all.push_back({"nonzero", record.run, record.reference});
    }
  }
  return all;
}

}  // namespace catena
