// Kernels written whole in CUDA C++, and loaded modules. On arrays of CUDA devices only; on others
// they throw DeviceError.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "catena/array/array.h"

namespace catena {

// A kernel of a source text or of a Module. Arrays are passed as pointers to their first element
// (strides are the caller's business), bool, int32, int64, uint32, float and double by value as
// their C++ types.
class RawKernel {
 public:
  // CUDA C++ that defines extern "C" __global__ void name(...), compiled at the first launch for
  // the device it runs on. `options` go to the compiler beside the library's own. A text that does
  // not compile is a ValueError with the compiler's lines.
  RawKernel(std::string code, std::string name, std::vector<std::string> options = {});

  // An argument of a call: an array (its address is passed) or a number of one of these types.
  class Argument {
   public:
    Argument(const Array& array) : array_(array) { bits_.pointer = array.raw_data(); }
    Argument(bool value) { bits_.b = value; }
    Argument(int32_t value) { bits_.i32 = value; }
    Argument(uint32_t value) { bits_.u32 = value; }
    Argument(int64_t value) { bits_.i64 = value; }
    Argument(float value) { bits_.f32 = value; }
    Argument(double value) { bits_.f64 = value; }
    // The array, undefined for a number, and the address of the value for the launch.
    const Array& array() const { return array_; }
    const void* address() const { return &bits_; }

   private:
    union {
      // The value as the kernel reads it.
      void* pointer;
      bool b;
      int32_t i32;
      uint32_t u32;
      int64_t i64;
      float f32;
      double f64;
    } bits_{};
    Array array_;
  };
  // Extents of the grid or of a block.
  struct Grid {
    unsigned x = 1, y = 1, z = 1;
  };

  // Enqueues on the current stream of the arrays' device (the current device without arrays).
  // ValueError: a grid or block with an extent of 0, a block of more than 1024 threads.
  void operator()(Grid grid, Grid block, const std::vector<Argument>& arguments,
                  unsigned shared_memory = 0) const;
  // At least one thread for each of `size` elements, in blocks of at most `block_max_size` threads
  // and at most 65536 of them: the kernel loops over the rest. Zero elements: nothing is run.
  void linear_launch(int64_t size, const std::vector<Argument>& arguments,
                     unsigned shared_memory = 0, unsigned block_max_size = 128) const;

  // The name of the kernel's function.
  const std::string& name() const { return source_.name; }

  // Where a kernel comes from.
  struct Source {
    std::string code = {};                     // CUDA C++, or
    std::shared_ptr<const std::string> image;  // a cubin, fatbin or PTX
    std::string name = {};
    std::vector<std::string> options = {};
  };
  explicit RawKernel(Source source) : source_(std::move(source)) {}

 private:
  Source source_;
};

// A compiled file with several kernels and global variables.
class Module {
 public:
  // CuPy's compile_with_cache: the text is compiled at the first use, and kept in the process and
  // on disk (CATENA_CACHE_DIR, shared by processes, one lock a text).
  static Module compile(std::string source, std::vector<std::string> options = {});
  // A cubin, fatbin or PTX text in memory, or in a file (IoError when it cannot be read).
  static Module load(std::string image);
  static Module load_file(const std::string& path);

  RawKernel get_function(const std::string& name) const;  // looked up at its first launch
  // The memory of a __device__ or __constant__ variable on `device`, as an array that shares it.
  // DeviceError when the module has none of that name, ShapeError when it is smaller.
  Array get_global_var(const std::string& name, const Shape& shape, Dtype dtype,
                       Device device) const;

 private:
  RawKernel::Source source_;  // without a name
};

}  // namespace catena
