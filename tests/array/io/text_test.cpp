// Tables of numbers as text: what is written, what is read, and which line and column is wrong.
#include "catena/array/text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "catena/array/creation.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena {
namespace {

class TextTest : public ::testing::Test {
 protected:
  Array read(const std::string& text, const LoadTextOptions& options = {}) {
    write_file(path(), text);
    return loadtxt(path(), options);
  }
  std::string refused(const std::string& text, const LoadTextOptions& options = {}) {
    return error_of<IoError>([&] { read(text, options); });
  }
  std::string path() const { return folder_ / "t.txt"; }
  TempFolder folder_;
};

TEST_F(TextTest, AByteOrderMarkIsSkipped) {
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "1 2\n3 4\n")
                .to_vector<double>(),
            (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(read("\xef\xbb\xbf# head\n5\n", {.ndmin = 1}).to_vector<double>(),
            std::vector<double>{5});
  expect_contains(refused("1\n\xef\xbb\xbf"
                          "2\n"),
                  {"line 2"});
}

TEST_F(TextTest, RoundTripKeepsEveryBit) {
  const Array a = array({{0.1, -1e300}, {1. / 3, 4e-320}, {double{INFINITY}, -0.0}});
  savetxt(path(), a);
  const Array b = loadtxt(path());
  EXPECT_EQ(b.shape(), a.shape());
  EXPECT_EQ(b.view(dtype::int64).to_vector<int64_t>(), a.view(dtype::int64).to_vector<int64_t>());
  const Array big = array<uint64_t>({UINT64_MAX, 0, 7});
  savetxt(path(), big, {.format = "%d"});
  EXPECT_EQ(loadtxt(path(), {.dtype = dtype::uint64}).to_vector<uint64_t>(),
            big.to_vector<uint64_t>());
}

TEST_F(TextTest, RowsColumnsAndComments) {
  const Array a = read("# head\n1, 2,3  # one\r\n\n  \n+4,5e0, -inf\r6,7,8", {.delimiter = ","});
  EXPECT_EQ(a.shape(), (Shape{3, 3}));
  EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5, -INFINITY, 6, 7, 8}));
  EXPECT_EQ(read("1 2 // x", {.comments = "//"}).to_vector<int>(), (std::vector<int>{1, 2}));
  EXPECT_EQ(read("1 -- 2 -- 3", {.delimiter = "--"}).to_vector<int>(), (std::vector<int>{1, 2, 3}));
}

TEST_F(TextTest, SelectsRowsAndColumns) {
  const std::string text = "a b c\n1 2 3\n4 5 6\n7 8 9\n";
  EXPECT_EQ(read(text, {.skiprows = 1}).shape(), (Shape{3, 3}));
  EXPECT_EQ(read(text, {.skiprows = 1, .max_rows = 2}).shape(), (Shape{2, 3}));
  EXPECT_EQ(read(text, {.skiprows = 1, .usecols = {2, -3}}).to_vector<int>(),
            (std::vector<int>{3, 1, 6, 4, 9, 7}));
  EXPECT_EQ(read(text, {.skiprows = 1, .unpack = true})[0].to_vector<int>(),
            (std::vector<int>{1, 4, 7}));
  expect_contains(error_of<IndexError>([&] { read(text, {.skiprows = 1, .usecols = {3}}); }),
                  {"column 3", "line 2 has 3"});
}

TEST_F(TextTest, AxesAsNumPy) {
  EXPECT_EQ(read("5").shape(), Shape{});
  EXPECT_EQ(read("5", {.ndmin = 1}).shape(), Shape{1});
  EXPECT_EQ(read("5", {.ndmin = 2}).shape(), (Shape{1, 1}));
  EXPECT_EQ(read("1 2").shape(), Shape{2});
  EXPECT_EQ(read("1\n2").shape(), Shape{2});
  EXPECT_EQ(read("1\n2", {.ndmin = 2}).shape(), (Shape{2, 1}));
  EXPECT_EQ(read("# nothing\n").shape(), Shape{0});
  EXPECT_EQ(read("", {.ndmin = 2}).shape(), (Shape{0, 1}));
  EXPECT_THROW(read("1", {.ndmin = 3}), ValueError);
}

TEST_F(TextTest, ErrorsNameLineAndColumn) {
  expect_contains(refused("1 2\n\n3 x\n"),
                  {"t.txt", "line 3, column 2", "'x' is not a valid float64"});
  expect_contains(refused("1,2\n3,,\n", {.delimiter = ","}), {"line 2 has 3 columns, expected 2"});
  expect_contains(refused("1,2\n3,\n", {.delimiter = ","}), {"line 2, column 2", "is empty"});
  expect_contains(refused("1 2\n3\n"), {"line 2 has 1 columns, expected 2 as line 1"});
  expect_contains(refused("7 300", {.dtype = dtype::uint8}),
                  {"column 2", "out of the range of uint8"});
  expect_contains(refused("-1", {.dtype = dtype::uint8}), {"out of the range of uint8"});
  expect_contains(refused("1.5", {.dtype = dtype::int32}), {"is not a valid int32"});
  expect_contains(refused("2", {.dtype = dtype::bool_}), {"is not a bool"});
  expect_contains(refused("1\x01", {}), {"'1?'"});
  EXPECT_THROW(read("1", {.delimiter = "\n"}), ValueError);
}

TEST_F(TextTest, NumbersAsPythonReadsThem) {
  EXPECT_EQ(read("1e400 -1e400 1e-400 +.5 5. Infinity").to_vector<double>(),
            (std::vector<double>{INFINITY, -INFINITY, 0, 0.5, 5, INFINITY}));
  EXPECT_EQ(read("True 0 1 False", {.dtype = dtype::bool_}).to_vector<int>(),
            (std::vector<int>{1, 0, 1, 0}));
  for (const char* word : {"0x10", "1_0", "--1", "+-1", "1e", "e5", "."})
    EXPECT_NE(refused(word), "no error") << word;
}

TEST_F(TextTest, FormatsThatDoNotFit) {
  const Array a = ones({2, 3});
  for (const char* format :
       {"%", "%x", "%n", "%s %s", "no", "%*d", "%l", "%.2.3f", "%5-d", "%123456789d"})
    EXPECT_THROW(savetxt(path(), a, {.format = format}), ValueError) << format;
  EXPECT_THROW(savetxt(path(), ones({1, 2, 3})), ShapeError);
  EXPECT_THROW(savetxt(path(), scalar_array(1)), ShapeError);
  expect_contains(error_of<ValueError>([&] { savetxt(path(), array({NAN}), {.format = "%d"}); }),
                  {"savetxt", "%d of "});
  EXPECT_EQ(folder_.entries(), 0);  // nothing is left of files that failed
  savetxt(path(), a, {.format = "%d:%.1f|%s%%", .footer = "end"});
  EXPECT_EQ(read_file(path()), "1:1.0|1.0%\n1:1.0|1.0%\n# end\n");
}

}  // namespace
}  // namespace catena
