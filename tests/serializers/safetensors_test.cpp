// safetensors files against bytes that are put together by hand, and damaged ones.
#include "catena/serializers/safetensors.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/manipulation.h"
#include "error_text.h"
#include "optimizers/models.h"
#include "serializers/tensor_bytes.h"
#include "temp_folder.h"

namespace catena::serializers {
namespace {

using tensor_bytes::bytes_of;
using tensor_bytes::number;
using tensor_bytes::safetensors;
using Values = std::vector<double>;

// A file of each dtype: two elements, 1 and 0 or a value that only this dtype has.
struct OneDtype {
  const char* type;
  Dtype dtype;
  std::string bytes;
  double second;
};
const OneDtype kDtypes[] = {
    {"F64", Dtype::kFloat64, bytes_of<double>({1, 1e300}), 1e300},
    {"F32", Dtype::kFloat32, bytes_of<float>({1, 0.1f}), 0.1f},
    {"F16", Dtype::kFloat16, bytes_of<uint16_t>({0x3C00, 0xC500}), -5},
    {"BF16", Dtype::kBFloat16, bytes_of<uint16_t>({0x3F80, 0xC0A0}), -5},
    {"I64", Dtype::kInt64, bytes_of<int64_t>({1, -(int64_t{1} << 50)}), -double(int64_t{1} << 50)},
    {"I32", Dtype::kInt32, bytes_of<int32_t>({1, -70000}), -70000},
    {"I16", Dtype::kInt16, bytes_of<int16_t>({1, -300}), -300},
    {"I8", Dtype::kInt8, bytes_of<int8_t>({1, -100}), -100},
    {"U64", Dtype::kUInt64, bytes_of<uint64_t>({1, uint64_t{1} << 63}), 9223372036854775808.0},
    {"U32", Dtype::kUInt32, bytes_of<uint32_t>({1, 4000000000u}), 4000000000.0},
    {"U16", Dtype::kUInt16, bytes_of<uint16_t>({1, 65535}), 65535},
    {"U8", Dtype::kUInt8, bytes_of<uint8_t>({1, 255}), 255},
    {"BOOL", Dtype::kBool, std::string("\1\0", 2), 0},
};

TEST(Safetensors, EveryDtype) {
  const TempFolder folder;
  const std::string path = folder / "a.safetensors";
  for (const OneDtype& one : kDtypes) {
    SCOPED_TRACE(one.type);
    write_file(path, safetensors(message("{\"x\":{\"dtype\":\"", one.type,
                                         "\",\"shape\":[1,2],\"data_offsets\":[0,",
                                         one.bytes.size(), "]}}"),
                                 one.bytes));
    const Array x = SafetensorsFile(path)["x"];
    EXPECT_EQ(x.dtype(), one.dtype);
    EXPECT_EQ(x.shape(), (Shape{1, 2}));
    EXPECT_EQ(x.to_vector<double>(), (Values{1, one.second}));
    // Written, it has the same bytes but for blanks behind the header.
    save_safetensors(path, NamedArrays{{"x", x}});
    const std::string written = read_file(path);
    EXPECT_EQ(written.substr(written.size() - one.bytes.size()), one.bytes);
    EXPECT_NE(written.find(message("{\"x\":{\"dtype\":\"", one.type, "\"")), written.npos);
    EXPECT_EQ((written.size() - one.bytes.size()) % 8, 0u);
  }
}

const std::string kTwo =
    R"({"__metadata__":{"format":"pt"},"b/W":{"dtype":"F32","shape":[2,2],"data_offsets":[6,22]},)"
    R"("a":{"data_offsets":[0,6],"shape":[3],"dtype":"I16"},)"
    R"("none":{"dtype":"F64","shape":[4,0],"data_offsets":[22,22]}}   )";
const std::string kTwoData = bytes_of<int16_t>({7, 8, 9}) + bytes_of<float>({1, 2, 3, 4});

TEST(Safetensors, ListsAndReadsOne) {
  const TempFolder folder;
  const std::string path = folder / "a.safetensors";
  write_file(path, safetensors(kTwo, kTwoData));
  const SafetensorsFile file(path);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"b/W", "a", "none"}));
  EXPECT_EQ(file.format(), "safetensors");
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
  write_file(folder / "null", safetensors(R"({"__metadata__":null})", ""));
  EXPECT_EQ(SafetensorsFile(folder / "null").metadata(), Metadata()) << "as the original reads it";
  EXPECT_EQ(file.info("b/W").shape, (Shape{2, 2}));
  EXPECT_EQ(file.info("b/W").type, "F32");
  EXPECT_EQ(file.info("b/W").bytes, 16u);
  EXPECT_EQ(file.info("b/W").offset, 8 + kTwo.size() + 6);
  EXPECT_TRUE(file.contains("a"));
  EXPECT_FALSE(file.contains("c"));
  EXPECT_EQ(file["a"].to_vector<double>(), (Values{7, 8, 9}));
  EXPECT_EQ(file["b/W"].to_vector<double>(), (Values{1, 2, 3, 4}));
  EXPECT_EQ(file.read("a", cpu(1)).device(), cpu(1));
  EXPECT_EQ(file["none"].shape(), (Shape{4, 0}));
  expect_contains(error_of<IndexError>([&] { file["c"]; }),
                  {path.c_str(), "no tensor 'c'", "there are: b/W, a, none"});
  const NamedArrays some = file.read_many({"a"});
  ASSERT_EQ(some.size(), 1u);
  EXPECT_EQ(load_safetensors(path).size(), 3u);
  EXPECT_EQ(open_tensor_file(path)->names(), file.names());
}

TEST(Safetensors, WritesWhatOthersRead) {
  const TempFolder folder;
  const std::string path = folder / "a.safetensors";
  const Array t = array<float>({{1, 2, 3}, {4, 5, 6}}).T();  // not contiguous
  save_safetensors(path,
                   {{"flag", array<bool>({true, false})},
                    {"t\"", t.to(cpu(1))},
                    {"n", array<double>({2})},
                    {"u", ones({0, 2}, dtype::float32)}},
                   {{"format", "pt"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"n":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
      R"("t\"":{"dtype":"F32","shape":[3,2],"data_offsets":[8,32]},)"
      R"("u":{"dtype":"F32","shape":[0,2],"data_offsets":[32,32]},)"
      R"("flag":{"dtype":"BOOL","shape":[2],"data_offsets":[32,34]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(read_file(path),
            safetensors(padded, bytes_of<double>({2}) + bytes_of<float>({1, 4, 2, 5, 3, 6}) +
                                    std::string("\1\0", 2)));
  EXPECT_EQ(folder.entries(), 1);
  save_safetensors(path, NamedArrays{});
  EXPECT_EQ(read_file(path), safetensors("{}      ", ""));
  EXPECT_EQ(SafetensorsFile(path).size(), 0u);
}

TEST(Safetensors, ModelsGoThrough) {
  const TempFolder folder;
  const std::string path = folder / "a.safetensors";
  catena::testing::Model model, other;
  model.l1.W.data().fill(3);
  save_safetensors(path, model);
  EXPECT_TRUE(SafetensorsFile(path).contains("l1/W"));
  load_into(other, SafetensorsFile(path));
  EXPECT_EQ(other.l1.W.data().to_vector<double>(), Values(15, 3));
  save_safetensors(path, model, NameMap::to_pytorch());
  EXPECT_EQ(SafetensorsFile(path).info("l1.weight").shape, (Shape{5, 3}));
  catena::testing::Model third;
  load_into(third, SafetensorsFile(path), NameMap::from_pytorch());
  EXPECT_EQ(third.l1.W.data().to_vector<double>(), Values(15, 3));
}

TEST(Safetensors, RefusesToWriteWhatTheFormatCannotHold) {
  const TempFolder folder;
  const std::string path = folder / "a.safetensors";
  const Array x = ones({1});
  const auto told = [&](const NamedArrays& arrays, const Metadata& metadata = {}) {
    return error_of<ValueError>([&] { save_safetensors(path, arrays, metadata); });
  };
  expect_contains(told({{"x", x}, {"x", x}}), {path.c_str(), "two arrays are named 'x'"});
  expect_contains(told({{"__metadata__", x}}), {"__metadata__"});
  expect_contains(told({{"\xff", x}}), {"not UTF-8"});
  expect_contains(told({{"x", x}}, {{"k", "\xc3"}}), {"not UTF-8"});
  expect_contains(told({{"x", Array()}}), {"'x' is not defined"});
  expect_contains(error_of<IoError>([&] {
                    save_safetensors(folder / "no/such.safetensors", NamedArrays{{"x", x}});
                  }),
                  {"such.safetensors", "create the folder first"});
  EXPECT_EQ(folder.entries(), 0);
}

// A header that says something wrong, and what the error names.
struct Wrong {
  std::string json;
  std::vector<const char*> parts;
  std::string data = std::string(8, '\0');
};

std::string one(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"x":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

const Wrong kWrong[] = {
    {R"({"x":})", {"not JSON", "offset 13"}, ""},
    {R"({"x":{"dtype":"F32")", {"not JSON", "offset"}, ""},
    {R"({} x)", {"not JSON", "offset 11"}, ""},
    {"{\"\xff\":1}", {"not JSON", "UTF-8"}, ""},
    {R"({"x":null})", {"'x' has null, expected an object"}, ""},
    {R"({"__metadata__":{"a":null}})", {"__metadata__ has null as 'a', expected a text"}, ""},
    {"{\"" + std::string(70000, 'a') + "\":3}", {"a name of 70000 bytes"}, ""},
    {R"({"__metadata__":{")" + std::string(70000, 'a') + R"(":"1"}})", {"a name of 70000"}, ""},
    {R"({"x":3})", {"'x' has a number, expected an object"}, ""},
    {R"({"x":[]})", {"'x' has a list, expected an object"}, ""},
    {R"({"__metadata__":{"a":1}})", {"__metadata__ has a number as 'a', expected a text"}, ""},
    {R"({"__metadata__":{"a":"1","a":"2"}})", {"__metadata__ has 'a' twice"}, ""},
    {R"({"x":{"dtype":4}})", {"'x' has a number as 'dtype', expected a text"}, ""},
    {R"({"x":{"shape":"4"}})", {"'x' has the text '4' as 'shape', expected a list"}, ""},
    {R"({"x":{"shape":[[4]]}})", {"'x' has a list"}, ""},
    {R"({"x":{"strides":[4]}})", {"'x' has the unknown key 'strides'"}, ""},
    {R"({"x":{"shape":[1],"shape":[2]}})", {"'x' has 'shape' twice"}, ""},
    {R"({"x":{"dtype":"F32","shape":[]}})", {"'x' has no 'data_offsets'"}, ""},
    {one("F32", "[-2]", "[0,8]"), {"'x' has a negative number"}},
    {one("F32", "[1.5]", "[0,8]"), {"'x' has the number 1.5"}},
    {one("F32", "[99999999999999999999]", "[0,8]"), {"'x' has the number"}},
    {one("F32", "[18446744073709551615]", "[0,8]"), {"'x' has an extent of 18446744073709551615"}},
    {one("F32", "[2]", "[0]"), {"'x' has fewer than two data_offsets"}},
    {one("F32", "[2]", "[0,8,9]"), {"'x' has more than two data_offsets"}},
    {one("F32", "[2]", "[8,0]"), {"'x' has data_offsets [8, 0] that end before they begin"}},
    {one("F32", "[3]", "[0,8]"), {"'x' has shape (3,) of F32, which needs 12 bytes, but 8"}},
    {one("F32", "[4611686018427387904,4]", "[0,8]"), {"needs too many bytes"}},
    {one("F32", "[0,4611686018427387904,4]", "[0,0]"), {"needs too many bytes"}, ""},
    {one("F4", "[3]", "[0,1]"), {"of F4, which needs 1 bytes"}, "a"},
    {one("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]", "[0,8]"),
     {"more than 24 axes"}},
    {one("F32", "[4]", "[0,16]"), {"'x' end at 16, but only 8 bytes follow", "cut or damaged"}},
    {one("F32", "[1]", "[0,4]"), {"4 bytes behind the last tensor belong to none"}},
    {one("F32", "[1]", "[4,8]"), {"4 bytes between the header and tensor 'x'"}},
    {"{}", {"8 bytes behind the last tensor"}},
    {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
     R"("y":{"dtype":"U8","shape":[5],"data_offsets":[3,8]}})",
     {"tensor 'y' begin at 3, inside those of 'x', which end at 4"}},
    {R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
     R"("y":{"dtype":"U8","shape":[3],"data_offsets":[5,8]}})",
     {"1 bytes between 'x' and tensor 'y'"}},
    {R"({"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
     R"("x":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})",
     {"has 'x' twice"}},
};

TEST(Safetensors, NamesWhatIsWrong) {
  const TempFolder folder;
  const std::string path = folder / "wrong.safetensors";
  for (const Wrong& wrong : kWrong) {
    SCOPED_TRACE(wrong.json);
    write_file(path, safetensors(wrong.json, wrong.data));
    const std::string text = error_of<IoError>([&] { SafetensorsFile file(path); });
    EXPECT_NE(text.find(path), text.npos) << text;
    for (const char* part : wrong.parts) EXPECT_NE(text.find(part), text.npos) << text << part;
  }
}

TEST(Safetensors, NamesForeignAndCutFiles) {
  const TempFolder folder;
  const std::string path = folder / "wrong.safetensors";
  const auto told = [&](const std::string& bytes) {
    write_file(path, bytes);
    const std::string text = error_of<IoError>([&] { SafetensorsFile file(path); });
    EXPECT_EQ(error_of<IoError>([&] { open_tensor_file(path); }) == "no error", text == "no error");
    return text;
  };
  expect_contains(told(""), {path.c_str(), "it is empty"});
  expect_contains(told("abc"), {"only 3 bytes"});
  expect_contains(told(std::string("\x89HDF\r\n\x1a\n", 8) + "12345678"), {"an HDF5 file"});
  expect_contains(told("version https://git-lfs.github.com/spec/v1\n"), {"git lfs pull"});
  expect_contains(told("GGUF567890123456"), {"a GGUF file"});
  expect_contains(told("<!DOCTYPE html><html>"), {"web page"});
  expect_contains(told("abcdefghijkl"), {"begins with the bytes 61 62 63"});
  expect_contains(told(number<uint64_t>(200'000'000) + "{}"), {"200000000", "format's 100000000"});
  expect_contains(told(number<uint64_t>(3) + "{}"), {"claims 3 bytes, but 2 follow"});
  const std::string whole = safetensors(kTwo, kTwoData);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(told(whole.substr(0, size)), "no error") << size;
  EXPECT_EQ(told(whole), "no error");
  expect_contains(error_of<IoError>([&] { SafetensorsFile file(folder / "absent"); }),
                  {"absent", "No such file"});
}

TEST(Safetensors, EmptyTensorsMayFollowOthersOfTheirOffset) {
  const TempFolder folder;
  const std::string path = folder / "a.safetensors";
  const std::string all = R"("dtype":"F32","shape":)";
  write_file(path, safetensors("{\"a\":{" + all + R"([1],"data_offsets":[0,4]},"b":{)" + all +
                                   R"([0],"data_offsets":[0,0]}})",
                               bytes_of<float>({7})));
  const SafetensorsFile file(path);
  EXPECT_EQ(file["a"].to_vector<double>(), Values{7});
  EXPECT_EQ(file["b"].shape(), Shape{0});
}

TEST(Safetensors, ListsDtypesThatItCannotRead) {
  const TempFolder folder;
  const std::string path = folder / "a.safetensors";
  for (const char* type : {"F8_E4M3", "X9"}) {
    write_file(path,
               safetensors(message("{\"x\":{\"dtype\":\"", type,
                                   "\",\"shape\":[2],\"data_offsets\":[0,2]},\"y\":{\"dtype\":"
                                   "\"I8\",\"shape\":[1],\"data_offsets\":[2,3]}}"),
                           "abc"));
    const SafetensorsFile file(path);
    EXPECT_EQ(file.info("x").type, type);
    EXPECT_FALSE(file.info("x").dtype);
    EXPECT_EQ(file["y"].item<int>(), 'c');
    for (const std::string& text : {error_of<IoError>([&] { file["x"]; }),
                                    error_of<IoError>([&] { load_safetensors(path); })})
      expect_contains(text, {path.c_str(), "tensor 'x' is of", type, "catena does not have"});
  }
}

}  // namespace
}  // namespace catena::serializers
