// A plug-in that was made for another libcatena: only its tag may be asked for.
#include <cstdlib>

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const char* catena_plugin_abi_tag() { return "0.0.9-0123456789abcdef"; }
EXPORTED void catena_plugin_entry() { std::abort(); }
