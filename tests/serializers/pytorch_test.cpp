// .pt files: one that PyTorch wrote, and others put together by hand, damaged and hostile ones too.
#include "catena/serializers/pytorch.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "error_text.h"
#include "serializers/tensor_bytes.h"
#include "temp_folder.h"

namespace catena::serializers {
namespace {

using namespace tensor_bytes::pickle;
using tensor_bytes::bytes_of;
using tensor_bytes::from_base64;
using tensor_bytes::Members;
using tensor_bytes::number;
using tensor_bytes::torch_file;
using tensor_bytes::zip;
using Values = std::vector<double>;
using Names = std::vector<std::string>;

std::string sample() {
  const std::string packed = from_base64(tensor_bytes::kSample);
  std::string bytes(tensor_bytes::kSampleBytes, '\0');
  uLongf size = bytes.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                       reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  EXPECT_EQ(size, bytes.size());
  return bytes;
}

class Pytorch : public ::testing::Test {
 protected:
  const PytorchFile& open(const std::string& bytes) {
    write_file(path_, bytes);
    return *(file_ = std::make_unique<PytorchFile>(path_));
  }
  std::string told(const std::string& bytes) {
    write_file(path_, bytes);
    return error_of<IoError>([&] { PytorchFile(path_).read_all(); });
  }
  // Of a file whose outermost value this is.
  std::string told_of(const std::string& value, const Members& storages = {}) {
    return told(torch_file(value, storages));
  }

  TempFolder folder_;
  std::string path_ = folder_ / "net.pt";
  std::unique_ptr<PytorchFile> file_;
};

TEST_F(Pytorch, ReadsWhatPytorchWrote) {
  const PytorchFile& file = open(sample());
  EXPECT_EQ(file.names(), (Names{"model.weight", "model.bias", "view", "part", "whole", "wide",
                                 "half", "flag", "step", "ids", "z", "list.0", "w", "none"}));
  EXPECT_EQ(file.skipped(), (Names{"epoch (int)", "lr (list)"}));
  EXPECT_EQ(file.format(), "PyTorch");
  const auto expect = [&](const char* name, Dtype dtype, const Shape& shape, const Values& values) {
    SCOPED_TRACE(name);
    EXPECT_EQ(file.info(name).shape, shape);
    const Array a = file[name];
    EXPECT_EQ(a.dtype(), dtype);
    EXPECT_EQ(a.shape(), shape);
    EXPECT_EQ(a.to_vector<double>(), values);
  };
  expect("model.weight", dtype::float32, {2, 3}, {1, 2, 3, 4, 5, 6});
  expect("model.bias", dtype::float32, {2}, {7, 8});
  expect("view", dtype::int64, {3, 2}, {0, 3, 1, 4, 2, 5});
  expect("part", dtype::float32, {2, 2}, {2, 3, 4, 5});
  expect("whole", dtype::float32, {3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  expect("wide", dtype::float64, {2, 3}, {1.5, 1.5, 1.5, -2, -2, -2});
  expect("half", dtype::bfloat16, {2}, {1, -0.5});
  expect("flag", dtype::bool_, {2}, {1, 0});
  expect("step", dtype::int32, {}, {3});
  expect("ids", dtype::uint16, {2}, {1, 65535});
  expect("list.0", dtype::int8, {1}, {1});
  expect("w", dtype::float32, {1}, {0.25});
  expect("none", dtype::float32, {0, 4}, {});
  EXPECT_EQ(file.info("view").type, "torch.int64");
  EXPECT_EQ(file.info("wide").bytes, 48u);
  EXPECT_EQ(file.info("z").type, "torch.complex64");
  expect_contains(error_of<IoError>([&] { file["z"]; }),
                  {"net.pt", "tensor 'z' is of torch.complex64", "catena does not have"});
}

// Arrays that are read together share memory where the tensors did, as after torch.load: copies of
// one storage could need much more memory than the file has.
TEST_F(Pytorch, TensorsOfOneStorageShareMemory) {
  const PytorchFile& file = open(sample());
  const NamedArrays arrays = file.read_many({"part", "whole", "wide"});
  arrays[0].second.fill(-1);
  EXPECT_EQ(arrays[1].second.to_vector<double>(),
            (Values{0, 1, -1, -1, -1, -1, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(arrays[2].second.strides(), (Strides{8, 0})) << "expanded";
}

TEST_F(Pytorch, BoolsDoNotChangeWhatSharesTheirBytes) {
  const std::string bools = tensor(storage("BoolStorage", "0", 3), 0, {3}, {1});
  const std::string bytes = tensor(storage("ByteStorage", "0", 3), 0, {3}, {1});
  const auto read = [&](const std::string& value) {
    return open(torch_file(value, {{"0", "\xf0\1\2"}})).read_all();
  };
  for (const NamedArrays& arrays :
       {read(dict({{"b", bools}, {"i", bytes}})), read(dict({{"i", bytes}, {"b", bools}}))})
    for (const auto& [name, array] : arrays)
      EXPECT_EQ(array.to_vector<double>(), name == "b" ? (Values{1, 1, 1}) : (Values{240, 1, 2}));
}

// The frames, texts and names of newer protocols.
TEST_F(Pytorch, ReadsProtocol4) {
  const auto short_text = [](const std::string& text) {
    return "\x8c" + std::string(1, char(text.size())) + text + "\x94";
  };
  const auto stack_global = [&](const std::string& module, const std::string& name) {
    return short_text(module) + short_text(name) + "\x93\x94";
  };
  const std::string body =
      "}\x94(" + short_text("x") + stack_global("torch._utils", "_rebuild_tensor_v3") + "((" +
      short_text("storage") + stack_global("torch.storage", "UntypedStorage") + short_text("0") +
      short_text("cpu") + "K\x08tQK\x01K\x03\x85K\x01\x85\x89}" + stack_global("torch", "uint16") +
      "tRh\x02\x8a\x02\x39\x30u.";
  const std::string pickle = "\x80\x04\x95" + number<uint64_t>(body.size()) + body;
  const PytorchFile& file =
      open(zip({{"a/data.pkl", pickle}, {"a/data/0", bytes_of<uint16_t>({1, 2, 3, 65535})}}));
  EXPECT_EQ(file["x"].to_vector<double>(), (Values{2, 3, 65535}));
  EXPECT_EQ(file["x"].dtype(), dtype::uint16);
  EXPECT_EQ(file.skipped(), (Names{"torch._utils (int)"})) << "value 2 of the memo";
}

TEST_F(Pytorch, BigEndianFiles) {
  const std::string value = dict({{"x", tensor(storage("IntStorage", "0", 2), 0, {2}, {1})},
                                  {"y", tensor(storage("ByteStorage", "1", 2), 0, {2}, {1})}});
  const Members storages{{"0", std::string("\0\0\0\1\0\0\1\0", 8)}, {"1", "\1\2"}};
  EXPECT_EQ(open(torch_file(value, storages, {{"net/byteorder", "big"}}))["x"].to_vector<double>(),
            (Values{1, 256}));
  EXPECT_EQ((*file_)["y"].to_vector<double>(), (Values{1, 2}));
  EXPECT_EQ(
      open(torch_file(value, storages, {{"net/byteorder", "little"}}))["x"].to_vector<double>(),
      (Values{16777216, 65536}));
  expect_contains(told(torch_file(value, storages, {{"net/byteorder", "middle"}})),
                  {"its byte order is 'middle'"});
}

TEST_F(Pytorch, ReadsAttributesOfTorchScript) {
  const auto object = [](const std::string& type, const std::string& attributes) {
    return global("__torch__.net", type) + ")\x81" + attributes + "b";
  };
  const std::string value = object(
      "Net", dict({{"training", "\x88"},
                   {"sizes", global("torch.jit._pickle", "build_intlist") + "]K\x01" + "a\x85R"},
                   {"fc", object("Linear", dict({{"weight", tensor(storage("FloatStorage", "0", 2),
                                                                   0, {2}, {1})}}))}}));
  const Members storages{{"0", bytes_of<float>({1, 2})}};
  const PytorchFile& file = open(torch_file(value, storages, {{"net/constants.pkl", whole(")")}}));
  EXPECT_EQ(file.names(), (Names{"fc.weight"}));
  EXPECT_EQ(file["fc.weight"].to_vector<double>(), (Values{1, 2}));
  EXPECT_EQ(file.skipped(), (Names{"training (bool)", "sizes (list)"}));
  // Elsewhere such classes are as foreign as any other.
  expect_contains(told(torch_file(value, storages)),
                  {"'__torch__.net.Net'", "nothing was executed"});
}

// Elements that are not as stored would be read wrongly.
TEST_F(Pytorch, NegatedViews) {
  const auto marked = [&](const std::string& marks) {
    return told_of(global("torch._utils", "_rebuild_tensor_v2") +
                       tuple({storage("FloatStorage", "0", 1), integer(0), integers({1}),
                              integers({1}), "\x89", "}", marks}) +
                       "R",
                   {{"0", bytes_of<float>({1})}});
  };
  EXPECT_EQ(marked(dict({{"neg", "\x89"}})), "no error");
  EXPECT_EQ(marked("N"), "no error");
  expect_contains(marked(dict({{"neg", "\x88"}})), {"negated or conjugated view", "resolve_neg()"});
}

// Values of Python that say nothing of tensors.
TEST_F(Pytorch, SkipsOtherValues) {
  const std::string bytes =
      global("_codecs", "encode") + tuple({text("abc"), text("latin1")}) + "R";
  EXPECT_EQ(
      open(torch_file(dict({{"bytes", bytes},
                            {"set", global("__builtin__", "set") + "]\x85R"},
                            {"newer", "\x8f(K\1K\2\x90"},
                            {"frozen", "(K\1\x91"},
                            {"big", "\x8a\x09" + std::string(9, '\1')},
                            {"rate", "G" + std::string(8, '\0')},
                            {"size", global("torch", "Size") + integers({1, 2}) + "\x85R"},
                            {"dtype", global("torch", "float32")},
                            {"raw", "C\1x"}}),
                      {}))
          .skipped(),
      (Names{"bytes (_codecs.encode)", "set (__builtin__.set)", "newer (set)", "frozen (frozenset)",
             "big (int)", "rate (float)", "size (tuple)", "dtype (constant)", "raw (bytes)"}));
}

// What checkpoints of training programs keep beside tensors.
TEST_F(Pytorch, SkipsObjectsOfPythonAndNumpy) {
  const std::string dtype =
      global("numpy", "dtype") + tuple({text("f8"), "\x89", "\x88"}) + "R(K\3tb";
  const std::string value = dict(
      {{"counts", global("collections", "Counter") + dict({{"a", "K\1"}}) + "\x85R"},
       {"lists", global("collections", "defaultdict") + global("__builtin__", "list") + "\x85R(" +
                     text("x") + tensor(storage("FloatStorage", "0", 1), 0, {1}, {1}) + "u"},
       {"best", global("numpy._core.multiarray", "scalar") + tuple({dtype, "C\1x"}) + "R"},
       {"args", global("argparse", "Namespace") + ")\x81" + dict({{"lr", "K\1"}}) + "b"},
       {"by name", global("argparse", "Namespace") + ")}\x92"},
       {"path", global("pathlib", "PosixPath") + tuple({text("a")}) + "R"},
       {"queue", global("collections", "deque") + "]\x85R(K\1e"}});
  const PytorchFile& file = open(torch_file(value, {{"0", bytes_of<float>({2})}}));
  EXPECT_EQ(file["lists.x"].item<float>(), 2);
  EXPECT_EQ(file.skipped(), (Names{"counts.a (int)", "best (numpy._core.multiarray.scalar)",
                                   "args (argparse.Namespace)", "by name (argparse.Namespace)",
                                   "path (pathlib.PosixPath)", "queue (collections.deque)"}));
  EXPECT_EQ(open(torch_file("}(U\1x" + integer(3) + "u", {})).skipped(), (Names{"x (int)"}))
      << "a text of Python 2";
}

// The format of before PyTorch 1.6.
std::string legacy_file(const std::string& value, const std::string& behind) {
  return "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19." + whole("M\xe9\x03") +
         whole(dict({{"little_endian", "\x88"}})) + whole(value) + behind;
}

TEST_F(Pytorch, ReadsLegacyFiles) {
  const auto stored = [](const std::string& type, const std::string& key, int32_t count) {
    return tuple({text("storage"), global("torch", type), text(key), text("cuda:0"), integer(count),
                  "N"}) +
           "Q";
  };
  const std::string value = dict({{"a", tensor(stored("FloatStorage", "k0", 4), 1, {3}, {1})},
                                  {"b", tensor(stored("LongStorage", "k1", 1), 0, {1}, {1})},
                                  {"c", tensor(stored("FloatStorage", "k0", 4), 0, {2}, {2})}});
  const std::string keys = whole("](" + text("k1") + text("k0") + "e");
  const std::string elements =
      number<int64_t>(1) + number<int64_t>(-7) + number<int64_t>(4) + bytes_of<float>({1, 2, 3, 4});
  const std::string bytes = legacy_file(value, keys + elements);
  const PytorchFile& file = open(bytes);
  EXPECT_EQ(file.names(), (Names{"a", "b", "c"}));
  EXPECT_EQ(file["a"].to_vector<double>(), (Values{2, 3, 4}));
  EXPECT_EQ(file["b"].to_vector<double>(), (Values{-7}));
  EXPECT_EQ(file["c"].to_vector<double>(), (Values{1, 3}));
  EXPECT_EQ(open_tensor_file(path_)->format(), "PyTorch");
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(told(bytes.substr(0, size)), "no error") << size;
  expect_contains(told(legacy_file(value, whole("]") + elements)),
                  {"'a' is in storage 'k0', which is missing"});
  expect_contains(told(legacy_file(value, whole("](" + text("k9") + "e"))),
                  {"storage 'k9' belongs to no tensor"});
  expect_contains(told(legacy_file(value, keys + number<int64_t>(INT64_MAX))),
                  {"storage 'k1' has 9223372036854775807 elements of 8 bytes, but 0 bytes follow"});
  expect_contains(told(legacy_file(value, keys + number<int64_t>(0) + number<int64_t>(0))),
                  {"'a' is in storage 'k0' of 0 bytes, expected 16"});
  expect_contains(told(legacy_file(value, whole("](" + text("k1") + text("k1") + "e") +
                                              number<int64_t>(0) + number<int64_t>(0))),
                  {"two storages are named 'k1'"});
  const std::string part = tuple({text("storage"), global("torch", "FloatStorage"), text("k0"),
                                  text("cpu"), integer(4), tuple({text("k1"), "K\1", "K\1"})});
  expect_contains(told(legacy_file(part + "Q", "")), {"a part of another one", "before 0.4"});
}

// Written after torch.serialization.set_crc32_options(False).
TEST_F(Pytorch, ReadsArchivesWithoutChecksums) {
  // All but that of member `kept`.
  const auto without_checksums = [](std::string bytes, size_t kept) {
    size_t member = 0;
    for (size_t at = bytes.find("PK\1\2"); at != bytes.npos; at = bytes.find("PK\1\2", at + 1))
      if (member++ != kept) bytes.replace(at + 16, 4, 4, '\0');
    return bytes;
  };
  const std::string bytes = tensor_bytes::small_torch_file();
  EXPECT_EQ(open(without_checksums(bytes, size_t(-1)))["x"].to_vector<double>(),
            (Values{1, 2, 3, 4, 5, 6}));
  expect_contains(told(without_checksums(bytes, 2)), {"the checksum does not match"});
}

// Small files that ask for much.
TEST_F(Pytorch, Bombs) {
  const std::string key = text(std::string(70000, 'a'));
  expect_contains(told_of("}" + key + "Ns"), {"net.pt", "a name of 70000 bytes"});
  std::string nested = text(std::string(2000, 'b')) + "q\1" + "0}";
  for (int i = 0; i < 60; ++i) nested += "q\2" + std::string("0}h\1h\2s");
  expect_contains(told_of(nested), {"longer than the 65536"});
  expect_contains(told_of(global("torch", "int" + std::string(70000, '0'))),
                  {"a name of 70003 bytes"});
  std::string names = text("torch") + "q\1" + "0" + text("int" + std::string(60000, '0')) + "q\2";
  for (int i = 0; i < 9000; ++i) names += "0h\1h\2\x93";
  expect_contains(told_of(names), {"more than 512 MiB of memory"});
  // A dict of one key 100,000 times, in a list 100,000 times.
  std::string pairs = text("a") + "q\1" + "0Nq\2" + "0}(";
  for (int i = 0; i < 100000; ++i) pairs += "h\1h\2";
  pairs += "uq\3" + std::string("0](");
  for (int i = 0; i < 100000; ++i) pairs += "h\3";
  expect_contains(told_of(pairs + "e"), {"more than 268435456 steps"});
}

TEST_F(Pytorch, OtherOutermostValues) {
  const Members storages{{"0", bytes_of<float>({1, 2})}};
  const std::string x = tensor(storage("FloatStorage", "0", 2), 0, {2}, {1});
  EXPECT_EQ(open(torch_file(x, storages)).names(), (Names{"tensor"}));
  EXPECT_EQ(open(torch_file(tuple({x, "N", dict({{"b", x}})}), storages)).names(),
            (Names{"0", "2.b"}));
  EXPECT_EQ(open(torch_file("K\x01", {})).skipped(), (Names{"the outermost value (int)"}));
  EXPECT_EQ(open(torch_file("}", {})).size(), 0u);
  // Keys of numbers, the last of equal keys, and keys that are neither texts nor numbers.
  EXPECT_EQ(open(torch_file("}(K\x05" + x + "K\x05Nu", storages)).skipped(), (Names{"5 (None)"}));
  EXPECT_EQ(open(torch_file("}(N" + x + "u", storages)).skipped(),
            (Names{"[a key of kind None] (tensor)"}));
  // OrderedDict of pairs, as Python 2 wrote it.
  EXPECT_EQ(
      open(torch_file(global("collections", "OrderedDict") + "](](" + text("a") + x + "ee\x85R",
                      storages))
          .names(),
      (Names{"a"}));
  expect_contains(told_of(dict({{"a", dict({{"b", x}})}, {"a.b", x}}), storages),
                  {"two tensors are named 'a.b'"});
}

// A pickle may name any function of Python. None of them is called.
TEST_F(Pytorch, NothingIsExecuted) {
  const std::string touched = folder_ / "touched";
  const std::string command = "(" + text("touch " + touched) + "tR";
  for (const auto& [module, name] : {std::pair{"os", "system"},
                                     {"posix", "system"},
                                     {"builtins", "eval"},
                                     {"torch.storage", "_load_from_bytes"},
                                     {"__main__", "Net"}}) {
    const std::string full = message("'", module, ".", name, "'");
    for (const std::string& value :
         {global(module, name) + command, text(module) + text(name) + "\x93" + command,
          dict({{"x", global(module, name)}})})
      expect_contains(told_of(value), {"net.pt", "net/data.pkl", "at offset", full.c_str(),
                                       "nothing was executed", "model.state_dict()"});
  }
  EXPECT_FALSE(std::filesystem::exists(touched));
  expect_contains(told_of(global("torch._utils", "_rebuild_qtensor") + command),
                  {"'torch._utils._rebuild_qtensor': a sparse, quantized", "x.dequantize()"});
  expect_contains(told_of("(" + text("x") + "ios\nsystem\n"), {"opcode 105"});
  expect_contains(told_of("(" + global("torch", "Tensor") + "o"), {"opcode 111"});
  expect_contains(told_of("\x82\x01"), {"opcode 130"});
  expect_contains(told_of(global("torch", "Tensor") + ")R"),
                  {"it calls 'torch.Tensor'", "nothing was executed"});
  expect_contains(told_of(global("torch", "float32") + ")\x81"),
                  {"an object of a class", "nothing was executed"});
  expect_contains(told_of(global("torch._tensor", "_rebuild_from_type_v2") +
                          tuple({global("torch._tensor", "_rebuild_from_type_v2"),
                                 global("torch", "Tensor"), ")", "}"}) +
                          "R"),
                  {"nothing was executed"});
  expect_contains(told_of("]}b"), {"attributes of a list", "nothing was executed"});
}

TEST_F(Pytorch, DamagedPickles) {
  const std::string x = tensor(storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1});
  EXPECT_EQ(told(tensor_bytes::small_torch_file()), "no error");
  for (const auto& [value, part] : std::vector<std::pair<std::string, const char*>>{
           {"", "a value is missing"},
           {"0", "a value is missing"},
           {"(0", "a value is missing"},
           {"t", "a mark is missing"},
           {"u", "a mark is missing"},
           {"h\x07", "value 7 is not known"},
           {"}a", "a value is missing"},
           {"}Na", "items are added to a dict"},
           {"]NNs", "2 keys and values are added to a list"},
           {"}(Nu", "1 keys and values"},
           {"X\xff\xff\xff\xff", "4294967295 bytes expected"},
           {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "bytes expected"},
           {"\x80\x01", "protocol 1, expected 2 to 5"},
           {"\x80\x06", "protocol 6, expected 2 to 5"},
           {"cos", "a line without an end"},
           {"NN\x93", "a name that is not a text"},
           {"NNR", "a call of what is not a function"},
           {"NQ", "a stored object that is not a tensor's storage"},
           {tuple({text("module"), global("torch", "FloatStorage"), text("0"), text("cpu"),
                   integer(1)}) +
                "Q",
            "a stored object that is not a tensor's storage"},
           {global("torch._utils", "_rebuild_tensor_v2") + ")R", "a tensor without storage"},
           {global("torch._utils", "_rebuild_tensor_v3") + tuple({"N", "N", "N", "N"}) + "R",
            "a tensor without storage"},
           {global("torch._utils", "_rebuild_parameter") + ")R",
            "'torch._utils._rebuild_parameter' with 0 arguments"},
           {global("collections", "OrderedDict") + "](](NNNee\x85R", "OrderedDict"},
           {global("collections", "OrderedDict") + "N\x85R", "OrderedDict"},
       }) {
    SCOPED_TRACE(value);
    const std::string text = told_of(value);
    EXPECT_NE(text.find(part), text.npos) << text;
    EXPECT_NE(text.find("at offset"), text.npos) << text;
  }
  expect_contains(told(zip({{"net/data.pkl", "\x80\x02N"}})), {"1 bytes expected, but 0 follow"});
}

TEST_F(Pytorch, ContainersInThemselves) {
  expect_contains(told_of("]q" + std::string(1, '\0') + "h" + std::string(1, '\0') + "a"),
                  {"more than 64 containers deep, or inside itself"});
  std::string deep = "]";
  for (int i = 0; i < 100; ++i) deep = "]" + deep + "a";
  expect_contains(told_of(deep), {"more than 64 containers deep"});
  // Each dict has the one before twice: 2^60 empty ones in 600 bytes.
  std::string doubled = "}";
  for (int i = 0; i < 60; ++i)
    doubled = doubled + "q" + char(i) + "0}(" + text("a") + "h" + char(i) + text("b") + "h" +
              char(i) + "u";
  expect_contains(told_of(doubled), {"more than 268435456 steps"});
  // One list that is copied again and again.
  const std::string grown = global("collections", "OrderedDict") + "q\1" + "0](" + [] {
    std::string pairs;
    for (int i = 0; i < 1000; ++i) pairs += "NN\x86";
    return pairs;
  }() + "e\x85q\2" + "0";
  std::string calls;
  for (int i = 0; i < 35000; ++i) calls += "h\1h\2R0";
  expect_contains(told_of(grown + calls + "N"), {"more than 512 MiB of memory"});
}

TEST_F(Pytorch, TensorsThatDoNotFitTheirStorage) {
  const Members six{{"0", bytes_of<float>({1, 2, 3, 4, 5, 6})}};
  const auto x = [&](int32_t offset, const std::vector<int32_t>& shape,
                     const std::vector<int32_t>& strides, const std::string& type = "FloatStorage",
                     int32_t elements = 6) {
    return told_of(dict({{"x", tensor(storage(type, "0", elements), offset, shape, strides)}}),
                   six);
  };
  EXPECT_EQ(x(0, {2, 3}, {3, 1}), "no error");
  EXPECT_EQ(x(5, {3, 1}, {0, 9}), "no error") << "expanded";
  EXPECT_EQ(x(0, {0, 1 << 30}, {1, 1}), "no error") << "empty";
  expect_contains(x(0, {0, 1 << 30, 1 << 30, 1 << 30}, {1, 1, 1, 1}), {"too large"});
  for (const std::string& text :
       {x(1, {2, 3}, {3, 1}), x(0, {2, 3}, {4, 1}), x(-1, {2, 3}, {3, 1}), x(0, {7}, {1}),
        x(0, {2, 2}, {2147483647, 2147483647}), x(0, {6}, {1}, "FloatStorage", -6),
        x(0, {1}, {1}, "DoubleStorage", 0)})
    expect_contains(text, {"net.pt", "tensor 'x' reads beyond its storage"});
  expect_contains(x(0, {2, 3}, {-3, 1}), {"'x' has extents or strides below 0"});
  expect_contains(x(0, {-2, 3}, {3, 1}), {"'x' has extents or strides below 0"});
  expect_contains(x(0, {1 << 30, 1 << 30, 1 << 30}, {0, 0, 0}), {"'x' has extents or strides"});
  expect_contains(x(0, {2, 3}, {1}), {"'x' has 2 axes and 1 strides"});
  expect_contains(x(0, std::vector<int32_t>(25, 1), std::vector<int32_t>(25, 1)),
                  {"'x' has 25 axes", "at most 24"});
  expect_contains(x(0, {5}, {1}, "FloatStorage", 5),
                  {"'x' is in member 'net/data/0' of 24 bytes, expected 20"});
  expect_contains(x(0, {6}, {1}, "QInt8Storage"), {"'x' is of torch.QInt8Storage"});
  expect_contains(x(0, {6}, {1}, "UntypedStorage"), {"'x' is of torch.UntypedStorage"});
  expect_contains(told_of(dict({{"x", tensor(storage("FloatStorage", "9", 1), 0, {1}, {1})}}), six),
                  {"'x' is in member 'net/data/9', which is missing"});
  // A view of more than the machine has is listed, and stays a view.
  EXPECT_EQ(open(torch_file(dict({{"x", tensor(storage("FloatStorage", "0", 6), 0,
                                               {1 << 20, 1 << 20, 6}, {0, 0, 1})}}),
                            six))["x"]
                .shape(),
            (Shape{1 << 20, 1 << 20, 6}));
}

TEST_F(Pytorch, ForeignAndCutFiles) {
  expect_contains(told(""), {"net.pt", "it is empty"});
  expect_contains(told("abc"), {"begins with the bytes 61 62 63"});
  expect_contains(told("\x80\x02}q."), {"a Python pickle"});
  expect_contains(told(zip({{"a.npy", "x"}})), {"a zip archive without a data.pkl"});
  const std::string pickle = whole("}");
  expect_contains(told(zip({{"a/data.pkl", pickle}, {"b/data.pkl", pickle}})),
                  {"two members are named data.pkl: 'a/data.pkl' and 'b/data.pkl'"});
  expect_contains(told(zip({{"a/data.pkl", pickle}, {"a/data.pkl", pickle}})),
                  {"two members are named 'a/data.pkl'"});
  const std::string whole_file = tensor_bytes::small_torch_file();
  for (size_t size = 0; size < whole_file.size(); ++size)
    EXPECT_NE(told(whole_file.substr(0, size)), "no error") << size;
  std::string flipped = whole_file;
  flipped[flipped.find(bytes_of<float>({1, 2, 3, 4, 5, 6}))] ^= 1;
  expect_contains(told(flipped), {"net/data/0", "the checksum does not match"});
  EXPECT_EQ(load_pytorch((write_file(path_, whole_file), path_))[0].second.to_vector<double>(),
            (Values{1, 2, 3, 4, 5, 6}));
}

TEST_F(Pytorch, OpenedByContent) {
  write_file(path_, tensor_bytes::small_torch_file());
  EXPECT_EQ(open_tensor_file(path_)->format(), "PyTorch");
  save_npz(path_, {{"a/W", ones({2, 3})}, {"n", full({}, 3, dtype::int8)}});
  const auto npz = open_tensor_file(path_);
  EXPECT_EQ(npz->format(), "npz");
  EXPECT_EQ(npz->info("a/W").shape, (Shape{2, 3}));
  EXPECT_EQ(npz->info("a/W").type, "float64");
  EXPECT_EQ((*npz)["n"].item<int>(), 3);
  EXPECT_EQ(load_tensors(path_).size(), 2u);
  write_file(path_, zip({{"a.npy", dumps(ones({2}))}, {"b.txt", "x"}}));
  EXPECT_EQ(open_tensor_file(path_)->skipped(), (Names{"b.txt (not an .npy array)"}));
}

}  // namespace
}  // namespace catena::serializers
