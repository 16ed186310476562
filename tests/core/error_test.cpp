// What messages of errors are made of.
#include "catena/core/error.h"

#include <gtest/gtest.h>

#include "catena/core/device.h"

namespace catena {
namespace {

// A Device is made of text too, and must not be what text becomes on its way into a message.
TEST(Message, TakesTextThatIsNotConst) {
  char text[] = "of the loader";
  char* words = text;
  EXPECT_EQ(message("words ", words), "words of the loader");
}

}  // namespace
}  // namespace catena
