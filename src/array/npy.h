// The .npy format: a magic number, a header that is a Python dict literal, then the raw elements.
// Described in NumPy's documentation under "numpy.lib.format" (versions 1.0, 2.0 and 3.0).
#pragma once

#include <string>
#include <string_view>

#include "array/file_io.h"
#include "catena/array/array.h"

namespace catena::io {

// One array ready to be written: header, then `data` (contiguous, on the CPU).
struct NpyImage {
  std::string header;
  Array data;
  uint64_t size() const { return header.size() + static_cast<uint64_t>(data.nbytes()); }
};
NpyImage make_npy(const Array& a);

// What a .npy header says.
struct NpyHeader {
  Dtype dtype = Dtype::kFloat64;
  bool swapped = false;  // big-endian elements
  bool fortran = false;
  Shape shape;
};
// Reads the header and checks that exactly its elements follow; the source then stands at the
// first.
NpyHeader read_npy_header(Source& source);

// Reads a whole source as one array on cpu:0. Fortran-ordered files give a transposed view.
// Throws IoError naming the source, the offset, what was found and what was expected.
Array read_npy(Source& source);

}  // namespace catena::io
