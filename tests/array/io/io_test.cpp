// Files: what is written is read back, by us and by NumPy; damaged files are errors, never crashes;
// a write that fails leaves the old file.
#include "catena/array/io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <numeric>

#include "array/io/zip.h"
#include "catena/array/creation.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena {
namespace {

// An array of the dtype whose bytes are 0, 1, 2, ... (bool: 0 and 1).
Array patterned(const Shape& shape, Dtype dtype) {
  std::string bytes(static_cast<size_t>(element_count(shape)) * itemsize(dtype), '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  if (dtype == Dtype::kBool) {
    for (char& b : bytes) b = b & 1;
  }
  return array_from_bytes(bytes.data(), shape, dtype, cpu(0));
}

std::string bytes_of(const Array& a) {
  const Array c = a.contiguous();
  return {static_cast<const char*>(c.raw_data()), static_cast<size_t>(c.nbytes())};
}

void expect_same(const Array& a, const Array& b) {
  EXPECT_EQ(a.dtype(), b.dtype());
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_EQ(bytes_of(a), bytes_of(b));
}

std::string npy(const std::string& header, const std::string& data, char major = 1) {
  const size_t length = header.size();
  std::string file = std::string("\x93NUMPY") + major + '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i)
    file += static_cast<char>(length >> (8 * i) & 0xff);
  return file + header + data;
}

std::string load_error(const std::string& path, bool npz = false) {
  return error_of<IoError>([&] { npz ? void(load_npz(path)) : void(load(path)); });
}

class EveryDtype : public ::testing::TestWithParam<int> {
 protected:
  Dtype dtype() const { return static_cast<Dtype>(GetParam()); }
  TempFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Io, EveryDtype, ::testing::Range(0, kDtypeCount), [](const auto& info) {
  return std::string(name(static_cast<Dtype>(info.param)));
});

TEST_P(EveryDtype, NpyRoundTrip) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{2, 0, 3}, Shape{2, 3, 5}}) {
    const Array a = patterned(shape, dtype());
    save(folder_ / "a.npy", a);
    expect_same(load(folder_ / "a.npy"), a);
    EXPECT_EQ(std::filesystem::file_size(folder_ / "a.npy") - static_cast<size_t>(a.nbytes()),
              128u);
  }
}

TEST_P(EveryDtype, FortranOrderAndStridesSurvive) {
  const Array a = patterned({4, 6}, dtype());
  save(folder_ / "t.npy", a.T());
  expect_contains(read_file(folder_ / "t.npy"), {"'fortran_order': True"});
  expect_same(load(folder_ / "t.npy"), a.T());
  const Array every_second = a(Slice(none, none, 2), Slice(5, none, -2));
  save(folder_ / "s.npy", every_second);
  expect_same(load(folder_ / "s.npy"), every_second);
}

TEST_P(EveryDtype, BigEndianFilesAreSwapped) {
  const Array a = patterned({3}, dtype());
  std::string data = bytes_of(a);
  const bool raw = dtype() == Dtype::kBFloat16;  // stored as raw bytes, which have no order
  const size_t item = itemsize(dtype());
  for (size_t i = 0; !raw && i < data.size(); i += item) std::reverse(&data[i], &data[i] + item);
  const char kind = dtype() == Dtype::kBool  ? 'b'
                    : raw                    ? 'V'
                    : is_float(dtype())      ? 'f'
                    : is_signed_int(dtype()) ? 'i'
                                             : 'u';
  write_file(folder_ / "b.npy", npy(message("{'descr': '>", std::string(1, kind), item,
                                            "', 'fortran_order': False, 'shape': (3,)}\n"),
                                    data));
  expect_same(load(folder_ / "b.npy"), a);
}

TEST_P(EveryDtype, NpzRoundTrip) {
  for (const bool compressed : {false, true}) {
    const NamedArrays arrays = {{"l1/W", patterned({20, 30}, dtype())},
                                {"empty", patterned({0, 4}, dtype())},
                                {"\xC3\xA9", patterned({}, dtype())}};
    save_npz(folder_ / "a.npz", arrays, compressed);
    const auto loaded = load_npz(folder_ / "a.npz");
    ASSERT_EQ(loaded.size(), arrays.size());
    for (const auto& [name, array] : arrays) expect_same(loaded.at(name), array);
  }
}

TEST_P(EveryDtype, SavezNumbersWhatHasNoName) {
  const Array a = patterned({2, 3}, dtype()), b = patterned({}, dtype()),
              c = patterned({4}, dtype());
  savez(folder_ / "a.npz", {a, b}, {{"c", c}});
  NpzFile file(folder_ / "a.npz");
  EXPECT_EQ(file.names(), (std::vector<std::string>{"arr_0", "arr_1", "c"}));
  expect_same(file["arr_0"], a);
  expect_same(file["arr_1"], b);
  expect_same(file["c"], c);
  savez_compressed(folder_ / "b.npz", {a});
  expect_same(load_npz(folder_ / "b.npz").at("arr_0"), a);
  savez(folder_ / "c.npz", {}, {{"arr_0", c}});
  expect_same(load_npz(folder_ / "c.npz").at("arr_0"), c);
  EXPECT_THROW(savez(folder_ / "d.npz", {a}, {{"arr_0", c}}), ValueError);
  EXPECT_THROW(savez(folder_ / "d.npz", {Array()}), ValueError);
}

class IoTest : public ::testing::Test {
 protected:
  TempFolder folder_;
};

TEST_F(IoTest, HeaderVariants) {
  const Array expected = array<int32_t>({1, 2});
  const std::string data = bytes_of(expected);
  const std::string dict = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
  for (const auto& file :
       {npy(dict, data), npy(dict + "   \n", data, 2), npy(dict, data, 3),
        npy("{\"shape\":(2L,),\"descr\":\"i4\",\"fortran_order\":True}", data),
        npy(" { 'fortran_order' : False , 'shape' : ( 2 , ) , 'descr' : '=i4' } ", data)}) {
    write_file(folder_ / "h.npy", file);
    expect_same(load(folder_ / "h.npy"), expected);
  }
}

TEST_F(IoTest, BoolBytesBecomeZeroOrOne) {
  write_file(folder_ / "b.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}",
                                    std::string("\0\x01\x7f", 3)));
  EXPECT_EQ(bytes_of(load(folder_ / "b.npy")), std::string("\0\x01\x01", 3));
}

TEST_F(IoTest, BadNpyFilesAreNamed) {
  const std::string f4 = "{'descr': '<f4', 'fortran_order': False, 'shape': ";
  const struct {
    const char* expected;
    std::string file;
  } cases[] = {
      {"found only 0 bytes", ""},
      {"load_npz", "PK\x03\x04 and something longer than a header"},
      {"first bytes are not", "\x93NUMPI and something longer than a header"},
      {"version 4.0", npy(f4 + "()}", "1234", 4)},
      {"claims 70", npy(f4 + "()}", "1234").replace(8, 1, "F").substr(0, 60)},
      {"needs 8 bytes", npy(f4 + "(2,)}", "1234567")},
      {"too many bytes", npy(f4 + "(9223372036854775807, 4)}", "1234")},
      {"needs 4000000000000 bytes", npy(f4 + "(1000000, 1000000)}", "1234")},
      {"expected an extent", npy(f4 + "(-1,)}", "")},
      {"expected an extent", npy(f4 + "(99999999999999999999,)}", "")},
      {"more than 24 dimensions",
       npy(f4 + "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,)}", "1234")},
      {"unsupported dtype '<c8'",
       npy("{'descr': '<c8', 'fortran_order': False, 'shape': ()}", "12345678")},
      {"unsupported dtype '|O'",
       npy("{'descr': '|O', 'fortran_order': False, 'shape': ()}", "12345678")},
      {"structured", npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "1234")},
      {"True or False", npy("{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", "1234")},
      {"are needed", npy("{'descr': '<f4', 'shape': ()}", "1234")},
      {"repeated key",
       npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "1234")},
      {"without an end", npy("{'descr': '<f4", "")},
      {"text after the dict", npy(f4 + "()} x", "1234")},
      {"expected '{'", npy("", "1234")},
  };
  for (const auto& [expected, file] : cases) {
    write_file(folder_ / "bad.npy", file);
    const std::string text = load_error(folder_ / "bad.npy");
    EXPECT_NE(text.find(expected), std::string::npos) << text << "\nexpected: " << expected;
    expect_contains(text, {"bad.npy"});
  }
}

// A header is padded with blanks: they do not belong into a message.
TEST_F(IoTest, BadHeadersAreShownWithoutTheirPadding) {
  const std::string header =
      "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }" + std::string(100, ' ') + "\n";
  write_file(folder_ / "object.npy", npy(header, ""));
  const std::string text = load_error(folder_ / "object.npy");
  expect_contains(text, {"bad .npy header", "'shape': (3,), }"});
  EXPECT_TRUE(text.ends_with("}")) << text;
}

TEST_F(IoTest, LoadedArraysNameWhatThereIs) {
  save_npz(folder_ / "a.npz", {{"x", arange(3)}, {"y", arange(2)}});
  const auto arrays = load_npz(folder_ / "a.npz");
  EXPECT_EQ(arrays["y"].size(), 2);
  EXPECT_EQ(arrays.at("x").size(), 3);
  EXPECT_EQ(arrays.size(), 2u);
  for (const auto& call :
       std::vector<std::function<void()>>{[&] { arrays.at("z"); }, [&] { arrays["z"]; }})
    expect_contains(error_of<IndexError>(call), {"load_npz", "'z'", "there are: x, y"});
  const std::map<std::string, Array> plain = load_npz(folder_ / "a.npz");
  EXPECT_EQ(plain.size(), 2u);
}

// save writes one array; what NumPy would call "a.npz.npy" would be taken for an archive.
TEST_F(IoTest, SaveRefusesTheNameOfAnArchive) {
  expect_contains(error_of<ValueError>([&] { save(folder_ / "a.npz", arange(3)); }),
                  {"save", "a.npz", "save_npz"});
  EXPECT_EQ(folder_.entries(), 0);
}

TEST_F(IoTest, MissingFilesAndFolders) {
  expect_contains(load_error(folder_ / "none.npy"), {"No such file"});
  expect_contains(load_error(folder_.path()), {"found a folder"});
  expect_contains(load_error("/dev/null"), {"a device or pipe"});
}

// Every prefix of a valid file is an error, and every single damaged byte is an error or (in fields
// that do not matter) gives the same array.
void damage_everywhere(const TempFolder& folder, const std::string& valid, bool npz,
                       const Array& original) {
  const std::string path = folder / (npz ? "damaged.npz" : "damaged.npy");
  for (size_t size = 0; size < valid.size(); ++size) {
    write_file(path, valid.substr(0, size));
    EXPECT_NE(load_error(path, npz), "no error") << "a prefix of " << size << " bytes loaded";
  }
  int refused = 0;
  for (size_t at = 0; at < valid.size(); ++at) {
    for (const char change : {'\x01', '\x80', '\xff'}) {
      std::string damaged = valid;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      write_file(path, damaged);
      if (!npz) {
        refused += load_error(path) != "no error";
        continue;
      }
      try {
        const auto loaded = load_npz(path);
        if (loaded.count("x") == 1)
          expect_same(loaded.at("x"), original);  // the name may have changed
      } catch (const IoError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 50);
}

TEST_F(IoTest, DamagedNpy) {
  save(folder_ / "a.npy", patterned({2, 3}, Dtype::kFloat32));
  damage_everywhere(folder_, read_file(folder_ / "a.npy"), false, {});
}

TEST_F(IoTest, DamagedNpz) {
  const Array a = patterned({5, 3}, Dtype::kFloat32);
  for (const bool compressed : {false, true}) {
    save_npz(folder_ / "a.npz", {{"x", a}}, compressed);
    damage_everywhere(folder_, read_file(folder_ / "a.npz"), true, a);
  }
}

TEST_F(IoTest, WhatAKilledProcessLeftGoesWithTheNextSave) {
  const std::string path = folder_ / "a.npy";
  save(path, zeros({4}));
  const pid_t child = fork();
  if (child == 0) {
    const io::AtomicFile file(path);
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(folder_.entries(), 2);
  save(path, zeros({4}));
  EXPECT_EQ(folder_.entries(), 2) << "a minute has to pass";
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::minutes(2);
  for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
    std::filesystem::last_write_time(file, old);
  write_file(folder_ / ".b.npy.tmp.elsewhere.1.0", "another file's, of another host");
  {
    io::AtomicFile living(path);  // of a process that still writes
    save(path, ones({4}));
    EXPECT_EQ(folder_.entries(), 3);
  }
  EXPECT_EQ(folder_.entries(), 2);
  EXPECT_EQ(load(path).to_vector<int>(), std::vector<int>(4, 1));
}

TEST_F(IoTest, DamagedZip64) {
  const Array a = patterned({5, 3}, Dtype::kFloat32);
  save(folder_ / "a.npy", a);
  const std::string member = read_file(folder_ / "a.npy");
  const std::span<const char> part(member);
  io::AtomicFile file(folder_ / "a.npz");
  io::ZipWriter zip(file, 1);  // as if everything were larger than 4 GiB
  zip.add("x.npy", {&part, 1}, false);
  zip.finish();
  file.commit();
  expect_same(load_npz(folder_ / "a.npz").at("x"), a);
  damage_everywhere(folder_, read_file(folder_ / "a.npz"), true, a);
}

TEST_F(IoTest, BombsAreRefusedBeforeAllocating) {
  // A stored size of a few bytes that claims to inflate to 2^40.
  save_npz(folder_ / "a.npz", {{"x", patterned({4}, Dtype::kInt8)}}, true);
  std::string bytes = read_file(folder_ / "a.npz");
  const size_t record = bytes.rfind("PK\x01\x02");
  bytes.replace(record + 24, 4, "\xf0\xff\xff\xff");
  write_file(folder_ / "a.npz", bytes);
  expect_contains(load_error(folder_ / "a.npz", true), {"cannot hold"});
  // Two members that are the same bytes.
  save_npz(folder_ / "a.npz", {{"x", arange(4)}, {"y", arange(4)}});
  bytes = read_file(folder_ / "a.npz");
  bytes.replace(bytes.rfind("PK\x01\x02") + 42, 4, 4, '\0');
  write_file(folder_ / "a.npz", bytes);
  expect_contains(load_error(folder_ / "a.npz", true), {"'x.npy' and 'y.npy' share bytes"});
}

TEST_F(IoTest, NamesOfMembersAreChecked) {
  const Array a = patterned({2}, Dtype::kInt8);
  EXPECT_THROW(save_npz(folder_ / "a.npz", {{"x", a}, {"x", a}}), ValueError);
  EXPECT_THROW(save_npz(folder_ / "a.npz", {{"", a}}), ValueError);
  EXPECT_THROW(save_npz(folder_ / "a.npz", {{"x", Array()}}), ValueError);
  EXPECT_EQ(folder_.entries(), 0);
  save_npz(folder_ / "a.npz", {});
  EXPECT_TRUE(load_npz(folder_ / "a.npz").empty());
}

// Writing ----------------------------------------------------------------------------------------

TEST_F(IoTest, WriteReplacesWholeFile) {
  write_file_atomically(folder_ / "f", "a longer first text");
  ::chmod((folder_ / "f").c_str(), 0640);
  std::filesystem::create_symlink(folder_ / "f", folder_ / "link");
  write_file_atomically(folder_ / "link", std::string("second\0text", 11));
  EXPECT_EQ(read_file(folder_ / "f"), std::string("second\0text", 11));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(std::filesystem::status(folder_ / "f").permissions(), std::filesystem::perms(0640));
  EXPECT_EQ(folder_.entries(), 2);
}

TEST_F(IoTest, FullDiskKeepsTheOldFile) {
  save(folder_ / "a.npy", patterned({8}, Dtype::kInt8));
  const std::string before = read_file(folder_ / "a.npy");
  // A limit on the size of files fails in the middle of a write, as a full disk does.
  struct rlimit old {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 4096, old.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string text =
      error_of<IoError>([&] { save(folder_ / "a.npy", patterned({100000}, Dtype::kInt8)); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, handler);
  expect_contains(text, {"a.npy': cannot write: File too large", "unchanged"});
  EXPECT_EQ(read_file(folder_ / "a.npy"), before);
  EXPECT_EQ(folder_.entries(), 1);
}

TEST_F(IoTest, DevicesAreWrittenDirectly) {
  const std::string text = error_of<IoError>([&] { write_file_atomically("/dev/full", "x"); });
  expect_contains(text, {"'/dev/full': cannot write: No space left on device"});
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

std::string write_error(const std::string& path) {
  return error_of<IoError>([&] { write_file_atomically(path, "x"); });
}

TEST_F(IoTest, PipesAreWrittenOnlyIfSomebodyReads) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  expect_contains(write_error(folder_ / "pipe"), {"pipe without a reader"});
  const int reader = ::open((folder_ / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_EQ(write_error(folder_ / "pipe"), "no error");
  char byte = 0;
  EXPECT_EQ(::read(reader, &byte, 1), 1);
  ::close(reader);
}

TEST_F(IoTest, LinksOfOtherUsersAreRefused) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "********** needs root: links of other users NOT tested **********";
  }
  write_file(folder_ / "thesis", "kept");
  std::filesystem::create_symlink(folder_ / "thesis", folder_ / "a.npz");
  ASSERT_EQ(::lchown((folder_ / "a.npz").c_str(), 65534, 65534), 0);
  expect_contains(write_error(folder_ / "a.npz"), {"a symbolic link that another user made"});
  EXPECT_EQ(read_file(folder_ / "thesis"), "kept");
}

TEST_F(IoTest, PlantedTemporaryFilesDoNotStopAWrite) {
  write_file(folder_ / "a.npz", "old");
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string prefix = folder_ / (std::string(".a.npz.tmp.") + host + ".");
  ASSERT_EQ(::mkfifo((prefix + "999999.0").c_str(), 0666), 0);
  for (int i = 0; i < 50; ++i)  // names of a process with the same number in another container
    write_file(prefix + std::to_string(::getpid()) + "." + std::to_string(i), "");
  EXPECT_EQ(write_error(folder_ / "a.npz"), "no error");
  EXPECT_EQ(read_file(folder_ / "a.npz"), "x");
}

TEST_F(IoTest, MissingFolderIsNamed) {
  const std::string text =
      error_of<IoError>([&] { save(folder_ / "no/such/a.npy", patterned({1}, Dtype::kInt8)); });
  expect_contains(
      text, {"no/such/a.npy': cannot create a file in its folder", "create the folder first"});
  EXPECT_THROW(save(folder_.path(), patterned({1}, Dtype::kInt8)), IoError);
}

// NumPy itself -----------------------------------------------------------------------------------

// A Python that has NumPy: the system's package may lie behind another python3 on PATH.
std::string numpy_python() {
  for (const std::string program : {"python3", "/usr/bin/python3"}) {
    if (std::system((program + " -c 'import numpy' 2>/dev/null").c_str()) == 0) return program;
  }
  return "";
}

int run_script(const std::string& python, const std::string& folder, const std::string& script) {
  write_file(folder + "/script.py", script);
  return std::system(("cd '" + folder + "' && " + python + " script.py").c_str());
}

TEST_F(IoTest, NumpyReadsOursAndWeReadNumpys) {
  const std::string python = numpy_python();
  if (python.empty()) {
    GTEST_SKIP()
        << "********** python3-numpy is missing: NOT compared with NumPy itself **********";
  }
  ASSERT_EQ(run_script(python, folder_.path(), R"(
import numpy as np
names = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
a = {n: (np.arange(24).reshape(2, 3, 4) % 5).astype(n) for n in names}
np.savez("theirs.npz", **a)
np.savez_compressed("packed.npz", **a)
np.save("fortran.npy", np.asfortranarray(a["float32"]))
np.save("big.npy", a["int64"].astype(">i8"))
np.save("scalar.npy", np.float64(2.5))
)"),
            0);
  NamedArrays again;
  for (const char* file : {"theirs.npz", "packed.npz"}) {
    auto loaded = load_npz(folder_ / file);
    ASSERT_EQ(loaded.size(), 12u);
    for (const auto& [name, a] : loaded) {
      ASSERT_EQ(a.shape(), (Shape{2, 3, 4}));
      EXPECT_EQ(a.dtype(), parse_dtype(name));
      const auto values = a.to_vector<double>();
      for (size_t i = 0; i < 24; ++i)
        EXPECT_EQ(values[i], name == "bool" ? i % 5 != 0 : i % 5) << name;
    }
    again.assign(loaded.begin(), loaded.end());
  }
  EXPECT_EQ(load(folder_ / "fortran.npy").to_vector<float>()[23], 3);
  EXPECT_EQ(load(folder_ / "big.npy").to_vector<int64_t>()[4], 4);
  EXPECT_EQ(load(folder_ / "scalar.npy").item<double>(), 2.5);
  save_npz(folder_ / "ours.npz", again);
  save_npz(folder_ / "ours_packed.npz", again, true);
  save(folder_ / "t.npy", again[0].second.T());
  save(folder_ / "bf16.npy", patterned({3}, Dtype::kBFloat16));
  EXPECT_EQ(run_script(python, folder_.path(), R"(
import numpy as np, zipfile
theirs = np.load("theirs.npz")
for name in ["ours.npz", "ours_packed.npz"]:
    assert zipfile.ZipFile(name).testzip() is None
    ours = np.load(name)
    assert sorted(ours.files) == sorted(theirs.files)
    for key in theirs.files:
        assert ours[key].dtype == theirs[key].dtype, key
        assert (ours[key] == theirs[key]).all(), key
t = np.load("t.npy")
assert t.shape == (4, 3, 2) and t.flags.f_contiguous and (t == theirs["bool"].T).all()
b = np.load("bf16.npy")
assert b.dtype.itemsize == 2 and b.tobytes() == bytes(range(6))
)"),
            0);
}

}  // namespace
}  // namespace catena
