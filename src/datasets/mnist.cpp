#include "catena/datasets/mnist.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

namespace catena::datasets {
namespace {

constexpr char kPackagedFolder[] = "/usr/share/datasets/fashion-mnist";
constexpr char kHint[] =
    "; install the package dataset-fashion-mnist, or set CATENA_MNIST to a folder with the four "
    "MNIST-format files";

bool exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

// A file that zlib reads, compressed or not.
class GzipFile {
 public:
  explicit GzipFile(const std::string& path) : path_(path) {
    struct stat status {};
    errno = 0;
    const bool found = ::stat(path.c_str(), &status) == 0;
    file_ = found && S_ISREG(status.st_mode) ? gzopen(path.c_str(), "rb") : nullptr;
    if (file_ == nullptr) {
      fail<IoError>("cannot open '", path, "': ",
                    found && !S_ISREG(status.st_mode) ? "not a regular file" : std::strerror(errno),
                    kHint);
    }
    gzbuffer(file_, 1 << 18);
    bytes_on_disk_ = static_cast<uint64_t>(status.st_size);
  }
  ~GzipFile() {
    if (file_ != nullptr) gzclose(file_);
  }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  // No file holds more: deflate shrinks by at most this factor.
  uint64_t largest_content() const {
    return gzdirect(file_) ? bytes_on_disk_ : bytes_on_disk_ * 1032;
  }

  // Number of bytes read, less than asked only at the end.
  uint64_t read(void* destination, uint64_t bytes) {
    uint64_t done = 0;
    while (done < bytes) {
      const auto chunk = static_cast<unsigned>(std::min<uint64_t>(bytes - done, 1 << 30));
      const int count = gzread(file_, static_cast<char*>(destination) + done, chunk);
      if (count < 0) {
        int code = 0;
        const std::string reason = gzerror(file_, &code);
        fail<IoError>("'", path_, "' is damaged after ", done, " bytes: ", reason,
                      "; fetch it again");
      }
      if (count == 0) break;
      done += static_cast<uint64_t>(count);
    }
    return done;
  }
  // Call after the last byte: a compressed file must also end with its checksum.
  void close() {
    CATENA_CHECK(IoError, gzclose(std::exchange(file_, nullptr)) == Z_OK, "'", path_,
                 "' is cut short: the gzip checksum at its end is missing; fetch it again");
  }

 private:
  std::string path_;
  gzFile file_ = nullptr;
  uint64_t bytes_on_disk_ = 0;
};

std::optional<Dtype> dtype_of_code(int code) {
  switch (code) {
    case 0x08: return Dtype::kUInt8;
    case 0x09: return Dtype::kInt8;
    case 0x0B: return Dtype::kInt16;
    case 0x0C: return Dtype::kInt32;
    case 0x0D: return Dtype::kFloat32;
    case 0x0E: return Dtype::kFloat64;
    default: return {};
  }
}

std::string hex(const unsigned char* bytes, size_t count) {
  std::string text = "0x";
  for (size_t i = 0; i < count; ++i) {
    constexpr char digits[] = "0123456789abcdef";
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

struct IdxHeader {
  Dtype dtype;
  Shape shape;
  uint64_t bytes;  // of the elements
};

IdxHeader read_header(GzipFile& file, const std::string& path) {
  unsigned char magic[4];
  const uint64_t found = file.read(magic, sizeof magic);
  CATENA_CHECK(
      IoError, found == sizeof magic, "'", path, "' ends after ", found,
      " bytes; expected an idx file, which begins with a magic number of 4 bytes; fetch it again");
  const auto dtype = dtype_of_code(magic[2]);
  CATENA_CHECK(
      IoError, magic[0] == 0 && magic[1] == 0 && dtype && magic[3] >= 1 && magic[3] <= kMaxDims,
      "'", path, "' is not an idx file: its magic number is ", hex(magic, 4),
      ", expected 0x0000 followed by an element type (08 to 0e) and the number of dimensions; ",
      "is it a file of another kind?");
  IdxHeader header{*dtype, {}, itemsize(*dtype)};
  for (int i = 0; i < magic[3]; ++i) {
    unsigned char extent[4];
    CATENA_CHECK(IoError, file.read(extent, 4) == 4, "'", path, "' ends inside its header of ",
                 int{magic[3]}, " dimensions; fetch it again");
    header.shape.push_back(int64_t{extent[0]} << 24 | extent[1] << 16 | extent[2] << 8 | extent[3]);
    if (__builtin_mul_overflow(header.bytes, uint64_t(header.shape.back()), &header.bytes)) {
      header.bytes = UINT64_MAX;
    }
  }
  return header;
}

void swap_elements(char* data, uint64_t bytes, size_t item) {
  for (uint64_t i = 0; item > 1 && i < bytes; i += item) std::reverse(data + i, data + i + item);
}

// `folder`/`name` with or without ".gz", whichever exists.
std::string locate(const std::string& folder, const std::string& name) {
  for (const char* suffix : {"", ".gz"}) {
    if (exists(folder + "/" + name + suffix)) return folder + "/" + name + suffix;
  }
  fail<IoError>("no file '", name, "' or '", name, ".gz' in the folder '", folder, "'", kHint);
}

Array read_images(const std::string& path, const Shape& expected) {
  Array images = read_idx(path);
  CATENA_CHECK(IoError, images.dtype() == Dtype::kUInt8 && images.ndim() == 3, "'", path,
               "' holds ", images.dtype(), " of shape ", images.shape(),
               "; expected images: uint8 of three dimensions (magic number 0x00000803)");
  CATENA_CHECK(IoError, images.size() > 0, "'", path, "' holds no pixels: its shape is ",
               images.shape(), "; expected at least one image; is it the right file?");
  const Shape found{images.shape()[1], images.shape()[2]};
  CATENA_CHECK(IoError, expected.empty() || found == expected, "'", path, "' holds images of ",
               found[0], " x ", found[1], " pixels, expected ", expected[0], " x ", expected[1],
               "; give a data set of such images");
  return images;
}

Array read_labels(const std::string& path, int64_t count, int classes) {
  const Array labels = read_idx(path);
  CATENA_CHECK(IoError, labels.dtype() == Dtype::kUInt8 && labels.ndim() == 1, "'", path,
               "' holds ", labels.dtype(), " of shape ", labels.shape(),
               "; expected labels: uint8 of one dimension (magic number 0x00000801)");
  CATENA_CHECK(IoError, labels.size() == count, "'", path, "' holds ", labels.size(),
               " labels for ", count, " images; the two files must be of one data set");
  Array result = Array::uninitialized({count}, Dtype::kInt32, cpu(0));
  for (int64_t i = 0; i < count; ++i) {
    const int label = labels.data<uint8_t>()[i];
    CATENA_CHECK(IoError, label < classes, "'", path, "': label ", label, " at position ", i,
                 ", expected 0 to ", classes - 1,
                 "; is the number of classes right, or the file damaged?");
    result.data<int32_t>()[i] = label;
  }
  return result;
}

Shape sample_shape(const Array& images, int ndim) {
  const int64_t height = images.shape()[1], width = images.shape()[2];
  CATENA_CHECK(ValueError, ndim >= 1 && ndim <= 3, "load_mnist: ndim is ", ndim,
               ", expected 1, 2 or 3");
  if (ndim == 1) return {height * width};
  if (ndim == 2) return {height, width};
  return {1, height, width};
}

}  // namespace

Array read_idx(const std::string& path) {
  GzipFile file(path);
  const IdxHeader header = read_header(file, path);
  const std::string expected = message(
      "its header says shape ", header.shape, " of ", header.dtype, ", which is ",
      header.bytes == UINT64_MAX ? std::string("too many") : message(header.bytes), " bytes");
  // Compared before anything is allocated.
  CATENA_CHECK(IoError, header.bytes <= file.largest_content(), "'", path,
               "' is cut short: ", expected, ", more than the file can hold; fetch it again");
  Array result = Array::uninitialized(header.shape, header.dtype, cpu(0));
  char* data = static_cast<char*>(result.raw_data());
  const uint64_t found = file.read(data, header.bytes);
  CATENA_CHECK(IoError, found == header.bytes, "'", path, "' is cut short: ", expected,
               ", but only ", found, " follow; fetch it again");
  char extra;
  CATENA_CHECK(IoError, file.read(&extra, 1) == 0, "'", path,
               "' is longer than it should be: ", expected, ", but more follow; is it damaged?");
  file.close();
  swap_elements(data, header.bytes, itemsize(header.dtype));  // idx is big-endian
  return result;
}

std::string find_mnist(const std::string& folder) {
  if (!folder.empty()) {
    CATENA_CHECK(IoError, exists(folder), "the data folder '", folder, "' does not exist", kHint);
    return folder;
  }
  if (const char* variable = std::getenv("CATENA_MNIST"); variable && *variable)
    return find_mnist(variable);
  CATENA_CHECK(IoError, exists(kPackagedFolder), "no data set was found in '", kPackagedFolder, "'",
               kHint);
  return kPackagedFolder;
}

Mnist Mnist::images() const {
  const auto of = [](const ImageDataset& part) {
    return part.with_shape(sample_shape(part.images(), 3));
  };
  CATENA_CHECK(ValueError, train && test, "Mnist::images: there are no data; call load_mnist()");
  return {of(*train), of(*test), folder};
}

Mnist load_mnist(const MnistOptions& options) {
  Mnist mnist;
  CATENA_CHECK(ValueError, options.pixels.empty() || options.pixels.size() == 2,
               "load_mnist: pixels is ", options.pixels,
               ", expected {height, width}, or {} for any");
  mnist.folder = find_mnist(options.folder);
  const auto load = [&](const std::string& part) {
    const Array images =
        read_images(locate(mnist.folder, part + "-images-idx3-ubyte"), options.pixels);
    const Array labels = read_labels(locate(mnist.folder, part + "-labels-idx1-ubyte"),
                                     images.length(), options.classes);
    return std::make_shared<const ImageDataset>(images, labels, sample_shape(images, options.ndim),
                                                options.scale);
  };
  mnist.train = load("train");
  mnist.test = load("t10k");
  CATENA_CHECK(IoError, mnist.train->columns()[0].shape == mnist.test->columns()[0].shape, "'",
               mnist.folder, "': training samples have shape ", mnist.train->columns()[0].shape,
               ", test samples ", mnist.test->columns()[0].shape);
  return mnist;
}

}  // namespace catena::datasets
