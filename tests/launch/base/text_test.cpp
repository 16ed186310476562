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

TEST(Text, OfUncaughtExceptions) {
  EXPECT_EQ(exception_text("noise\nterminate called after throwing an instance of "
                           "'std::runtime_error'\n  what():  boom\n"),
            "std::runtime_error: boom");
  EXPECT_EQ(exception_text("terminate called after throwing an instance of 'int'\n"), "int");
  EXPECT_EQ(exception_text("nothing of the kind"), "");
}

}  // namespace
}  // namespace catena::launch
