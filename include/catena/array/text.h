// Tables of numbers as text files, as NumPy's savetxt and loadtxt.
#pragma once

#include <string>
#include <vector>

#include "catena/array/array.h"
#include "catena/core/config.h"

namespace catena {

// How savetxt writes.
struct SaveTextOptions {
  // One conversion for every element, or one for each column with the text between them (the
  // delimiter is not used then). printf's d, i, u, e, E, f, F, g, G with flags, width and
  // precision; %s is the shortest text that reads back as the same value; %% a percent sign.
  std::string format = "%.18e";
  std::string delimiter = " ";
  std::string newline = "\n";
  std::string header = {}, footer = {};  // each of their lines is put behind `comments`
  std::string comments = "# ";
};
// Writes a 1-d array as one column, a 2-d array as rows; by rename. Throws ShapeError for other
// arrays, ValueError for a format that does not fit (also %d of a NaN), IoError as save.
void savetxt(const std::string& path, const Array& a, const SaveTextOptions& options = {});

// How loadtxt reads.
struct LoadTextOptions {
  std::optional<Dtype> dtype = {};    // default_float() of config.h without one
  std::string delimiter = {};         // empty: runs of white space
  std::string comments = "#";         // begins the part of a line that is left out; empty: none
  int64_t skiprows = 0;               // lines at the start that are left out, comments included
  int64_t max_rows = -1;              // rows to read; -1: all
  std::vector<int64_t> usecols = {};  // columns to keep, in this order; negative: from the end
  bool unpack = false;                // transposed, so that columns are the first axis
  int ndmin = 0;                      // axes of extent 1 beyond this number are dropped
  Device device = {};
};
// Reads rows of numbers; empty lines and a byte order mark of UTF-8 are left out. Without rows the
// result has shape (0,), or (0, 1) for ndmin = 2. IoError naming line and column for text that is
// no number of the dtype, for an integer out of its range, and for a row of another length than the
// first.
Array loadtxt(const std::string& path, const LoadTextOptions& options = {});

}  // namespace catena
