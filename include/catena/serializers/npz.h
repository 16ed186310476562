// Models and optimizers in NumPy's .npz files, by name. Named arrays without a model: save_npz and
// load_npz of catena/array/io.h.
//
// A model's file holds one array for each parameter and each persistent array, named by its path:
// "l1/W", "bn1/avg_mean". An optimizer's
// holds "t", its hyper-parameters and its states: "alpha", "m/l1/W". The files know nothing of
// devices or of the layout in memory, and NumPy reads them. Files are written under a temporary
// name and renamed: whatever happens, the old file or the new one is there, whole. See
// write_file_atomically() for links and pipes.
#pragma once

#include <map>
#include <string>

#include "catena/autograd/function_set.h"
#include "catena/optimizers/optimizer.h"

namespace catena::serializers {

// Waits for the model's devices. IoError with the path and the system's reason; ValueError when the
// model has neither parameters nor persistent arrays, or two of the same name.
void save(const std::string& path, const Parameterized& model, bool compressed = false);
// Copies the values into the model's parameters and persistent arrays, wherever they are. Floating
// dtypes are converted into each other; persistent arrays of other dtypes must have been saved as
// such. IoError listing every name that is missing, of another shape or dtype, too large for the
// model's dtype (1e6 for float16) or unknown to the model; the model is then unchanged. strict =
// false takes what fits and ignores the rest: so files are read that were written before a layer
// had its persistent arrays. IoError if nothing fits. A tied parameter is saved under the first of
// its names, and taken from any; IoError if a file has several of them with different values.
void load(const std::string& path, Parameterized& model, bool strict = true);

// States, t and hyper-parameters; the optimizer must have been set up (ValueError), for loading
// with an equal model (IoError).
void save(const std::string& path, Optimizer& optimizer, bool compressed = false);
void load(const std::string& path, Optimizer& optimizer);

// The same without a file.
NamedArrays to_arrays(const Parameterized& model);
void from_arrays(const std::map<std::string, Array>& arrays, Parameterized& model,
                 const std::string& source, bool strict = true);

}  // namespace catena::serializers
