// The .npy format: a magic number, a header that is a Python dict literal, then the raw elements.
// Described in NumPy's documentation under "numpy.lib.format" (versions 1.0, 2.0 and 3.0).
#pragma once

#include <string>
#include <string_view>

#include "array/io/file_io.h"
#include "catena/array/array.h"

namespace catena::io {

// One array that is ready to be written: the header, then `data` (contiguous, on the CPU).
struct NpyImage {
  std::string header;
  Array data;
  uint64_t size() const { return header.size() + static_cast<uint64_t>(data.nbytes()); }
};
NpyImage make_npy(const Array& a);

// The content of a .npy header.
struct NpyHeader {
  Dtype dtype = Dtype::kFloat64;
  bool swapped = false;  // big-endian elements
  bool fortran = false;
  Shape shape;
  uint64_t bytes = 0;  // of all elements
};
// Reads the header and checks that its elements follow. The source is then at the first one. More
// bytes may follow the elements, as after several np.save into one file.
NpyHeader read_npy_header(Source& source);

// Reads the source's first array onto cpu:0. Fortran-ordered files give a transposed view.
// Throws IoError naming the source, the offset, what was found and what was expected.
Array read_npy(Source& source);
// The same for a source that holds nothing else, such as a member of an archive, where further
// bytes mean damage.
Array read_npy_exactly(Source& source);

}  // namespace catena::io
