#include "base/text.h"

#include <gtest/gtest.h>

namespace catena::launch {
namespace {

TEST(Text, EndsOfTexts) {
  EXPECT_EQ(last_lines_of("one\ntwo\n", 100), "one\ntwo\n");
  EXPECT_EQ(last_lines_of("one\ntwo\nthree\n", 8), "three\n") << "no piece of a line";
  EXPECT_EQ(last_lines_of("one\ntwo\n", 4), "two\n");
  EXPECT_EQ(last_lines_of("one\ntwo\nsix\n", 8), "two\nsix\n") << "cut between lines";
  EXPECT_EQ(last_lines_of("0123456789", 4), "6789") << "one line longer than all";
}

}  // namespace
}  // namespace catena::launch
