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

// "gnp.exe" would be read as "exe.png" behind U+202E.
TEST(Printable, NothingTurnsATextOrHidesInIt) {
  EXPECT_EQ(printable("a\u202egnp.exe"), "a\\xe2\\x80\\xaegnp.exe");
  EXPECT_EQ(printable_line("w\u200bx"), "w\\xe2\\x80\\x8bx");
  EXPECT_EQ(printable("\u00ad\u061c\ufeff"), "\\xc2\\xad\\xd8\\x9c\\xef\\xbb\\xbf");
  for (const char* hidden :
       {"\u180e", "\u200b",     "\u200c",     "\u200d",    "\u200e", "\u200f", "\u2028",
        "\u2029", "\u202a",     "\u202b",     "\u202c",    "\u202d", "\u202e", "\u2060",
        "\u2064", "\u2066",     "\u2067",     "\u2068",    "\u2069", "\u206f", "\ufff9",
        "\ufffb", "\U000e0000", "\U000e0001", "\U000e007f"})
    EXPECT_EQ(printable(hidden).size(), 4 * std::string_view(hidden).size()) << printable(hidden);
}

TEST(Printable, LettersAndMarksOfAllScriptsStay) {
  for (const char* text :
       {"\u00ac\u00ae", "e\u0301", "\u0627\u0651", "\u05e9\u05c1", "\u0928\u094d", "\u061b\u061d",
        "\u1820\u180b\u180f", "\u200a\u2010\u2027\u202f\u205f\u2070", "\u4e2d\u3042\ud55c",
        "\u2602\ufe0f", "\ufefc\uff01", "\ufffc\ufffd", "\U000e0100", "\U0001f642"})
    EXPECT_EQ(printable(text), text);
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
