// Values of environment variables, sensible and not.
#include "core/environment.h"

#include <gtest/gtest.h>

#include "comma_locale.h"
#include "environment_scope.h"

namespace catena {
namespace {

constexpr const char* kName = "CATENA_TEST_SETTING";

class EnvironmentTest : public ::testing::Test {
 protected:
  // What it becomes, and the warning.
  template <class Read>
  auto read(const char* text, const Read& read) {
    environment_.set(kName, text);
    ::testing::internal::CaptureStderr();
    const auto value = read();
    warning_ = ::testing::internal::GetCapturedStderr();
    return value;
  }
  bool read_switch(const char* text, bool otherwise) {
    return read(text, [&] { return switch_from_environment(kName, otherwise); });
  }
  std::optional<int> read_count(const char* text) {
    return read(text, [] { return count_from_environment(kName); });
  }

  EnvironmentScope environment_;
  std::string warning_;
};

TEST_F(EnvironmentTest, SwitchesHaveTheUsualWords) {
  for (const bool otherwise : {false, true}) {
    for (const char* text : {"1", "on", "true", "yes", "TRUE", "On"}) {
      EXPECT_TRUE(read_switch(text, otherwise)) << text;
      EXPECT_EQ(warning_, "");
    }
    for (const char* text : {"0", "off", "false", "no", "FALSE", "No"}) {
      EXPECT_FALSE(read_switch(text, otherwise)) << text;
      EXPECT_EQ(warning_, "");
    }
    EXPECT_EQ(read_switch("", otherwise), otherwise);
    EXPECT_EQ(warning_, "");
    environment_.set(kName, {});
    EXPECT_EQ(switch_from_environment(kName, otherwise), otherwise);
  }
}

TEST_F(EnvironmentTest, OtherWordsChangeNothingAndAreNamed) {
  for (const char* text : {" 0", "2", "nope", "disabled"}) {
    EXPECT_TRUE(read_switch(text, true)) << text;
    EXPECT_NE(warning_.find(std::string(kName) + "='" + text + "' is neither 1"), std::string::npos)
        << warning_;
    EXPECT_FALSE(read_switch(text, false)) << text;
  }
}

TEST_F(EnvironmentTest, CountsAreWholeNumbersAboveZero) {
  EXPECT_EQ(read_count("12"), 12);
  EXPECT_EQ(read_count("4,2"), 4);
  EXPECT_EQ(read_count(""), std::nullopt);
  EXPECT_EQ(warning_, "");
  for (const char* text : {"1e9", "4294967297", "-1", "abc", "0", "99999999999999999999", "3x"}) {
    EXPECT_EQ(read_count(text), std::nullopt) << text;
    EXPECT_NE(warning_.find("is not a whole number above 0"), std::string::npos) << warning_;
  }
}

TEST(PositiveNumber, IsThatOfTheCLocale) {
  const auto check = [] {
    EXPECT_EQ(positive_number("2.5"), 2.5);
    EXPECT_EQ(positive_number("300"), 300.0);
    for (const char* text : {"", "0", "-1", "2,5", "2.5s", "nan", "x"})
      EXPECT_EQ(positive_number(text), std::nullopt) << text;
  };
  check();
  const test::CommaLocale locale;
  if (!locale.in_force()) GTEST_SKIP() << "no locale with decimal commas, and no localedef";
  check();
}

}  // namespace
}  // namespace catena
