#include "common/decoding.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>

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
  // Pillow refuses larger pictures, too.
  constexpr uint64_t kMostPixels = 178'956'970;
  CATENA_CHECK(IoError, height > 0 && width > 0 && height <= kMostPixels / width, "it has ", height,
               " x ", width, " pixels, expected 1 to ", kMostPixels);
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

// Each scan of a progressive file goes over the whole picture, and may have only a few bytes.
void limit_scans(j_common_ptr info) {
  constexpr int kMostScans = 500;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  std::snprintf(errors->text, sizeof(errors->text), "more than %d scans", kMostScans);
  std::longjmp(errors->back, 1);
}

// The two steps come back by a jump when they fail: they own nothing.
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

// Of four numbers a pixel, which Adobe's programs store inverted. Files by others do not say
// whether theirs are; Pillow takes them for Adobe's.
std::vector<uint8_t> rgb_of_cmyk(const std::vector<uint8_t>& cmyk) {
  std::vector<uint8_t> rgb;
  rgb.reserve(cmyk.size() / 4 * 3);
  for (size_t i = 0; i < cmyk.size(); i += 4) {
    const int light = cmyk[i + 3];
    for (size_t c = 0; c < 3; ++c)
      rgb.push_back(static_cast<uint8_t>(light - ((255 - cmyk[i + c]) * light + 127) / 255));
  }
  return rgb;
}

Picture decode_jpeg(const std::string& bytes) {
  JpegErrors errors{};
  jpeg_decompress_struct info{};
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave;
  errors.manager.emit_message = heed;
  jpeg_progress_mgr progress{};
  progress.progress_monitor = limit_scans;
  struct End {
    jpeg_decompress_struct& info;
    ~End() { jpeg_destroy_decompress(&info); }
  } const end{info};
  CATENA_CHECK(IoError, read_header(info, errors, bytes), "libjpeg: ", errors.text);
  info.progress = &progress;
  Picture picture;
  take_size(picture, info.image_height, info.image_width);
  const bool has_black = info.out_color_space == JCS_CMYK;
  const size_t row = size_t(picture.width) * (has_black ? 4 : 3);
  std::vector<uint8_t> pixels(row * size_t(picture.height));
  CATENA_CHECK(IoError, read_rows(info, errors, pixels.data(), row), "libjpeg: ", errors.text);
  picture.rgb = has_black ? rgb_of_cmyk(pixels) : std::move(pixels);
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

// What libpng's functions get. Errors come through one that must not return.
struct PngFile {
  std::string_view rest;
  std::string error = {};
  png_structp png = nullptr;
  png_infop info = nullptr;

  explicit PngFile(const std::string& bytes) : rest(bytes) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail_with, [](png_structp, auto) {});
    if (png != nullptr) info = png_create_info_struct(png);
    CATENA_CHECK(IoError, info != nullptr, "libpng cannot be used: another version, or no memory");
    png_set_read_fn(png, this, give);
  }
  ~PngFile() { png_destroy_read_struct(&png, &info, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  [[noreturn]] static void fail_with(png_structp png, png_const_charp text) {
    static_cast<PngFile*>(png_get_error_ptr(png))->error = text;
    png_longjmp(png, 1);
  }
  static void give(png_structp png, png_bytep to, size_t count) {
    auto& file = *static_cast<PngFile*>(png_get_io_ptr(png));
    if (count > file.rest.size()) png_error(png, "the file ends too early");
    std::memcpy(to, file.rest.data(), count);
    file.rest.remove_prefix(count);
  }
};

// The steps come back by a jump when they fail: they own nothing.
bool read_header(const PngFile& file) {
  if (setjmp(png_jmpbuf(file.png)) != 0) return false;
  // Neither gamma nor profiles change pixels; what is compressed beside them stays so.
  png_set_keep_unknown_chunks(file.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(file.png, file.info);
  return true;
}

// Into three bytes a pixel: of 16 bits the upper 8, of transparent pixels their colour.
bool read_rows(const PngFile& file, png_bytepp rows) {
  if (setjmp(png_jmpbuf(file.png)) != 0) return false;
  png_set_expand(file.png);
  png_set_strip_16(file.png);
  png_set_strip_alpha(file.png);
  png_set_gray_to_rgb(file.png);
  png_set_interlace_handling(file.png);
  png_read_update_info(file.png, file.info);
  png_read_image(file.png, rows);
  png_read_end(file.png, nullptr);
  return true;
}

Picture decode_png(const std::string& bytes) {
  const PngFile file(bytes);
  CATENA_CHECK(IoError, read_header(file), "libpng: ", file.error);
  Picture picture;
  take_size(picture, png_get_image_height(file.png, file.info),
            png_get_image_width(file.png, file.info));
  // No byte of deflate makes more than 1032.
  const uint64_t packed = png_get_rowbytes(file.png, file.info) * uint64_t(picture.height);
  CATENA_CHECK(IoError, packed / 1032 <= bytes.size(), "its ", bytes.size(), " bytes cannot hold ",
               picture.height, " x ", picture.width, " pixels");
  picture.rgb.resize(size_t(picture.height * picture.width) * 3);
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < picture.height; ++y)
    rows.push_back(picture.rgb.data() + y * picture.width * 3);
  CATENA_CHECK(IoError, read_rows(file, rows.data()), "libpng: ", file.error);
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

// The weighted sum of rows of a picture.
void add_rows(const Picture& picture, const Taps& taps, std::vector<float>& sums) {
  const size_t row = sums.size();
  std::fill(sums.begin(), sums.end(), 0.0F);
  for (size_t k = 0; k < taps.weights.size(); ++k) {
    const uint8_t* const from = picture.rgb.data() + (size_t(taps.first) + k) * row;
    for (size_t i = 0; i < row; ++i) sums[i] += taps.weights[k] * float(from[i]);
  }
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
  const std::vector<Taps> of_rows = taps_of(picture.height, height),
                          of_columns = taps_of(picture.width, width);
  Picture result{height, width, {}};
  result.rgb.reserve(size_t(height * width) * 3);
  // One row at a time: a picture may have any number of them.
  std::vector<float> sums(size_t(picture.width) * 3);
  for (const Taps& rows : of_rows) {
    add_rows(picture, rows, sums);
    for (const Taps& columns : of_columns)
      for (size_t c = 0; c < 3; ++c) {
        float sum = 0;
        for (size_t k = 0; k < columns.weights.size(); ++k)
          sum += columns.weights[k] * sums[(size_t(columns.first) + k) * 3 + c];
        result.rgb.push_back(uint8_t(std::clamp(sum + 0.5F, 0.0F, 255.0F)));
      }
  }
  return result;
}

}  // namespace examples
