// The index of a checkpoint's folder: which file has which slice of which tensor.
//
// A folder has files of slices, written by as many processes as there were, "index.json", which
// describes them, and "complete", which is written last and has the size and the CRC-32 of the
// index. docs/guide/checkpoints.md describes the form for other readers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "catena/serializers/tensor_part.h"

namespace catena::serializers {

inline constexpr const char* kIndexName = "index.json";
inline constexpr const char* kCompleteName = "complete";

// Where the elements of a slice are.
struct SliceRecord {
  TensorSlice slice;
  int64_t file = 0;  // by its number in the index
  int64_t offset = 0;
  uint32_t crc = 0;  // CRC-32, as zlib's
};

struct SliceFile {
  std::string name;
  int64_t bytes = 0;
};

struct SliceIndex {
  int64_t step = 0;
  std::string id;  // of the save
  int64_t ranks = 1;
  std::vector<std::string> entries;  // in the order in which they were added
  std::vector<SliceFile> files;
  // By the name of the tensor; of one without elements a record of none.
  std::map<std::string, std::vector<SliceRecord>> tensors;
};

// The text of index.json, and back. `source` begins the errors: IoError for a text that is not one
// of these, and for slices outside of their tensor or file, or with elements of another slice.
std::string to_text(const SliceIndex& index);
SliceIndex parse_index(const std::string& text, const std::string& source);

// The same of what one process has written: its file and its records, without the rest.
std::string to_text(const SliceFile& file, const std::vector<SliceRecord>& records);
void parse_records(const std::string& text, const std::string& source, SliceFile& file,
                   std::vector<SliceRecord>& records);

// Slices as processes exchange them.
std::string pack(const std::vector<TensorSlice>& slices);
std::vector<TensorSlice> unpack(const std::string& text);
// What lists of equal slices have in common; for lists that are compared at each save.
uint64_t hash_of(const std::vector<TensorSlice>& slices);

// ValueError unless an index, and the lists that processes exchange, can hold the name: UTF-8
// without control characters.
void require_index_name(const std::string& name);

uint32_t crc_of(const void* data, size_t bytes, uint32_t before = 0);

}  // namespace catena::serializers
