// What messages of errors are made of.
#include "catena/core/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "catena/core/device.h"
#include "catena/core/dtype.h"
#include "catena/core/shape.h"

namespace catena {
namespace {

struct Point {
  int x, y;
};
std::string to_string(const Point& p) { return message("(", p.x, ", ", p.y, ")"); }

struct Whole {
  operator int64_t() const { return value; }
  int64_t value;
};
struct Flag {
  operator bool() const { return value; }
  bool value;
};
struct OwnError : Error {
  using Error::Error;
};

std::string name() { return "a name that is too long to be kept in the string itself"; }

// A Device is made of text too, and must not be what text becomes on its way into a message.
TEST(Message, TakesTextThatIsNotConst) {
  char text[] = "of the loader";
  char* words = text;
  EXPECT_EQ(message("words ", words), "words of the loader");
}

TEST(Message, JoinsTextsOfAllKinds) {
  const std::string text = "text";
  EXPECT_EQ(message(), "");
  EXPECT_EQ(message("a", std::string_view("view", 2), text, name(), ""), "avitext" + name());
}

TEST(Message, ShowsNumbers) {
  EXPECT_EQ(message(-1, " ", 2u, " ", -3l, " ", 4ul, " ", -5ll, " ", 6ull), "-1 2 -3 4 -5 6");
  EXPECT_EQ(message(std::numeric_limits<int64_t>::min(), " ", std::numeric_limits<uint64_t>::max()),
            "-9223372036854775808 18446744073709551615");
  EXPECT_EQ(message(short{-7}, " ", uint8_t{8}), "-7 8");
  EXPECT_EQ(message(0.1, " ", 1e300, " ", 2.0, " ", 0.5f), "0.1 1e+300 2 0.5");
  EXPECT_EQ(message(true, " ", false), "true false");
}

TEST(Message, ShowsWhatHasATextOrIsLikeANumber) {
  EXPECT_EQ(message(Point{1, 2}, Shape{3, 4}, Dtype::kFloat32, " ", Device()),
            "(1, 2)(3, 4)float32 cpu:0");
  EXPECT_EQ(message(Whole{-5}, " ", Flag{true}), "-5 true");
}

template <class E, class F>
std::string text_of(const F& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Fail, ThrowsWhatTheCheckThrows) {
  const int n = 3;
  const std::string expected = "f: expected 4, got 3; " + name();
  EXPECT_EQ(
      text_of<ValueError>([&] { fail<ValueError>("f: expected ", 4, ", got ", n, "; ", name()); }),
      expected);
  EXPECT_EQ(text_of<ValueError>([&] {
              CATENA_CHECK(ValueError, n == 4, "f: expected ", 4, ", got ", n, "; ", name());
            }),
            expected);
  EXPECT_EQ(text_of<IndexError>([&] {
              CATENA_CHECK(IndexError, n == 4, Whole{n}, Point{n, n});
            }),
            "3(3, 3)");
  EXPECT_EQ(text_of<IoError>([&] { CATENA_CHECK(IoError, n == 4, name()); }), name());
  EXPECT_EQ(text_of<OwnError>([] { fail<OwnError>("of a program: ", 1); }), "of a program: 1");
  CATENA_CHECK(ValueError, n == 3, "must hold");
}

}  // namespace
}  // namespace catena
