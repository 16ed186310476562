// Documented defaults against numbers of PyTorch and of the original (oracle/defaults.py).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "catena/array/io.h"
#include "catena/testing.h"

namespace catena::testing {

// What is given where nothing but operands is said; operand("x") is an array of the file.
struct DefaultRow {
  using Operands = std::function<const Array&(const std::string& name)>;
  const char* name;
  std::function<Array(const Operands& operand)> make;
};

// Compares the rows with those of the same names in a group of the file; both have the same names.
inline void expect_defaults(const std::string& group, const std::vector<DefaultRow>& rows,
                            double tolerance) {
  const LoadedArrays file = load_npz(CATENA_TEST_DEFAULTS);
  size_t in_group = 0;
  for (const auto& [name, array] : file) in_group += name.starts_with(group + "/");
  EXPECT_EQ(rows.size(), in_group) << "names of the group " << group;
  for (const DefaultRow& row : rows) {
    const Array& expected = file.at(group + "/" + row.name);
    const auto operand = [&](const std::string& name) -> const Array& {
      return file.at("in/" + name);
    };
    try {
      const Array got = row.make(operand);
      EXPECT_EQ(got.shape(), expected.shape()) << row.name;
      EXPECT_EQ(difference(got, expected, tolerance * 1e-3, tolerance), "") << row.name;
    } catch (const std::exception& error) {
      ADD_FAILURE() << row.name << ": " << error.what();
    }
  }
}

}  // namespace catena::testing
