#include "common/decoding.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "catena/core/error.h"
#ifdef EXAMPLES_HAVE_JPEG
#include <jpeglib.h>
// After jpeglib.h.
#include <jerror.h>
#endif
#ifdef EXAMPLES_HAVE_PNG
#include <png.h>
#endif

namespace examples {

using catena::fail;
using catena::IoError;
using catena::ValueError;

namespace {

void take_size(Picture& picture, uint64_t height, uint64_t width) {
  constexpr uint64_t kMostPixels = uint64_t(1) << 28;
  CATENA_CHECK(IoError, height > 0 && width > 0 && height <= kMostPixels / width, "it has ", height,
               " x ", width, " pixels, expected 1 to 2^28");
  picture.height = static_cast<int64_t>(height);
  picture.width = static_cast<int64_t>(width);
}

#ifdef EXAMPLES_HAVE_JPEG

// libjpeg reports errors through functions that must not return.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->text);
  std::longjmp(errors->back, 1);
}

// Of what libjpeg goes on after, missing data alone count as damage.
void heed(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) leave(info);
}

// The three steps come back by a jump when they fail: they own nothing.
bool read_header(jpeg_decompress_struct& info, JpegErrors& errors, const std::string& bytes) {
  if (setjmp(errors.back) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  const bool has_black = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = has_black ? JCS_CMYK : JCS_RGB;
  return true;
}

bool read_rows(jpeg_decompress_struct& info, JpegErrors& errors, uint8_t* pixels, size_t row) {
  if (setjmp(errors.back) != 0) return false;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    JSAMPROW to = pixels + row * info.output_scanline;
    jpeg_read_scanlines(&info, &to, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

// Of four numbers a pixel; Adobe's programs, which write such files, store them inverted.
std::vector<uint8_t> rgb_of_cmyk(const std::vector<uint8_t>& cmyk, bool is_inverted) {
  std::vector<uint8_t> rgb;
  rgb.reserve(cmyk.size() / 4 * 3);
  const auto light = [&](size_t i) { return is_inverted ? cmyk[i] : 255 - cmyk[i]; };
  for (size_t i = 0; i < cmyk.size(); i += 4)
    for (size_t c = 0; c < 3; ++c)
      rgb.push_back(static_cast<uint8_t>(light(i + c) * light(i + 3) / 255));
  return rgb;
}

Picture decode_jpeg(const std::string& bytes) {
  JpegErrors errors{};
  jpeg_decompress_struct info{};
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave;
  errors.manager.emit_message = heed;
  struct End {
    jpeg_decompress_struct& info;
    ~End() { jpeg_destroy_decompress(&info); }
  } const end{info};
  CATENA_CHECK(IoError, read_header(info, errors, bytes), "libjpeg: ", errors.text);
  Picture picture;
  take_size(picture, info.image_height, info.image_width);
  const bool has_black = info.out_color_space == JCS_CMYK;
  const size_t row = size_t(picture.width) * (has_black ? 4 : 3);
  std::vector<uint8_t> pixels(row * size_t(picture.height));
  CATENA_CHECK(IoError, read_rows(info, errors, pixels.data(), row), "libjpeg: ", errors.text);
  picture.rgb = has_black ? rgb_of_cmyk(pixels, info.saw_Adobe_marker != 0) : std::move(pixels);
  return picture;
}

#else

Picture decode_jpeg(const std::string&) {
  fail<ValueError>(
      "a JPEG file, but this program was built without libjpeg; install libjpeg-dev, "
      "configure and build again");
}

#endif
#ifdef EXAMPLES_HAVE_PNG

Picture decode_png(const std::string& bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  struct End {
    png_image& image;
    ~End() { png_image_free(&image); }
  } const end{image};
  CATENA_CHECK(IoError, png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) != 0,
               "libpng: ", image.message);
  image.format = PNG_FORMAT_RGB;
  Picture picture;
  take_size(picture, image.height, image.width);
  picture.rgb.resize(PNG_IMAGE_SIZE(image));
  const png_color white{255, 255, 255};
  CATENA_CHECK(IoError, png_image_finish_read(&image, &white, picture.rgb.data(), 0, nullptr) != 0,
               "libpng: ", image.message);
  return picture;
}

void encode_png(const std::string& path, const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(picture.height);
  image.width = static_cast<png_uint_32>(picture.width);
  image.format = PNG_FORMAT_RGB;
  CATENA_CHECK(
      IoError,
      png_image_write_to_file(&image, path.c_str(), 0, picture.rgb.data(), 0, nullptr) != 0, "'",
      path, "' cannot be written: ", image.message);
}

#else

[[noreturn]] void lacks_png() {
  fail<ValueError>(
      "a PNG file, but this program was built without libpng; install libpng-dev, "
      "configure and build again");
}
Picture decode_png(const std::string&) { lacks_png(); }
void encode_png(const std::string&, const Picture&) { lacks_png(); }

#endif

std::string read_bytes(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  CATENA_CHECK(IoError, file.good(), "cannot be opened: ", std::strerror(errno));
  // By read(), which notes a failure; iterators of the buffer would throw it, such as of a folder.
  std::string bytes;
  for (std::array<char, 65536> block; file.read(block.data(), block.size()) || file.gcount() > 0;)
    bytes.append(block.data(), static_cast<size_t>(file.gcount()));
  CATENA_CHECK(IoError, !file.bad() && !bytes.empty(), "cannot be read, or is empty");
  return bytes;
}

// What one pixel of a resized axis is made of.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

std::vector<Taps> taps_of(int64_t from, int64_t to) {
  const double scale = double(from) / double(to), reach = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    Taps& taps = all[size_t(i)];
    const double centre = (double(i) + 0.5) * scale - 0.5;
    taps.first = std::max<int64_t>(0, int64_t(std::ceil(centre - reach)));
    const int64_t last = std::min(from - 1, int64_t(std::floor(centre + reach)));
    double sum = 0;
    for (int64_t k = taps.first; k <= last; ++k) {
      taps.weights.push_back(float(1 - std::abs(double(k) - centre) / reach));
      sum += double(taps.weights.back());
    }
    for (float& weight : taps.weights) weight = float(double(weight) / sum);
  }
  return all;
}

// (rows, columns, 3) with other columns.
std::vector<float> with_columns(const Picture& picture, int64_t width) {
  const std::vector<Taps> taps = taps_of(picture.width, width);
  std::vector<float> result;
  result.reserve(size_t(picture.height * width * 3));
  for (int64_t y = 0; y < picture.height; ++y) {
    const uint8_t* const row = picture.rgb.data() + y * picture.width * 3;
    for (const Taps& t : taps) {
      std::array<float, 3> sum{};
      for (size_t k = 0; k < t.weights.size(); ++k)
        for (size_t c = 0; c < 3; ++c)
          sum[c] += t.weights[k] * float(row[size_t(t.first) * 3 + k * 3 + c]);
      result.insert(result.end(), sum.begin(), sum.end());
    }
  }
  return result;
}

}  // namespace

Picture read_picture(const std::string& path) {
  const std::string bytes = read_bytes(path);
  if (bytes.starts_with("\xff\xd8\xff")) return decode_jpeg(bytes);
  if (bytes.starts_with("\x89PNG")) return decode_png(bytes);
  fail<IoError>("is neither a JPEG nor a PNG file");
}

void write_png(const std::string& path, const Picture& picture) { encode_png(path, picture); }

bool has_png() {
#ifdef EXAMPLES_HAVE_PNG
  return true;
#else
  return false;
#endif
}

Picture resized(Picture picture, int64_t height, int64_t width) {
  CATENA_CHECK(ValueError, height > 0 && width > 0 && !picture.rgb.empty(),
               "resized: a picture of ", picture.height, " x ", picture.width,
               " pixels cannot become one of ", height, " x ", width);
  if (height == picture.height && width == picture.width) return picture;
  const std::vector<float> wide = with_columns(picture, width);
  const std::vector<Taps> taps = taps_of(picture.height, height);
  const size_t row = size_t(width) * 3;
  Picture result{height, width, std::vector<uint8_t>(size_t(height) * row)};
  std::vector<float> sums(row);
  for (int64_t y = 0; y < height; ++y) {
    const Taps& t = taps[size_t(y)];
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (size_t k = 0; k < t.weights.size(); ++k) {
      const float* const from = wide.data() + (size_t(t.first) + k) * row;
      for (size_t i = 0; i < row; ++i) sums[i] += t.weights[k] * from[i];
    }
    uint8_t* const to = result.rgb.data() + size_t(y) * row;
    for (size_t i = 0; i < row; ++i) to[i] = uint8_t(std::clamp(sums[i] + 0.5F, 0.0F, 255.0F));
  }
  return result;
}

}  // namespace examples
