// The run-time compiler. NVRTC is opened at its first use, so a machine without it can run every
// kernel of the bundle and of the disk cache. CATENA_NVRTC names the library's file; without it the
// library is searched for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/hash128.h"

namespace catena::jit {

// Compiles a kernel text to a cubin for sm_<arch> (90: Hopper). `what` names the kernel in errors.
// Throws DeviceError with the loader's text if NVRTC cannot be opened, ValueError with the
// compiler's log if the text is wrong. `options` follow compile_options().
using CompileOptions = std::vector<std::string>;
std::string compile(const std::string& source, int arch, const char* what,
                    const CompileOptions& options = {});

// "13.0", or "" if NVRTC cannot be opened. Never throws.
std::string nvrtc_version();
// Opens this file without searching; for the bundle tool's --nvrtc.
void set_nvrtc_path(const std::string& path);

// The key of a text compiled with compile_options() and `options` for an architecture.
Hash128 kernel_key(std::string_view source, int arch, const CompileOptions& options = {});
// The key of the same kernel in the disk cache. It includes the compiler's version if there is a
// compiler.
Hash128 disk_key(const Hash128& kernel_key);

}  // namespace catena::jit
