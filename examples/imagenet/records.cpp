#include "records.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "networks.h"

namespace imagenet {

using catena::Array;
using catena::IoError;

namespace {

constexpr size_t kHeader = 128;
constexpr size_t kChunk = 256;  // pictures in memory

// Format 1.0 of NumPy, filled up with spaces.
std::string header_of(int64_t pictures, int64_t size) {
  const std::string side = std::to_string(size);
  std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (" +
                     std::to_string(pictures) + ", " + side + ", " + side + ", 3), }";
  text.resize(kHeader - 11, ' ');
  const std::string begin("\x93NUMPY\x01\x00", 8);
  return begin + static_cast<char>(kHeader - 10) + '\0' + text + '\n';
}

class Records final : public Source {
 public:
  Records(Array pictures, Array labels)
      : Source(pictures.length()), pictures_(std::move(pictures)), labels_(std::move(labels)) {}

  Picture read(int64_t i) const override {
    const int64_t height = pictures_.shape()[1], width = pictures_.shape()[2];
    const uint8_t* const from = pictures_.data<uint8_t>() + i * height * width * 3;
    return {height, width, std::vector<uint8_t>(from, from + height * width * 3)};
  }
  int32_t label(int64_t i) const override { return labels_.data<int32_t>()[i]; }
  std::string name(int64_t i) const override { return "record " + std::to_string(i); }

 private:
  Array pictures_, labels_;
};

// The pictures from `first` on that decode, and their labels, in order.
void append_chunk(const std::vector<LabelledPath>& list, size_t first, int64_t size,
                  int64_t threads, Skipped& skipped, std::ostream& file,
                  std::vector<int32_t>& labels) {
  std::vector<Picture> pictures(std::min(kChunk, list.size() - first));
  on_threads(std::ssize(pictures), threads, [&](int64_t i) {
    const std::string& path = list[first + size_t(i)].path;
    try {
      pictures[size_t(i)] = resized(read_picture(path), size, size);
    } catch (const IoError& error) {
      skipped.add(path, error.what(), std::ssize(list));
    }
  });
  for (size_t i = 0; i < pictures.size(); ++i) {
    if (pictures[i].rgb.empty()) continue;
    file.write(reinterpret_cast<const char*>(pictures[i].rgb.data()), std::ssize(pictures[i].rgb));
    labels.push_back(list[first + i].label);
  }
}

}  // namespace

std::string labels_of(const std::string& file) {
  CATENA_CHECK(ValueError, file.ends_with(".npy"),
               "records: expected a name that ends in "
               "'.npy', got '",
               file, "'");
  return file.substr(0, file.size() - 4) + ".labels.npy";
}

Written write_records(const std::vector<LabelledPath>& list, const std::string& file, int64_t size,
                      int64_t threads) {
  const std::string labels_file = labels_of(file), unfinished = file + ".unfinished";
  std::ofstream stream(unfinished, std::ios::binary);
  stream << std::string(kHeader, ' ');
  CATENA_CHECK(IoError, stream.flush().good(), "'", unfinished, "' cannot be written");
  Skipped skipped;
  std::vector<int32_t> labels;
  for (size_t first = 0; first < list.size(); first += kChunk) {
    append_chunk(list, first, size, threads, skipped, stream, labels);
    CATENA_CHECK(IoError, stream.good(), "'", unfinished, "' cannot be written; is the disk full?");
  }
  stream.seekp(0);
  stream << header_of(std::ssize(labels), size);
  stream.close();
  CATENA_CHECK(IoError, stream.good(), "'", unfinished, "' cannot be written; is the disk full?");
  catena::save(labels_file, catena::array(labels));
  std::filesystem::rename(unfinished, file);
  return {std::ssize(labels), skipped.count()};
}

std::shared_ptr<const Source> open_records(const std::string& file) {
  const Array labels = catena::load(labels_of(file));
  const Array pictures = catena::load(file, catena::MmapMode::kRead);
  CATENA_CHECK(ShapeError,
               pictures.ndim() == 4 && pictures.shape()[3] == 3 && pictures.size() > 0 &&
                   pictures.is_contiguous() && pictures.dtype() == catena::dtype::uint8 &&
                   labels.shape() == catena::Shape{pictures.length()} &&
                   labels.dtype() == catena::dtype::int32,
               "'", file, "' has ", pictures.dtype(), " of shape ", pictures.shape(),
               ", and its labels ", labels.dtype(), " of shape ", labels.shape(),
               "; expected uint8 (n, height, width, 3) and int32 (n), as make_records writes them");
  for (const int32_t label : labels.to_vector<int32_t>())
    CATENA_CHECK(IoError, label >= 0 && label < kClasses, "'", labels_of(file), "' has label ",
                 label, ", expected 0 to ", kClasses - 1);
  return std::make_shared<Records>(pictures, labels);
}

}  // namespace imagenet
