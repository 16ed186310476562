#include "rank/exception_text.h"

#include <gtest/gtest.h>

namespace catena::launch {
namespace {

TEST(ExceptionText, OfTheRuntimeLibrary) {
  EXPECT_EQ(exception_text("noise\nterminate called after throwing an instance of "
                           "'std::runtime_error'\n  what():  boom\n"),
            "std::runtime_error: boom");
  EXPECT_EQ(exception_text("terminate called after throwing an instance of 'int'\n"), "int");
  EXPECT_EQ(exception_text("nothing of the kind"), "");
}

}  // namespace
}  // namespace catena::launch
