// Arrays that do not fit together: each message says what was called, what came in, and what would
// have been right.
#include "catena/core/error.h"

#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "catena/array/casting.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"

namespace catena {
namespace {

Array floats(const Shape& shape, Device device = cpu(0)) {
  return zeros(shape, {Dtype::kFloat32, device});
}
Array ints(const Shape& shape) { return zeros(shape, {Dtype::kInt32, cpu(0)}); }

struct Mistake {
  const char* name;
  std::function<void()> make;
  std::string message;
};
void PrintTo(const Mistake& mistake, std::ostream* os) { *os << mistake.name; }

template <class E>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

class MistakeTest : public ::testing::TestWithParam<Mistake> {};
class ShapeMistakes : public MistakeTest {};
class DtypeMistakes : public MistakeTest {};
class DeviceMistakes : public MistakeTest {};
std::string name_of(const ::testing::TestParamInfo<Mistake>& test) { return test.param.name; }

TEST_P(ShapeMistakes, AreNamed) {
  EXPECT_EQ(message_of<ShapeError>(GetParam().make), GetParam().message);
}
TEST_P(DtypeMistakes, AreNamed) {
  EXPECT_EQ(message_of<DtypeError>(GetParam().make), GetParam().message);
}
TEST_P(DeviceMistakes, AreNamed) {
  EXPECT_EQ(message_of<DeviceError>(GetParam().make), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ShapeMistakes,
    ::testing::Values(
        Mistake{"Add",
                [] {
                  floats({2, 3}) + floats({2, 4});
                },
                "add: shapes (2, 3) and (2, 4) cannot be broadcast together (axis 1 of the result: "
                "3 against 4)"},
        Mistake{"InPlace",
                [] {
                  Array a = floats({3});
                  a += floats({2, 3});
                },
                "add: the output has shape (3,), expected (2, 3)"},
        Mistake{"Matmul",
                [] {
                  matmul(floats({2, 3}), floats({4, 5}));
                },
                "matmul: (2, 3) and (4, 5) do not fit: the last axis of the first has extent 3, "
                "the matching axis of the second 4"},
        Mistake{"Reshape",
                [] {
                  floats({2, 3}).reshape({4, -1});
                },
                "reshape: 6 elements do not fit (4, -1), expected a multiple of 4"},
        Mistake{"ReshapeToAnotherSize",
                [] {
                  floats({2, 3}).reshape({4, 2});
                },
                "reshape: 6 elements do not fit (4, 2), expected 8"},
        Mistake{
            "Concatenate",
            [] {
              concatenate({floats({2, 3}), floats({2, 4})}, 0);
            },
            "concatenate: (2, 4) and (2, 3) differ outside axis 0; expected equal extents there"},
        Mistake{"Assign", [] { floats({3}).assign(floats({2})); },
                "assign: shapes (2,) and (3,) cannot be broadcast together (axis 0 of the result: "
                "2 against 3)"},
        Mistake{"BroadcastTo",
                [] {
                  floats({3}).broadcast_to({2, 2});
                },
                "broadcast_to: (3,) does not broadcast to (2, 2): axis 1 has extent 3, expected 2 "
                "or 1"},
        Mistake{"Item", [] { floats({2}).item<float>(); },
                "item: expected an array of one element, got shape (2,)"},
        Mistake{"Split", [] { split(floats({5}), 2); },
                "split: axis 0 of (5,) does not divide into 2 equal parts; array_split allows "
                "unequal ones"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Table, DtypeMistakes,
    ::testing::Values(Mistake{"InPlace",
                              [] {
                                Array a = ints({3});
                                a += floats({3});
                              },
                              "add: a result of dtype float64 cannot be stored into an array of "
                              "dtype int32; convert it with astype"},
                      Mistake{"Take", [] { take(floats({3}), floats({1}), 0); },
                              "take: expected integer positions, got float32"},
                      Mistake{"Uniform", [] { random::uniform({3}, 0, 1, Dtype::kInt32); },
                              "uniform: expected a floating dtype, got int32"}),
    name_of);

// The cure for arrays, and for the variables that a function was given.
std::string differ(const std::string& who, const std::string& a, const std::string& b) {
  return who + ": arrays on different devices: " + a + " and " + b + "; copy one with to(\"" + a +
         "\") first, a Variable with functions::copy(x, \"" + a + "\")";
}

INSTANTIATE_TEST_SUITE_P(
    Table, DeviceMistakes,
    ::testing::Values(
        Mistake{"Add", [] { floats({3}, cpu(0)) + floats({3}, cpu(1)); },
                differ("add", "cpu:0", "cpu:1")},
        Mistake{"Matmul",
                [] {
                  matmul(floats({2, 2}, cpu(1)), floats({2, 2}, cpu(0)));
                },
                differ("matmul", "cpu:1", "cpu:0")},
        Mistake{"Concatenate",
                [] {
                  concatenate({floats({2}, cpu(0)), floats({2}, cpu(2))}, 0);
                },
                differ("concatenate", "cpu:0", "cpu:2")},
        Mistake{"Take", [] { take(floats({3}, cpu(1)), ints({1}), 0); },
                "take: arrays on different devices: cpu:1 and cpu:0; copy one with to(\"cpu:1\") "
                "first"}),
    name_of);

// A function that is made of others is named by its own name.
TEST(Mistakes, NameTheFunctionThatWasCalled) {
  char memory[16] = {};
  const Array a = floats({2, 3}), b = floats({2, 2}),
              fixed = Array::from_storage(borrow_read_only(cpu(0), memory, 16, nullptr), 0, {4},
                                          {4}, Dtype::kFloat32);
  const std::pair<std::string, std::function<void()>> calls[] = {
      {"dot: (2, 3) and (2, 3) do not fit", [&] { dot(a, a); }},
      {"dot: the output", [&] { dot(b, b, floats({3})); }},
      {"inner: axis -1", [&] { inner(a, b); }},
      {"vdot: arrays on",
       [&] {
         vdot(b, floats({2, 2}, cpu(1)));
       }},
      {"tensordot: axis", [&] { tensordot(a, b, 1); }},
      {"trace: expected at least 2 axes", [] { trace(floats({3})); }},
      {"trace: axis 2", [&] { trace(b, 0, 0, 2); }},
      {"trace: both axes", [&] { trace(b, 0, 1, -1); }},
      {"put: ", [&] { put(fixed, ints({1}), floats({1})); }},
      {"take: ", [&] { take(a[0], ints({4}), 0, OutOfRange::kWrap, fixed); }},
      {"shuffle: ", [&] { random::shuffle(fixed); }},
      {"copyto: ", [&] { copyto(fixed, floats({1})); }},
      {"copyto: ", [&] { copyto(b, floats({3})); }},
      {"scatter_add: ",
       [&] {
         scatter_add(b, array({5}), floats({1, 2}));
       }},
      {"scatter_add: ", [&] { scatter_add(fixed, ints({1}), floats({1})); }},
      {"set_at: ", [&] { b.set_at({array({5})}, 1); }},
      {"set_at: ", [&] { fixed.set_at({1}, 1); }},
      {"add_at: ", [&] { b.add_at({array({5})}, 1); }},
  };
  for (const auto& [text, call] : calls) {
    const std::string said = message_of<Error>(call);
    EXPECT_TRUE(said.starts_with(text)) << "'" << said << "', expected '" << text << "'";
  }
}

}  // namespace
}  // namespace catena
