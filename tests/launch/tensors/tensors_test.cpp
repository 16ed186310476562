// The real catena-tensors: what it prints, and its exit statuses.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/serializers/safetensors.h"
#include "error_text.h"
#include "serializers/tensor_bytes.h"
#include "temp_folder.h"

namespace catena {
namespace {

struct Ended {
  int status;
  std::string text;  // standard output and error
};

class CatenaTensors : public ::testing::Test {
 protected:
  CatenaTensors() {
    write_file(folder_ / "net.pt", tensor_bytes::small_torch_file());
    save_npz(folder_ / "net.npz",
             {{"a/W", array<float>({{1, 2, 3}, {4, 5, 6}})}, {"a/n", full({}, 3, dtype::int64)}});
    serializers::save_safetensors(folder_ / "net.safetensors",
                                  NamedArrays{{"a.weight", array<float>({{1, 2, 3}, {4, 5, 7}})},
                                              {"a.n", full({}, 3, dtype::int64)}},
                                  {{"format", "pt"}});
  }
  // Runs it in the folder.
  Ended run(const std::string& arguments) const {
    const std::string line =
        "cd " + folder_.path() + " && " + CATENA_TENSORS + " " + arguments + " 2>&1";
    FILE* pipe = popen(line.c_str(), "r");
    std::string text;
    for (int c = 0; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    const int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
  }
  TempFolder folder_;
};

TEST_F(CatenaTensors, List) {
  const Ended pt = run("list net.pt");
  EXPECT_EQ(pt.status, 0);
  EXPECT_EQ(pt.text,
            "net.pt: PyTorch, 1 tensor, 24 bytes\n"
            "  x  torch.float32  (2, 3)  24 bytes\n");
  const Ended safetensors = run("list net.safetensors");
  EXPECT_EQ(safetensors.status, 0);
  EXPECT_EQ(safetensors.text,
            "net.safetensors: safetensors, 2 tensors, 32 bytes\n"
            "  a.n       I64  ()      8 bytes   at 160\n"
            "  a.weight  F32  (2, 3)  24 bytes  at 168\n"
            "metadata format: pt\n");
  expect_contains(run("list net.npz").text, {"net.npz: npz, 2 tensors", "a/W  float32  (2, 3)"});
  using namespace tensor_bytes::pickle;
  write_file(folder_ / "other.pt", tensor_bytes::torch_file(dict({{"epoch", "K\x03"}}), {}));
  EXPECT_EQ(run("list other.pt").text,
            "other.pt: PyTorch, 0 tensors, 0 bytes\nnot a tensor: epoch (int)\n");
}

TEST_F(CatenaTensors, NothingInAFileControlsTheTerminal) {
  write_file(folder_ / "hostile.safetensors",
             tensor_bytes::safetensors(
                 R"({"__metadata__":{"k\u001b[2J":"v\u0007\n"},"a\u001b[31m\nb\u009b":)"
                 R"({"dtype":"X\u007f","shape":[4],"data_offsets":[0,16]}})",
                 std::string(16, '\0')));
  EXPECT_EQ(run("list hostile.safetensors").text,
            "hostile.safetensors: safetensors, 1 tensor, 16 bytes\n"
            "  a\\x1b[31m\\x0ab\\xc2\\x9b  X\\x7f  (4,)  16 bytes  at 128\n"
            "metadata k\\x1b[2J: v\\x07\\x0a\n");
  for (const char* arguments :
       {"compare hostile.safetensors net.npz", "convert hostile.safetensors out.npz"}) {
    const std::string text = run(arguments).text;
    expect_contains(text, {"a\\x1b[31m", "\\xc2\\x9b"});
    EXPECT_EQ(text.find_first_of("\x1b\x07\x7f"), text.npos) << text;
  }
}

TEST_F(CatenaTensors, Compare) {
  const Ended differ = run("compare net.npz net.safetensors");
  EXPECT_EQ(differ.status, 1);
  EXPECT_EQ(differ.text,
            "  'net.npz'           'net.safetensors'\n"
            "  a/W (2, 3) float32  -  <- missing\n"
            "  a/n () int64        -  <- missing\n"
            "  -                   a.n () int64  <- unknown\n"
            "  -                   a.weight (2, 3) float32  <- unknown\n"
            "first mismatch: 'a/W' is (2, 3) float32 in 'net.npz', missing in 'net.safetensors'\n");
  write_file(folder_ / "names.txt", "pytorch\n");
  const Ended same = run("compare net.npz net.safetensors --map names.txt");
  EXPECT_EQ(same.status, 0) << same.text;
  expect_contains(same.text,
                  {"a/W (2, 3) float32  a.weight (2, 3) float32\n", "\n2 tensors fit\n"});
  const Ended values = run("compare net.npz net.safetensors --map names.txt --values");
  EXPECT_EQ(values.status, 1);
  expect_contains(values.text, {"first difference: 'a/W' has other elements in 'net.safetensors', "
                                "by up to 1\n"});
  write_file(folder_ / "kept.txt", "keep a/n\nskip a\\.n\npytorch\n");
  const Ended kept = run("compare net.npz net.safetensors --map kept.txt --values");
  EXPECT_EQ(kept.status, 1);
  expect_contains(kept.text, {"first difference: 'a/W' has other elements"});
  const Ended equal = run("compare net.npz net.npz --values");
  EXPECT_EQ(equal.status, 0);
  expect_contains(equal.text, {"2 tensors fit and are equal\n"});
}

TEST_F(CatenaTensors, Convert) {
  write_file(folder_ / "names.txt", "skip .*n\nto-pytorch\n");
  const Ended ended = run("convert net.npz out.safetensors --map names.txt");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.text, "out.safetensors: 1 tensor, 1 left out by the map\n");
  const NamedArrays arrays = serializers::load_safetensors(folder_ / "out.safetensors");
  ASSERT_EQ(arrays.size(), 1u);
  EXPECT_EQ(arrays[0].first, "a.weight");
  EXPECT_EQ(arrays[0].second.to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  expect_contains(run("convert net.safetensors out.npz --compressed").text,
                  {"out.npz: 2 tensors\n", "an .npz keeps no metadata: left out\n"});
  EXPECT_EQ(load_npz(folder_ / "out.npz").at("a.n").item<int>(), 3);
  EXPECT_EQ(run("convert net.safetensors again.safetensors").status, 0);
  EXPECT_EQ(read_file(folder_ / "again.safetensors"), read_file(folder_ / "net.safetensors"));
  EXPECT_EQ(run("convert net.pt pt.npz").status, 0);
  EXPECT_EQ(load_npz(folder_ / "pt.npz").at("x").shape(), (Shape{2, 3}));
}

TEST_F(CatenaTensors, Errors) {
  const auto expect = [&](const std::string& arguments, std::initializer_list<const char*> parts) {
    SCOPED_TRACE(arguments);
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.status, 2);
    expect_contains(ended.text, parts);
  };
  expect("list absent.pt", {"catena-tensors: reading 'absent.pt'", "No such file"});
  write_file(folder_ / "text", "some text");
  expect("list text", {"expected a safetensors, .pt or .npz file", "bytes 73 6f 6d 65"});
  expect("convert net.pt out.pt", {"'out.pt' ends with neither .safetensors nor .npz"});
  expect("convert net.pt out.safetensors --compressed", {"--compressed is for .npz"});
  expect("compare net.pt net.npz --map text", {"text, line 1: 'some text' is not a rule"});
  expect("compare net.pt net.npz --map absent", {"absent"});
  expect("convert net.pt no/such.npz", {"create the folder first"});
  expect("", {"--help"});
  expect("list", {"FILE is required"});
  expect("list a b", {"--help"});
  expect("remove net.pt", {"--help"});
  EXPECT_EQ(folder_.entries(), 4);  // nothing was written
}

TEST_F(CatenaTensors, Help) {
  const Ended help = run("--help");
  EXPECT_EQ(help.status, 0);
  expect_contains(help.text, {"Lists, compares and converts files of tensors", "list", "compare",
                              "convert", "Exit status"});
  EXPECT_EQ(run("compare --help").status, 0);
  const Ended version = run("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.text.find("catena-tensors "), 0u);
}

}  // namespace
}  // namespace catena
