// The run-time compiler. NVRTC is opened on first use only: a machine without it runs every kernel
// of the bundle and of the disk cache. CATENA_NVRTC names the library's file instead of a search.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/jit/compile/hash.h"

namespace catena::jit {

// Compiles a kernel text to a cubin for sm_<arch> (90: Hopper). `what` names the kernel in errors.
// Throws DeviceError when NVRTC cannot be opened (with the loader's text), ValueError with the
// compiler's log when the text is wrong. `options` come behind compile_options().
using CompileOptions = std::vector<std::string>;
std::string compile(const std::string& source, int arch, const char* what,
                    const CompileOptions& options = {});

// "13.0", or "" when NVRTC cannot be opened; never throws.
std::string nvrtc_version();
// Opens this file instead of searching; the bundle tool's --nvrtc.
void set_nvrtc_path(const std::string& path);

// Key of a text compiled with compile_options() and `options` for an architecture.
Hash128 kernel_key(std::string_view source, int arch, const CompileOptions& options = {});
// The key of the same kernel in the disk cache, which adds the compiler's version where there is
// one.
Hash128 disk_key(const Hash128& kernel_key);

}  // namespace catena::jit
