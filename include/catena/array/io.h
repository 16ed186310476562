// NumPy's file formats and text, on the host.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "catena/array/array.h"

namespace catena {

// One array in NumPy's .npy format (bfloat16 is stored as the raw 2-byte void type 'V2', as
// ml_dtypes does). The file is written under a temporary name and renamed, so that a full disk or a
// crash leaves the old file. Throws IoError with the path and the system's reason.
void save(const std::string& path, const Array& a);
// Reads a .npy file onto `device`; C and Fortran order, either byte order.
// Throws IoError naming path, offset and what was expected.
Array load(const std::string& path, Device device = cpu(0));

// Named arrays in a .npz (zip of .npy), plain or deflated, in the given order; written by rename.
using NamedArrays = std::vector<std::pair<std::string, Array>>;
void save_npz(const std::string& path, const NamedArrays& arrays, bool compressed = false);
std::map<std::string, Array> load_npz(const std::string& path, Device device = cpu(0));

// Writes a file so that readers see the old or the new content, never a part: temporary file beside
// it, write, fsync, rename. Throws IoError.
void write_file_atomically(const std::string& path, const std::string& bytes);

}  // namespace catena
