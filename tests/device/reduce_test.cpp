// Reductions: the library's plans, the kernel texts run by the host, against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cuda/jit/reduce_plan.h"
#include "catena/array/creation.h"
#include "device/reduce_case.h"

namespace catena::jit {
namespace {

struct Case {
  Shape shape;
  uint32_t axes;
  int layout;  // 0 contiguous, 1 transposed, 2 every second element, 3 misaligned, 4 broadcast
  int multiprocessors;  // many: splits
};

Array source(const Case& c, Dtype d) {
  const auto make = [&](const Shape& shape) {
    std::vector<float> values(size_t(element_count(shape)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = float(int(i * 7 % 23) - 11);
    return array(std::span<const float>(values), shape).astype(d);
  };
  if (c.layout == 1) return make(Shape(c.shape.rbegin(), c.shape.rend())).T();
  if (c.layout == 2) {
    Shape twice = c.shape;
    twice.back() *= 2;
    return make(twice)(ellipsis, Slice(0, none, 2));
  }
  if (c.layout == 3) {
    Shape wider = c.shape;
    wider.back() += 3;
    return make(wider)(ellipsis, Slice(1, -2));
  }
  if (c.layout == 4) {
    Shape row = c.shape;
    row.front() = 1;
    return make(row).broadcast_to(c.shape);
  }
  return make(c.shape);
}

Shape result_shape(const Case& c) {
  Shape shape = c.shape;
  for (int d = 0; d < shape.ndim(); ++d) {
    if ((c.axes >> d) & 1) shape[size_t(d)] = 1;
  }
  return shape;
}

// Calls f(element address, place of its result) for every element.
template <class F>
void walk(const Array& a, const Array& out, F&& f) {
  std::vector<int64_t> at(size_t(a.ndim()), 0);
  for (int64_t i = 0; i < a.size(); ++i) {
    const char* p = static_cast<const char*>(a.raw_data());
    int64_t place = 0;
    for (int d = 0; d < a.ndim(); ++d) {
      p += at[size_t(d)] * a.strides()[size_t(d)];
      place = place * out.shape()[size_t(d)] + (out.shape()[size_t(d)] == 1 ? 0 : at[size_t(d)]);
    }
    f(p, place, at);
    for (int d = a.ndim() - 1; d >= 0 && ++at[size_t(d)] == a.shape()[size_t(d)]; --d)
      at[size_t(d)] = 0;
  }
}

// Runs a plan's kernels as the library launches them.
void launch(ReducePlan plan, const Array& a, const Array& out, emulated::LaunchReduce kernels) {
  ReduceArgs& args = plan.args;
  args.input = a.raw_data();
  args.output = out.raw_data();
  std::vector<char> workspace(plan.partial_bytes);
  args.partial = workspace.data();
  kernels(plan.kernel, plan.blocks, unsigned(args.splits), &args);
  if (args.splits == 1) return;
  args.group_shift = plan.finish_shift;
  kernels(kReduceFinish, plan.finish_blocks, 1, &args);
}

ReducePlan run(const Case& c, const Array& a, const Array& out, int accumulator,
               emulated::LaunchReduce kernels, double divisor = 1, bool accumulate = false) {
  ReducePlan plan =
      plan_reduce({a.shape(), a.strides(), out.strides(), c.axes, int(a.itemsize()), accumulator,
                   reinterpret_cast<uintptr_t>(a.raw_data()), c.multiprocessors});
  EXPECT_TRUE(plan.fits);
  plan.args.divisor = divisor;
  plan.args.accumulate = accumulate;
  launch(plan, a, out, kernels);
  return plan;
}

// Every `step`-th case: a block of 256 threads with barriers takes the host a while.
std::vector<Case> cases(size_t step) {
  std::vector<Case> list;
  const std::pair<Shape, std::vector<uint32_t>> shapes[] = {{{1}, {1}},
                                                            {{37}, {1}},
                                                            {{5000}, {1}},
                                                            {{20000}, {1}},
                                                            {{64, 100}, {1, 2, 3}},
                                                            {{300, 10}, {1, 2}},
                                                            {{3, 1000}, {1, 2}},
                                                            {{1000, 3}, {1, 2, 3}},
                                                            {{2, 500, 40}, {1, 2, 4, 5, 7}},
                                                            {{7, 6, 5, 4}, {5, 10, 3, 9, 15}},
                                                            {{4, 0, 3}, {2}}};
  for (const auto& [shape, axes] : shapes) {
    for (const uint32_t mask : axes) {
      for (int layout = 0; layout < 5; ++layout) {
        if (layout == 4 && shape.front() == 1) continue;
        for (const int multiprocessors : {1, 4})
          list.push_back({shape, mask, layout, multiprocessors});
      }
    }
  }
  std::vector<Case> chosen;
  for (size_t i = 0; i < list.size(); i += step) chosen.push_back(list[i]);
  return chosen;
}

std::string text(const Case& c) {
  return to_string(c.shape) + " axes " + std::to_string(c.axes) + " layout " +
         std::to_string(c.layout) + " multiprocessors " + std::to_string(c.multiprocessors);
}

TEST(ReduceKernels, SumsInEveryLayout) {
  int kernels_seen = 0, splits_seen = 0;
  for (const Case& c : cases(3)) {
    const Array a = source(c, dtype::float32), out = zeros(result_shape(c), dtype::float32);
    std::vector<double> expected(size_t(out.size()), 0);
    walk(a, out, [&](const char* p, int64_t place, const auto&) {
      expected[size_t(place)] += *reinterpret_cast<const float*>(p);
    });
    const ReducePlan plan = run(c, a, out, 4, emulated::sum_float32);
    kernels_seen |= 1 << plan.kernel;
    splits_seen += plan.args.splits > 1;
    // Small integers: exact in any order.
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(out.data<float>()[i], float(expected[i])) << text(c) << " result " << i;
  }
  EXPECT_EQ(kernels_seen, 1 << kReduceRows | 1 << kReduceColumns | 1 << kReduceShort);
  EXPECT_GT(splits_seen, 5);
}

TEST(ReduceKernels, NarrowItemsUseWideVectors) {
  for (const Case& c : cases(7)) {
    const Array a = source(c, dtype::int8), out = zeros(result_shape(c), dtype::int64);
    std::vector<int64_t> expected(size_t(out.size()), 0);
    walk(a, out, [&](const char* p, int64_t place, const auto&) {
      expected[size_t(place)] += *reinterpret_cast<const int8_t*>(p);
    });
    run(c, a, out, 8, emulated::sum_int8);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(out.data<int64_t>()[i], expected[i]) << text(c) << " result " << i;
  }
}

TEST(ReduceKernels, Maximum) {
  for (const Case& c : cases(11)) {
    const Array a = source(c, dtype::int16), out = zeros(result_shape(c), dtype::int16);
    std::vector<int16_t> expected(size_t(out.size()), -32768);
    walk(a, out, [&](const char* p, int64_t place, const auto&) {
      expected[size_t(place)] =
          std::max(expected[size_t(place)], *reinterpret_cast<const int16_t*>(p));
    });
    run(c, a, out, 2, emulated::max_int16);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(out.data<int16_t>()[i], expected[i]) << text(c) << " result " << i;
  }
}

TEST(ReduceKernels, ScaleAndAccumulate) {
  for (const auto& [shape, axes] : std::vector<std::pair<Shape, uint32_t>>{
           {{200, 96}, 1}, {{200, 96}, 2}, {{200, 96}, 3}, {{500, 3, 32}, 2}, {{20, 30, 32}, 5}}) {
    for (const int multiprocessors : {1, 64}) {
      const Case c{shape, axes, 0, multiprocessors};
      const Array a = source(c, dtype::float32), plain = zeros(result_shape(c), dtype::float32),
                  out = full(result_shape(c), 3.0, dtype::float32);
      run(c, a, plain, 4, emulated::sum_float32);
      run(c, a, out, 4, emulated::sum_float32, 3, true);
      for (int64_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(out.data<float>()[i], 3 + plain.data<float>()[i] / 3);
    }
  }
}

TEST(ReducePlan, SmallReductionsAreOneLaunch) {
  const Shape shape{100, 1000};
  const ReducePlan plan =
      plan_reduce({shape, contiguous_strides(shape, 4), Strides{4000, 4}, 1, 4, 4, 0, 132});
  EXPECT_EQ(plan.kernel, kReduceColumns);
  EXPECT_EQ(plan.args.splits, 1);
  EXPECT_EQ(plan.partial_bytes, 0u);
  EXPECT_GE(plan.blocks, 30u);
}

TEST(ReducePlan, VectorsNeedAlignedMemoryAndWholeRows) {
  const auto vectors = [](int64_t columns, uintptr_t address) {
    return plan_reduce({{100, columns}, {256, 4}, {0, 4}, 1, 4, 4, address, 132}).args.vectors;
  };
  EXPECT_TRUE(vectors(48, 0));
  EXPECT_FALSE(vectors(48, 4));
  EXPECT_FALSE(vectors(45, 0));
  for (const int64_t columns : {48, 45})  // of which all are added up
    EXPECT_EQ(plan_reduce({{100, columns}, {256, 4}, {0, 0}, 3, 4, 4, 0, 132}).args.vectors,
              columns == 48);
}

TEST(ReducePlan, PositionsOfASplitHave32Bits) {
  const auto fits = [](int64_t size) {
    return plan_reduce({{size}, {4}, {0}, 1, 4, 16, 0, 1, true}).fits;
  };
  EXPECT_TRUE(fits(int64_t{1} << 30));
  EXPECT_FALSE(fits(int64_t{1} << 40));
}

TEST(ReducePlan, LargeReductionsFillTheDevice) {
  for (const uint32_t axes : {1u, 2u, 3u}) {
    const Shape shape{16384, 16384};
    const ReducePlan plan =
        plan_reduce({shape, contiguous_strides(shape, 4),
                     Strides{axes & 1 ? 0 : 4, axes & 2 ? 0 : 4}, axes, 4, 4, 0, 132});
    // Splits of columns, or of one result, all run at once: no block waits for a second wave.
    const uint64_t blocks = plan.blocks * uint64_t(plan.args.splits), at_once = 132 * 4;
    if (axes == 2)
      EXPECT_GE(blocks, 2 * at_once);
    else
      EXPECT_EQ(blocks, at_once / plan.blocks * plan.blocks) << axes;
    EXPECT_TRUE(plan.args.vectors) << axes;
  }
}

TEST(ReducePlan, AwkwardAxesAreReadInVectors) {
  const auto plan = [](const Shape& shape, uint32_t axes) {
    Strides results = contiguous_strides(shape, 4);
    for (int d = 0; d < shape.ndim(); ++d) {
      if ((axes >> d) & 1) results[size_t(d)] = 0;
    }
    return plan_reduce({shape, contiguous_strides(shape, 4), results, axes, 4, 4, 0, 132});
  };
  EXPECT_EQ(plan({1 << 20, 3, 64}, 2).kernel, kReduceShort);
  for (const uint32_t axes : {1u, 2u, 4u, 3u, 5u, 6u, 7u}) {
    EXPECT_TRUE(plan({512, 1024, 1024}, axes).args.vectors) << axes;
    EXPECT_TRUE(plan({1 << 20, 3, 64}, axes).args.vectors) << axes;
  }
}

TEST(ArgReduceKernels, FirstExtremeAndNan) {
  for (Case c : {Case{{500}, 1, 0, 1}, Case{{20000}, 1, 0, 8}, Case{{30, 50}, 1, 0, 1},
                 Case{{30, 50}, 2, 1, 1}, Case{{40, 3, 20}, 2, 0, 4}, Case{{3000, 40}, 1, 0, 16},
                 Case{{2, 3000}, 2, 3, 4}, Case{{30, 52}, 2, 0, 1}, Case{{2, 3001}, 2, 0, 4},
                 Case{{500, 12}, 1, 0, 2}, Case{{300, 4, 8}, 1, 0, 1}, Case{{500, 3, 8}, 2, 0, 1},
                 Case{{500, 3, 9}, 2, 0, 1}, Case{{5, 70, 40}, 2, 0, 1}}) {
    for (const bool maximum : {true, false}) {
      for (const bool with_nan : {false, true}) {
        const Array a = source(c, dtype::float32).copy(),
                    out = zeros(result_shape(c), dtype::int64);
        if (with_nan) {
          a.data<float>()[a.size() / 2] = std::numeric_limits<float>::quiet_NaN();
          a.data<float>()[a.size() - 1] = std::numeric_limits<float>::quiet_NaN();
        }
        const int axis = c.axes == 1 ? 0 : 1;
        std::vector<std::pair<float, int64_t>> best(size_t(out.size()), {0, -1});
        walk(a, out, [&](const char* p, int64_t place, const std::vector<int64_t>& at) {
          const float x = *reinterpret_cast<const float*>(p);
          auto& [value, position] = best[size_t(place)];
          const bool first = position < 0;
          if (first ||
              (!std::isnan(value) && (std::isnan(x) || (maximum ? x > value : x < value)))) {
            value = x;
            position = at[size_t(axis)];
          }
        });
        ReducePlan plan =
            plan_reduce({a.shape(), a.strides(), out.strides(), c.axes, 4, 16,
                         reinterpret_cast<uintptr_t>(a.raw_data()), c.multiprocessors, true});
        plan.args.maximum = maximum;
        launch(plan, a, out, emulated::arg_float32);
        for (size_t i = 0; i < best.size(); ++i)
          ASSERT_EQ(out.data<int64_t>()[i], best[i].second) << text(c) << " result " << i;
      }
    }
  }
}

}  // namespace
}  // namespace catena::jit
