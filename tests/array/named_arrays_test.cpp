#include "catena/array/named_arrays.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "error_text.h"

namespace catena {
namespace {

TEST(NamedArrays, AreFoundByName) {
  NamedArrays list{{"a", full({}, 1)}, {"b", full({}, 2)}, {"b", full({}, 3)}};
  EXPECT_EQ(array_named(list, "b").item<double>(), 2);
  EXPECT_EQ(&array_named(list, "a"), &list[0].second);
  EXPECT_EQ(array_named(NamedArrays{{"c", full({}, 4)}}, "c").item<double>(), 4);
  expect_contains(error_of<IndexError>([&] { array_named(list, "c"); }), {"'c'", "a, b, b"});
  for (int i = 0; i < 9; ++i) list.emplace_back(message("m/l", i, "/W"), Array());
  expect_contains(error_of<IndexError>([&] { array_named(list, "m/l7/w"); }),
                  {"'m/l7/w'; nearest of 12 are: m/l7/W, m/l0/W, m/l1/W", "m/l6/W, ..."});
  expect_contains(error_of<IndexError>([&] { array_named(NamedArrays(), "c"); }), {"none"});
}

}  // namespace
}  // namespace catena
