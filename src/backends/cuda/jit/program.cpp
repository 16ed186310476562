// Finds, loads and launches programs. See program.h.
#include "backends/cuda/jit/program.h"

#include <cuda.h>
#include <dlfcn.h>

#include <map>
#include <memory>
#include <mutex>

#include "backends/cuda/jit/compile/bundle.h"
#include "backends/cuda/jit/compile/function_lookup.h"
#include "backends/cuda/jit/compile/nvrtc.h"
#include "backends/cuda/runtime/capture.h"
#include "backends/cuda/runtime/cuda_check.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/faults.h"
#include "catena/core/error.h"
#include "core/disk_cache.h"

namespace catena::jit {

namespace {

void* driver_entry(const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found;
  CATENA_CUDA_CHECK(
      cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found));
  return address;
}

// Driver functions, looked up at run time, because the plug-in must load where there is no driver.
struct Driver {
  FunctionLookup functions{driver_entry};
  decltype(&cuLibraryLoadData) library_load = functions("cuLibraryLoadData");
  decltype(&cuLibraryGetKernel) get_kernel = functions("cuLibraryGetKernel");
  decltype(&cuKernelGetFunction) get_function = functions("cuKernelGetFunction");
  decltype(&cuKernelSetAttribute) set_attribute = functions("cuKernelSetAttribute");
  decltype(&cuLaunchKernel) launch = functions("cuLaunchKernel");
  decltype(&cuLaunchKernelEx) launch_with = functions("cuLaunchKernelEx");
  decltype(&cuLibraryGetGlobal) get_global = functions("cuLibraryGetGlobal");
  decltype(&cuGetErrorName) error_name = functions("cuGetErrorName");
  decltype(&cuGetErrorString) error_string = functions("cuGetErrorString");
};

const Driver& driver() {
  static const Driver table = [] {
    Driver d;
    CATENA_CHECK(DeviceError, d.functions.missing().empty(), "cuda: the driver lacks ",
                 d.functions.missing(), "; catena needs a driver for CUDA 12 or newer");
    return d;
  }();
  return table;
}

[[noreturn, gnu::cold]] void fail_driver(CUresult error, const std::string& what,
                                         const char* call) {
  const char *name = "unknown error", *text = "";
  driver().error_name(error, &name);
  driver().error_string(error, &text);
  gpu::let_process_end(error);
  fail<DeviceError>(what, ": ", call, " failed: ", name, ": ", text, gpu::describe_fault(error));
}

std::atomic<uint64_t> g_bundle_hits{0}, g_disk_hits{0}, g_compiled{0}, g_missing{0};
std::mutex g_loading;

std::string plugin_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&plugin_folder), &info) == 0 || info.dli_fname == nullptr)
    return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string bundle_path(int arch) {
  return plugin_folder() + "/catena_kernels_" + std::to_string(arch) + ".bundle";
}

// The bundle of an architecture, opened once; null if there is none. g_loading is held.
Bundle* bundle_of(int arch) {
  static std::map<int, std::unique_ptr<Bundle>> bundles;
  const auto found = bundles.find(arch);
  if (found != bundles.end()) return found->second.get();
  return (bundles[arch] = Bundle::open(bundle_path(arch))).get();
}

const DiskCache& disk_cache() {
  static const DiskCache cache(cache_folder());
  return cache;
}

Program* kernels_of(CUlibrary library, const std::string& what,
                    std::initializer_list<const char*> kernels) {
  auto program = std::make_unique<Program>();
  program->what = what;
  program->library = library;
  int count = 0;
  for (const char* name : kernels) {
    CUkernel kernel = nullptr;
    const CUresult status = driver().get_kernel(&kernel, library, name);
    if (status != CUDA_SUCCESS) fail_driver(status, what, "cuLibraryGetKernel");
    program->kernels[size_t(count++)] = kernel;
  }
  return program.release();
}

Program* load(const std::string& what, std::string_view cubin,
              std::initializer_list<const char*> kernels, bool early = false) {
  gpu::RelaxedCapture relaxed;
  CUlibrary library = nullptr;
  const CUresult error =
      driver().library_load(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (error != CUDA_SUCCESS) fail_driver(error, what, "cuLibraryLoadData");
  Program* program = kernels_of(library, what, kernels);
  program->early = early;
  return program;
}

void refuse_cold(const std::string& what) {
  const GraphState* graph = gpu::thread_capture();
  if (graph == nullptr) return;
  fail<Error>(what,
              ": its kernel is not loaded yet, and none can be loaded while a CUDA graph is "
              "captured on cuda:",
              graph->device, "; run the step once before capturing it");
}

// g_loading is held. The cubin's bytes may point into the bundle or into `buffer`.
bool find_cubin(int arch, const std::string& source, std::string& buffer, std::string_view& cubin,
                const CompileOptions& options = {}) {
  const Hash128 key = kernel_key(source, arch, options);
  if (Bundle* bundle = bundle_of(arch)) {
    if (const auto found = bundle->find(key)) {
      cubin = *found;
      ++g_bundle_hits;
      return true;
    }
  }
  if (!disk_cache().read(disk_key(key), buffer)) return false;
  cubin = buffer;
  ++g_disk_hits;
  return true;
}

}  // namespace

JitStatistics jit_statistics() { return {g_bundle_hits, g_disk_hits, g_compiled, g_missing}; }

std::string describe_jit(int device) {
  const int arch = device_arch(device);
  const std::lock_guard lock(g_loading);
  std::string why = bundle_path(arch);
  const Bundle* bundle = bundle_of(arch);
  const std::string version = nvrtc_version();
  return "kernel bundle " + bundle_path(arch) +
         (bundle ? " (" + std::to_string(bundle->size()) + " programs)"
                 : std::string(" is missing")) +
         ", cache folder " + (disk_cache().folder().empty() ? "none" : disk_cache().folder()) +
         ", NVRTC " + (version.empty() ? "not installed" : version);
}

int device_arch(int device) {
  const gpu::DeviceInfo& info = gpu::device_info(device);
  return info.major * 10 + info.minor;
}

int arch_slot(int device) {
  static std::array<std::atomic<int>, kMaxDevices> slots;  // slot + 1; 0: not determined yet
  const int known = slots[size_t(device)].load(std::memory_order_relaxed);
  if (known != 0) [[likely]]
    return known - 1;
  static std::mutex mutex;
  static std::vector<int> archs;
  const std::lock_guard lock(mutex);
  const int arch = device_arch(device);
  size_t slot = 0;
  while (slot < archs.size() && archs[slot] != arch) ++slot;
  if (slot == archs.size()) {
    CATENA_CHECK(DeviceError, slot < size_t(kMaxArchs), "cuda: a process supports GPUs of at most ",
                 kMaxArchs, " architectures; choose GPUs with CUDA_VISIBLE_DEVICES");
    archs.push_back(arch);
  }
  slots[size_t(device)].store(static_cast<int>(slot) + 1, std::memory_order_relaxed);
  return static_cast<int>(slot);
}

Program* find_program(int device, const std::string& what, const std::string& source,
                      std::initializer_list<const char*> kernels) {
  if (gpu::thread_capture()) return nullptr;
  const std::lock_guard lock(g_loading);
  gpu::use_device(device);
  std::string buffer;
  std::string_view cubin;
  return find_cubin(device_arch(device), source, buffer, cubin)
             ? load(what, cubin, kernels, gpu::device_info(device).early_launches)
             : nullptr;
}

Program* make_program(int device, const std::string& what, const std::string& source,
                      std::initializer_list<const char*> kernels,
                      const std::vector<std::string>& options) {
  refuse_cold(what);
  const std::lock_guard lock(g_loading);
  gpu::use_device(device);
  const int arch = device_arch(device);
  const bool early = gpu::device_info(device).early_launches;
  std::string buffer;
  std::string_view cubin;
  if (find_cubin(arch, source, buffer, cubin, options)) return load(what, cubin, kernels, early);
  ++g_missing;
  bool made = false;
  buffer = disk_cache().get(
      disk_key(kernel_key(source, arch, options)),
      [&] { return compile(source, arch, what.c_str(), options); }, &made);
  ++(made ? g_compiled : g_disk_hits);
  return load(what, buffer, kernels, early);
}

Program* load_image(int device, const std::string& what, const std::string& image,
                    std::initializer_list<const char*> kernels) {
  refuse_cold(what);
  const std::lock_guard lock(g_loading);
  gpu::use_device(device);
  return load(what, image, kernels);
}

std::pair<void*, size_t> program_global(Program& program, int device, const std::string& name) {
  gpu::use_device(device);
  CATENA_CUDA_CHECK(cudaFree(nullptr));  // creates the device's context
  CUdeviceptr address = 0;
  size_t bytes = 0;
  const CUresult error =
      driver().get_global(&address, &bytes, static_cast<CUlibrary>(program.library), name.c_str());
  if (error != CUDA_SUCCESS) fail_driver(error, name, "looking up the variable");
  return {reinterpret_cast<void*>(address), bytes};
}

Program* ProgramTable::get(uint64_t key, const std::function<Program*()>& make) {
  static std::mutex mutex;
  if (Program* program = find(key)) return program;
  // Made without the lock, because compiling takes long. If two threads make the same program, one
  // of the two is never used.
  Program* program = make();
  if (program == nullptr) return nullptr;
  const std::lock_guard lock(mutex);
  if (Program* first = find(key)) return first;
  CATENA_CHECK(Error, used_.load() < kSlots * 3 / 4, program->what, ": more than ", kSlots * 3 / 4,
               " different kernels in one process");
  uint64_t at = key * 0x9e3779b97f4a7c15u >> 52;
  while (slots_[at].key.load(std::memory_order_relaxed) != 0) at = (at + 1) % kSlots;
  slots_[at].program.store(program, std::memory_order_relaxed);
  slots_[at].key.store(key, std::memory_order_release);
  ++used_;
  return program;
}

Program* program_kernel(const Program& library, const std::string& name) {
  return kernels_of(static_cast<CUlibrary>(library.library), name, {name.c_str()});
}

void prepare_program(Program& program, int device) {
  refuse_cold(program.what);
  gpu::use_device(device);
  CATENA_CUDA_CHECK(cudaFree(nullptr));  // creates the device's context
  for (void* kernel : program.kernels) {
    if (kernel == nullptr) continue;
    CUfunction function = nullptr;
    const CUresult error = driver().get_function(&function, static_cast<CUkernel>(kernel));
    if (error != CUDA_SUCCESS) fail_driver(error, program.what, "loading its kernel");
  }
  program.ready.fetch_or(uint64_t(1) << device);
}

void launch_program(Program& program, int index, int device, uint64_t blocks_x, unsigned blocks_y,
                    unsigned threads, void** arguments, cudaStream_t stream) {
  if (!((program.ready.load(std::memory_order_relaxed) >> device) & 1)) [[unlikely]]
    prepare_program(program, device);
  CATENA_CHECK(Error, blocks_x < 0x80000000u, program.what, ": ", blocks_x,
               " blocks are more than one launch can take");
  CUlaunchAttribute early{};
  early.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = static_cast<unsigned>(blocks_x);
  config.gridDimY = blocks_y;
  config.blockDimX = threads;
  config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &early;
  config.numAttrs = program.early ? 1 : 0;
  static const auto launch_kernel = driver().launch_with;
  const CUresult error = launch_kernel(
      &config, static_cast<CUfunction>(program.kernels[size_t(index)]), arguments, nullptr);
  if (error != CUDA_SUCCESS) [[unlikely]]
    fail_driver(error, program.what, "the launch");
}

void launch_raw(Program& program, int device, LaunchDims grid, LaunchDims block,
                unsigned shared_memory, void** arguments, cudaStream_t stream) {
  if (!((program.ready.load(std::memory_order_relaxed) >> device) & 1))
    prepare_program(program, device);
  constexpr unsigned kDefaultSharedMemory = 48 * 1024;
  if (shared_memory > kDefaultSharedMemory) {
    const CUresult status = driver().set_attribute(
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared_memory),
        static_cast<CUkernel>(program.kernels[0]), device);
    if (status != CUDA_SUCCESS)
      fail_driver(status, program.what, "asking for dynamic shared memory");
  }
  const CUresult error =
      driver().launch(static_cast<CUfunction>(program.kernels[0]), grid.x, grid.y, grid.z, block.x,
                      block.y, block.z, shared_memory, stream, arguments, nullptr);
  if (error != CUDA_SUCCESS) fail_driver(error, program.what, "the launch");
}

}  // namespace catena::jit
