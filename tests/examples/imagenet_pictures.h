// Pictures as files, for the tests of the examples.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#if defined(EXAMPLES_HAVE_JPEG) && defined(EXAMPLES_HAVE_PNG)
#include <jpeglib.h>
#include <png.h>

#include "common/decoding.h"

namespace catena::test {

// The value of a pixel in a channel.
using Pixel = std::function<int(int64_t y, int64_t x, int64_t channel)>;

inline std::vector<uint8_t> pixels_of(int64_t height, int64_t width, int64_t channels,
                                      const Pixel& value) {
  std::vector<uint8_t> pixels;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c) pixels.push_back(static_cast<uint8_t>(value(y, x, c)));
  return pixels;
}

inline examples::Picture picture_of(int64_t height, int64_t width, const Pixel& value) {
  return {height, width, pixels_of(height, width, 3, value)};
}

// 1 channel: gray; 3: colours; 4: also how opaque they are.
inline void write_png(const std::string& path, int64_t height, int64_t width, int64_t channels,
                      const Pixel& value) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_image_write_to_file(&image, path.c_str(), 0, pixels_of(height, width, channels, value).data(),
                          0, nullptr);
}

// 1 channel: gray; 3: colours; 4: cyan, magenta, yellow and black, as Adobe's programs write them.
inline void write_jpeg(const std::string& path, int64_t height, int64_t width, int channels,
                       const Pixel& value) {
  jpeg_error_mgr errors;
  jpeg_compress_struct info{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  FILE* const file = std::fopen(path.c_str(), "wb");
  jpeg_stdio_dest(&info, file);
  info.image_height = static_cast<JDIMENSION>(height);
  info.image_width = static_cast<JDIMENSION>(width);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 98, TRUE);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> pixels = pixels_of(height, width, channels, value);
  for (int64_t y = 0; y < height; ++y) {
    JSAMPROW row = pixels.data() + y * width * channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::fclose(file);
}

}  // namespace catena::test
#endif
