// Pictures of examples/common: each kind of file gives the pixels that Pillow decodes.
#include "common/decoding.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "catena/array/io.h"
#include "catena/core/error.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena::test {
namespace {

using examples::Picture;

#if defined(EXAMPLES_HAVE_JPEG) && defined(EXAMPLES_HAVE_PNG)

std::string bytes_of(const Array& a) {
  return {static_cast<const char*>(a.raw_data()), static_cast<size_t>(a.size())};
}

// encode_pictures.py made the files and asked Pillow.
TEST(Decoding, GivesThePixelsThatPillowDecodes) {
  const TempFolder folder;
  const LoadedArrays stored = load_npz(PICTURES);
  int files = 0;
  for (const auto& [name, expected] : stored) {
    if (!name.ends_with(".rgb")) continue;
    const std::string file = name.substr(0, name.size() - 4);
    write_file(folder / file, bytes_of(stored.at(file)));
    const Picture found = examples::read_picture(folder / file);
    EXPECT_EQ((Shape{found.height, found.width, 3}), expected.shape()) << file;
    EXPECT_EQ(found.rgb, expected.to_vector<uint8_t>()) << file;
    ++files;
  }
  EXPECT_EQ(files, 39);
}

TEST(Decoding, RefusesFilesThatDemandMoreThanTheyHold) {
  const TempFolder folder;
  const LoadedArrays stored = load_npz(PICTURES);
  const auto refusal = [&](const std::string& bytes) {
    write_file(folder / "x", bytes);
    return error_of<IoError>([&] { examples::read_picture(folder / "x"); });
  };
  // Height and width stand 5 bytes behind the marker of the frame.
  const std::string jpeg = bytes_of(stored.at("jpeg-420-progressive"));
  std::string large = jpeg;
  large.replace(large.find("\xff\xc2") + 5, 4, "\xff\x10\xff\x10");
  expect_contains(refusal(large), {"it has 65296 x 65296 pixels, expected 1 to 178956970"});
  // The first scan, again and again.
  const size_t scan = jpeg.find("\xff\xda"), end = jpeg.find("\xff\xc4", scan);
  std::string scans = jpeg.substr(0, end);
  for (int i = 0; i < 500; ++i) scans += jpeg.substr(scan, end - scan);
  expect_contains(refusal(scans + jpeg.substr(end)), {"libjpeg: more than 500 scans"});
  // The first chunk of a PNG has its width at byte 16, and its checksum over bytes 12 to 28.
  std::string png = bytes_of(stored.at("png-0-1"));
  png[18] = png[22] = '\x20';
  const uint32_t sum = __builtin_bswap32(
      uint32_t(crc32(0, reinterpret_cast<const unsigned char*>(png.data()) + 12, 17)));
  std::memcpy(png.data() + 29, &sum, 4);
  expect_contains(refusal(png), {"bytes cannot hold 8199 x 8203 pixels"});
}

#endif

}  // namespace
}  // namespace catena::test
