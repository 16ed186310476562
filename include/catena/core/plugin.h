// Optional parts are shared libraries that are loaded on first use: cuda, nccl, mpi, ... What a
// plug-in itself begins with is in plugin_entry.h.
#pragma once

#include <string>

namespace catena {

// Loads libcatena_<name>.so from CATENA_PLUGIN_PATH, the folder of libcatena or the folder `catena`
// in it, checks that it was built with this libcatena and calls its entry function, once. Never
// unloads.
// Returns an empty string on success, else one sentence with the loader's own text.
std::string load_plugin(const char* name);
// The reason of the last failed attempt, or "" when loaded or never tried.
std::string plugin_error(const char* name);
// Returns when no other thread is loading a plug-in. At once in an entry function, whose thread
// loads.
void wait_for_plugins();

// Hash of the public headers, the compiler's ABI and the Boost version of this build.
const char* abi_tag();

}  // namespace catena
