// Budget of memory and work for reading a file, whoever made it: a few of its bytes can ask for
// much memory and time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace catena {

// Counts what a reader keeps and does for the part of one file that describes the rest: names,
// shapes, values, an index. Readers charge it before they keep or do it. Elements are not charged:
// readers compare their size with the file's before they allocate.
//
// Every charge is an IoError where a limit is passed. The limits are far from what files of models
// need.
class ReadBudget {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{512} << 20;  // of memory
  static constexpr size_t kMostEntries = 1'000'000;            // tensors and what is beside them
  static constexpr size_t kLongestName = size_t{64} << 10;
  static constexpr uint64_t kMostSteps = uint64_t{1} << 28;  // about a second
  static constexpr int kDeepest = 64;                        // containers in containers

  // `source` begins the errors: "reading 'net.pt'".
  explicit ReadBudget(std::string source) : source_(std::move(source)) {}

  const std::string& source() const { return source_; }
  // Memory that is asked for; what is given back still counts.
  void charge_bytes(uint64_t bytes);
  // Work: a step is a value, or a byte that is copied or compared.
  void charge_steps(uint64_t steps);
  // An entry of this name, with the memory for what is known of it.
  void charge_entry(std::string_view name);
  // A name, or a part of one.
  void check_name(std::string_view name) const;
  // Containers that are inside of each other.
  void check_depth(int depth) const;

 private:
  std::string source_;
  uint64_t bytes_ = 0, steps_ = 0;
  size_t entries_ = 0;
};

}  // namespace catena
