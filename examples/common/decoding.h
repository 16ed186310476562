// Pictures out of JPEG and PNG files, and into PNG files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace examples {

struct Picture {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> rgb;  // (height, width, 3)
};

// Reads a JPEG or PNG file, as Pillow's Image.open(path).convert("RGB") and OpenCV do: gray ones
// become coloured, transparency is dropped and leaves the colour below it, gamma, colour profiles
// and EXIF's orientation change nothing. Of 16 bits the upper 8 count, as in OpenCV; Pillow cuts
// gray ones off at 255. CMYK files are taken for inverted, as Adobe's programs write them.
//
// IoError, without the path, that says why: not there, neither of them, damaged, cut short, of more
// pixels than Pillow allows (178,956,970) or than the file can hold. ValueError where this program
// was built without the library for the file.
Picture read_picture(const std::string& path);
// Writes a PNG file. IoError where that is not possible, ValueError where this program was built
// without libpng, which has_png() says.
void write_png(const std::string& path, const Picture& picture);
bool has_png();

// Bilinear; where the picture shrinks, over all pixels that fall together. ValueError for sizes
// below 1 and pictures without pixels.
Picture resized(Picture picture, int64_t height, int64_t width);

}  // namespace examples
