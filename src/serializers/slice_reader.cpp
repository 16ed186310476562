#include "serializers/slice_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/nested_share.h"

namespace catena::serializers {

// Common elements ---------------------------------------------------------------------------------

namespace {

// A row of the source: elements that are neighbours in its memory and along its innermost axis.
class RowCopier {
 public:
  RowCopier(const TensorSlice& source, const char* from, const TensorSlice& target, char* to)
      : source_(source),
        target_(target),
        from_(from),
        to_(to),
        item_(int64_t(itemsize(source.dtype))),
        axes_(source.order.axes(source.shape.ndim())),
        strides_(target.order.strides(target.extent, 1)),
        inner_(size_t(axes_.back())) {}

  int64_t copy_all() {
    const int64_t row = source_.extent[inner_];
    for (int64_t at = source_.elements.begin; at < source_.elements.end;) {
      const int64_t in_row = at % row;
      const int64_t count = std::min(row - in_row, source_.elements.end - at);
      copy_row(at, in_row, count);
      at += count;
    }
    return copied_;
  }

 private:
  // Elements [at, at + count) of the source; the first is number `in_row` of its row.
  void copy_row(int64_t at, int64_t in_row, int64_t count) {
    int64_t rest = at / source_.extent[inner_], place = 0;
    for (size_t k = axes_.size() - 1; k-- > 0;) {
      const auto axis = size_t(axes_[k]);
      const int64_t where = source_.begin[axis] + rest % source_.extent[axis] - target_.begin[axis];
      rest /= source_.extent[axis];
      if (where < 0 || where >= target_.extent[axis]) return;
      place += where * strides_[axis];
    }
    const int64_t first = source_.begin[inner_] + in_row - target_.begin[inner_];
    const int64_t begin = std::max<int64_t>(first, 0);
    const int64_t end = std::min(first + count, target_.extent[inner_]);
    const char* from = from_ + (at - source_.elements.begin + begin - first) * item_;
    copy_elements(from, place + begin * strides_[inner_], end - begin);
  }
  // `count` neighbours of the source to the target's element `place` and those along the axis.
  void copy_elements(const char* from, int64_t place, int64_t count) {
    const int64_t stride = strides_[inner_], first = target_.elements.begin;
    if (stride == 1) {
      const int64_t begin = std::max(place, first);
      const int64_t end = std::min(place + count, target_.elements.end);
      if (begin >= end) return;
      std::memcpy(to_ + (begin - first) * item_, from + (begin - place) * item_,
                  size_t((end - begin) * item_));
      copied_ += end - begin;
      return;
    }
    for (int64_t k = 0; k < count; ++k, place += stride, from += item_) {
      if (place < first || place >= target_.elements.end) continue;
      std::memcpy(to_ + (place - first) * item_, from, size_t(item_));
      ++copied_;
    }
  }

  const TensorSlice &source_, &target_;
  const char* from_;
  char* to_;
  int64_t item_;
  Axes axes_;
  Strides strides_;  // in elements
  size_t inner_;
  int64_t copied_ = 0;
};

bool has_same_box(const TensorSlice& a, const TensorSlice& b) {
  return a.begin == b.begin && a.extent == b.extent &&
         a.order.axes(a.shape.ndim()) == b.order.axes(b.shape.ndim());
}

// Whether the slices may have elements in common.
bool may_meet(const TensorSlice& a, const TensorSlice& b) {
  if (has_same_box(a, b)) return optimizers::intersection(a.elements, b.elements).size() > 0;
  for (size_t axis = 0; axis < a.shape.size(); ++axis)
    if (a.begin[axis] >= b.begin[axis] + b.extent[axis] ||
        b.begin[axis] >= a.begin[axis] + a.extent[axis])
      return false;
  return true;
}

}  // namespace

int64_t copy_common(const TensorSlice& source, const char* from, const TensorSlice& target,
                    char* to) {
  if (!has_same_box(source, target)) return RowCopier(source, from, target, to).copy_all();
  const auto common = optimizers::intersection(source.elements, target.elements);
  const auto item = int64_t(itemsize(source.dtype));
  if (common.size() > 0)
    std::memcpy(to + (common.begin - target.elements.begin) * item,
                from + (common.begin - source.elements.begin) * item, size_t(common.size() * item));
  return common.size();
}

// Files -------------------------------------------------------------------------------------------

namespace {

// IoError where the system does not tell.
bool exists(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return true;
  CATENA_CHECK(IoError, errno == ENOENT, "reading '", path, "': ", std::strerror(errno));
  return false;
}

constexpr uint64_t kLongestComplete = 64;                // two numbers
constexpr uint64_t kLongestIndex = uint64_t{256} << 20;  // of about a million slices

std::string read_existing(const std::string& folder, const char* name, uint64_t longest) {
  const std::string path = folder + "/" + name;
  CATENA_CHECK(serializers::DamageError, exists(folder), "there is no checkpoint '", folder, "'");
  CATENA_CHECK(serializers::DamageError, exists(path), "'", folder, "' has no file '", name, "': ",
               name == std::string(kCompleteName)
                   ? "its save did not end, or it was not copied as a whole"
                   : "it was removed, or not copied");
  const io::InputFile file(path);
  CATENA_CHECK(serializers::DamageError, file.size() <= longest, "'", path, "' is damaged: it has ",
               file.size(), " bytes, expected were at most ", longest);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, text.data(), text.size());
  return text;
}

}  // namespace

SliceReader::SliceReader(const std::string& folder) : folder_(folder) {
  const std::string complete = read_existing(folder, kCompleteName, kLongestComplete);
  unsigned long long bytes = 0;
  unsigned crc = 0;
  CATENA_CHECK(serializers::DamageError,
               std::sscanf(complete.c_str(), "%llu %x", &bytes, &crc) == 2, "'", folder, "/",
               kCompleteName, "': expected the size and the checksum of ", kIndexName);
  const std::string text = read_existing(folder, kIndexName, kLongestIndex);
  CATENA_CHECK(serializers::DamageError,
               text.size() == bytes && crc_of(text.data(), text.size()) == crc, "'", folder, "/",
               kIndexName, "' is damaged: it has ", text.size(), " bytes, written were ", bytes,
               ", or another checksum");
  index_ = parse_index(text, folder + "/" + kIndexName);
  files_.resize(index_.files.size());
  check_files();
}

void SliceReader::check_files() const {
  for (const SliceFile& file : index_.files) {
    const std::string path = folder_ + "/" + file.name;
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      const bool is_missing = errno == ENOENT;
      const std::string text = message(
          "'", path, "', which the checkpoint needs, cannot be read: ", std::strerror(errno));
      CATENA_CHECK(
          serializers::DamageError, !is_missing, text,
          "; copy the whole folder. On several hosts it must be on a file system that all ",
          "of them share");
      fail<IoError>(text);
    }
    CATENA_CHECK(serializers::DamageError, status.st_size == file.bytes, "'", path, "' has ",
                 status.st_size, " bytes, written were ", file.bytes, ": it is ",
                 status.st_size < file.bytes ? "truncated" : "damaged");
  }
}

const io::InputFile& SliceReader::open(int64_t file) const {
  auto& opened = files_[size_t(file)];
  if (!opened)
    opened = std::make_unique<io::InputFile>(folder_ + "/" + index_.files[size_t(file)].name);
  return *opened;
}

std::vector<char> SliceReader::bytes_of(const SliceRecord& record) const {
  const io::InputFile& file = open(record.file);
  const uint64_t end = uint64_t(record.offset) + uint64_t(record.slice.bytes());
  CATENA_CHECK(serializers::DamageError, end <= file.size(), "'", file.path(),
               "' is truncated: it ", "has ", file.size(), " bytes, '", record.slice.name,
               "' ends at ", end);
  std::vector<char> bytes(size_t(record.slice.bytes()));
  file.read_at(uint64_t(record.offset), bytes.data(), bytes.size());
  CATENA_CHECK(serializers::DamageError, crc_of(bytes.data(), bytes.size()) == record.crc, "'",
               file.path(), "' is damaged: bytes ", record.offset, " to ",
               record.offset + record.slice.bytes(), ", of '", record.slice.name,
               "', have another checksum than when they were written");
  return bytes;
}

void SliceReader::check_pieces(int share, int shares) const {
  int64_t total = 0, before = 0;
  for (const SliceFile& file : index_.files) total += file.bytes;
  const int64_t begin = begin_of_share(total, share, shares);
  const int64_t end = begin_of_share(total, int64_t(share) + 1, shares);
  for (const auto& [name, records] : index_.tensors)
    for (const SliceRecord& record : records) {
      if (before >= begin && before < end) (void)bytes_of(record);
      before += record.slice.bytes();
    }
}

Array SliceReader::read(const TensorSlice& wanted) const {
  const Array result = Array::uninitialized({wanted.elements.size()}, wanted.dtype, cpu(0));
  int64_t count = 0;
  for (const SliceRecord& record : index_.tensors.at(wanted.name)) {
    if (!may_meet(record.slice, wanted)) continue;
    const std::vector<char> bytes = bytes_of(record);
    count += copy_common(record.slice, bytes.data(), wanted, static_cast<char*>(result.raw_data()));
  }
  CATENA_CHECK(serializers::DamageError, count == wanted.elements.size(), "'", folder_, "' has ",
               count, " of ", wanted.elements.size(), " elements of '", wanted.name, "'");
  return result;
}

Array SliceReader::read_whole(const std::string& name) const {
  TensorSlice wanted = tensor(name);
  wanted.begin = Shape(wanted.shape.size(), 0);
  wanted.extent = wanted.shape;
  wanted.order = {};
  wanted.elements = {0, element_count(wanted.shape)};
  return read(wanted).reshape(wanted.shape);
}

}  // namespace catena::serializers
