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
using examples::LabelledPath;
using examples::Picture;
using examples::Skipped;

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

// The pictures from `first` on that decode, and their labels, in order.
void append_chunk(const std::vector<LabelledPath>& list, size_t first, int64_t size,
                  int64_t threads, Skipped& skipped, std::ostream& file,
                  std::vector<int32_t>& labels) {
  std::vector<Picture> pictures(std::min(kChunk, list.size() - first));
  examples::on_threads(std::ssize(pictures), threads, [&](int64_t i) {
    const std::string& path = list[first + size_t(i)].path;
    try {
      pictures[size_t(i)] = examples::resized(examples::read_picture(path), size, size);
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
  const int64_t left_out = std::ssize(list) - std::ssize(labels);
  CATENA_CHECK(IoError, !labels.empty(), "none of the ", left_out, " pictures could be decoded");
  stream.seekp(0);
  stream << header_of(std::ssize(labels), size);
  stream.close();
  CATENA_CHECK(IoError, stream.good(), "'", unfinished, "' cannot be written; is the disk full?");
  catena::save(labels_file, catena::array(labels));
  std::filesystem::rename(unfinished, file);
  return {std::ssize(labels), left_out};
}

std::shared_ptr<const examples::Source> open_records(const std::string& file) {
  const Array labels = catena::load(labels_of(file));
  const Array pictures = catena::load(file, catena::MmapMode::kRead);
  return examples::source_of(pictures, labels, kClasses, {file, labels_of(file), "make_records"});
}

}  // namespace imagenet
