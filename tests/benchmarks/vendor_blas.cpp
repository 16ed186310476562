#include "vendor_blas.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "catena/core/config.h"

namespace bench::raw {
namespace {

using DnnlSgemm = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t,
                          const float*, int64_t, float, float*, int64_t);
using CblasSgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*,
                            int, float, float*, int);

struct Vendor {
  DnnlSgemm dnnl = nullptr;
  CblasSgemm cblas = nullptr;
  std::string description;
};

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

void* open_any(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

Vendor open_vendor() {
  Vendor vendor;
  const std::string threads = std::to_string(catena::cpu_threads());
  setenv("OMP_NUM_THREADS", threads.c_str(), 0);  // before a library starts OpenMP
  if (void* library = open_any({"libdnnl.so.3", "libdnnl.so.2"})) {
    struct Version {
      int major, minor, patch;
    };
    vendor.dnnl = find<DnnlSgemm>(library, "dnnl_sgemm");
    const Version& v = *find<const Version* (*)()>(library, "dnnl_version")();
    vendor.description = "oneDNN " + std::to_string(v.major) + "." + std::to_string(v.minor) + "." +
                         std::to_string(v.patch);
    return vendor;
  }
  // Releases of before a processor fall back to SSE3.
  const bool wide = __builtin_cpu_supports("x86-64-v4"), avx2 = __builtin_cpu_supports("avx2");
  if (avx2) setenv("OPENBLAS_CORETYPE", wide ? "SkylakeX" : "Haswell", 0);
  void* library = open_any({"libopenblas.so.0", "libopenblas.so"});
  if (library == nullptr)
    throw std::runtime_error("no oneDNN and no OpenBLAS to measure against: install libdnnl-dev");
  vendor.cblas = find<CblasSgemm>(library, "cblas_sgemm");
  vendor.description = find<const char* (*)()>(library, "openblas_get_config")();
  return vendor;
}

const Vendor& vendor() {
  static const Vendor instance = open_vendor();
  return instance;
}

}  // namespace

void vendor_sgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, const float* b,
                  float* c) {
  const int64_t lda = ta ? m : k, ldb = tb ? k : n;
  if (vendor().dnnl) {
    vendor().dnnl(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, a, lda, b, ldb, 0, c, n);
    return;
  }
  constexpr int kRowMajor = 101, kNot = 111, kTransposed = 112;
  vendor().cblas(kRowMajor, ta ? kTransposed : kNot, tb ? kTransposed : kNot, int(m), int(n),
                 int(k), 1, a, int(lda), b, int(ldb), 0, c, int(n));
}

std::string vendor_description() { return vendor().description; }

void limit_spinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "1000", 1);
  execv("/proc/self/exe", argv);
}

}  // namespace bench::raw
