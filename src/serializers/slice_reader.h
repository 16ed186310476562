// Reads slices of tensors from the folder of a checkpoint, whichever slices were written.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "array/io/file_io.h"
#include "serializers/slice_index.h"

namespace catena::serializers {

// The checkpoint is not the one that was written: something is missing, is shorter or longer, or
// has another checksum. Other errors of reading (of the disk, too many open files, no memory) say
// nothing about it.
class DamageError : public IoError {
 public:
  using IoError::IoError;
};

class SliceReader {
 public:
  // Reads the index. DamageError naming what is missing or damaged, unless the folder is that of a
  // complete save and all files have their sizes. IoError for what cannot be read.
  explicit SliceReader(const std::string& folder);

  // Reads share `share` of `shares` of what was written, of about equal bytes, and checks it.
  // DamageError naming file and tensor when it is damaged.
  void check_pieces(int share, int shares) const;

  const std::string& folder() const { return folder_; }
  const SliceIndex& index() const { return index_; }
  // Of a tensor that the index has.
  const TensorSlice& tensor(const std::string& name) const {
    return index_.tensors.at(name).front().slice;
  }
  // The elements as a 1-d array on cpu:0, in the order of the slice; the tensor must be there, in
  // this shape and dtype. Reads the pieces that have some of them, and checks these. DamageError
  // naming file and tensor when they are damaged, or elements are missing.
  Array read(const TensorSlice& wanted) const;
  // A tensor in its shape.
  Array read_whole(const std::string& name) const;

 private:
  void check_files() const;
  const io::InputFile& open(int64_t file) const;
  std::vector<char> bytes_of(const SliceRecord& record) const;

  std::string folder_;
  SliceIndex index_;
  mutable std::vector<std::unique_ptr<io::InputFile>> files_;  // opened when needed
};

// Copies the elements that both slices of a tensor have, and returns their number. `from` and `to`
// are those of the slices, in their orders.
int64_t copy_common(const TensorSlice& source, const char* from, const TensorSlice& target,
                    char* to);

}  // namespace catena::serializers
