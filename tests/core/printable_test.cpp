#include "catena/core/printable.h"

#include <gtest/gtest.h>

#include "catena/core/error.h"
#include "error_text.h"

namespace catena {
namespace {

TEST(Printable, TextsOfOthersCannotControlATerminal) {
  EXPECT_EQ(printable("plain, two\nlines\tand \xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82"),
            "plain, two\nlines\tand \xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82");
  EXPECT_EQ(printable("\x1b[31mred\r\x07\x7f"), "\\x1b[31mred\\x0d\\x07\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "CSI as one character";
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3") << "no UTF-8, and a cut character";
  EXPECT_EQ(printable("\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80"),
            "\\xc0\\x80\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\xa0\x7f\x80\x9f"), "\xc2\xa0\\x7f\\x80\\x9f") << "C1 as raw bytes";
}

TEST(Printable, LinesStayLines) {
  EXPECT_EQ(printable_line("w\nfake\t\xc3\xa9\x1b"), "w\\x0afake\\x09\xc3\xa9\\x1b");
}

// Whatever file, process or variable a text comes from.
TEST(Printable, ErrorsAre) {
  EXPECT_EQ(error_of<IoError>([] { fail<IoError>("tensor 'a\x1b[2J\x9b'\nline 2"); }),
            "tensor 'a\\x1b[2J\\x9b'\nline 2");
  EXPECT_EQ(error_of<ValueError>([] { CATENA_CHECK(ValueError, false, "\x7f"); }), "\\x7f");
}

}  // namespace
}  // namespace catena
