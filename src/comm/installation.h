// Functions of libcatena for catena-run --check, which opens it at run time: only the library
// itself can load its plug-ins and knows where their kernels come from.
#pragma once

namespace catena::comm {

// Looked up with dlsym in libcatena.
inline constexpr char kCheckVersionSymbol[] = "catena_check_version";
inline constexpr char kCheckPluginSymbol[] = "catena_check_plugin";
inline constexpr char kCheckKernelsSymbol[] = "catena_check_kernels";
inline constexpr char kCheckProvidersSymbol[] = "catena_check_providers";
inline constexpr char kCheckCpuSymbol[] = "catena_check_cpu";
inline constexpr char kCheckNetworkSymbol[] = "catena_check_network";
// Version and build, which plug-ins must share.
using CheckVersion = const char* (*)();
// Loads the plug-in; "" when it can be used, else why not.
using CheckPlugin = const char* (*)(const char* name);
// The kernel bundle, cache folder and compiler of the first GPU in words; "" where there is none.
using CheckKernels = const char* (*)();
// The providers of the kernels that have several, in the order in which they are asked, for each
// kind of device that can be used; those that CATENA_PROVIDERS turns off are marked, and those
// whose plug-in is not loaded. *good is 0 if a rule of CATENA_PROVIDERS is wrong, and the words
// begin with what is.
using CheckProviders = const char* (*)(int* good);
// The instruction set of the CPU kernels in words; *best is 0 if this processor could run faster
// ones; the text then says why they are not used.
using CheckCpu = const char* (*)(int* best);
// Run by each rank of a job: a main() that makes collectives over MPI and prints their times
// (network_trial.cpp); its exit code.
using CheckNetwork = int (*)(int argc, char** argv);

}  // namespace catena::comm

// The results stay valid until the next call. These do not throw.
extern "C" {
__attribute__((visibility("default"))) const char* catena_check_version();
__attribute__((visibility("default"))) const char* catena_check_plugin(const char* name);
__attribute__((visibility("default"))) const char* catena_check_kernels();
__attribute__((visibility("default"))) const char* catena_check_providers(int* good);
__attribute__((visibility("default"))) int catena_check_network(int argc, char** argv);
}
