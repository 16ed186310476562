// A table with a row an epoch, and the same numbers in a JSON log.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace catena::training {

// Named numbers of one epoch, in the order of the columns.
using Row = std::vector<std::pair<std::string, double>>;

// Where a Report prints and writes.
struct ReportOptions {
  // JSON file that is written anew (by rename) with each row; empty: none.
  std::string log = {};
  std::optional<bool> silent = {};  // no table; default: ranks other than 0 of a job
  std::ostream* out = nullptr;      // default: standard output
};

// Columns are those of the first row that is added: usually epoch, train_loss, train_accuracy,
// test_loss, test_accuracy, elapsed. The log is a list of objects with these keys; numbers that are
// not finite are null. Rows of an earlier run keep the columns that they have.
class Report {
 public:
  explicit Report(ReportOptions options = {});

  // Prints the row (and the heading before the first) and writes the log. Throws IoError when the
  // log cannot be written, ValueError when the names are not those of the first row added.
  void add(const Row& row);
  // The rows of an existing log. A missing log is none; a damaged one, or one with rows without
  // "epoch", is an IoError.
  std::vector<Row> read_log() const;
  // Takes over those of the rows whose "epoch" is at most `epoch`: what a resumed run begins with.
  void restore(std::vector<Row> rows, double epoch);
  // The same with the rows of the log.
  void restore(double epoch) { restore(read_log(), epoch); }

  // The rows so far, restored ones included.
  const std::vector<Row>& rows() const { return rows_; }
  // A number of the last row; 0 without one. Throws ValueError for an unknown name.
  double last(const std::string& name) const;

 private:
  void print(const Row& row);

  ReportOptions options_;
  std::ostream* out_;
  bool silent_;
  bool heading_printed_ = false;
  std::vector<Row> rows_;
  size_t restored_ = 0;  // rows of an earlier run, the first ones
};

}  // namespace catena::training
