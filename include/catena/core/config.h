// Process-wide settings with their environment variables.
#pragma once

#include <cstddef>

#include "catena/core/dtype.h"
#include "catena/core/provider_rules.h"

namespace catena {

// How float32 products and convolutions may compute on a GPU: exactly, or with inputs rounded to
// TF32 or bfloat16.
enum class Precision : uint8_t { kFloat32, kTf32, kBf16 };
// Whether cuDNN's kernels are used where the cudnn plug-in is there: kAlways wherever cuDNN has
// one, kAuto unless ours are faster (convolutions in exact float32 with a 1x1 window).
enum class UseCudnn : uint8_t { kNever, kAuto, kAlways };

struct Config;
Config& config();

// config().use_cudnn: another way to write and to read the rule for cuDNN in config().providers.
// kNever writes "cudnn:off", kAlways "cudnn:always", kAuto removes the rule; rules for single
// kernels stay, but come before. Reads kAlways for "cudnn:only" too. A copy holds the value that it
// was copied from, so that `const Config before = config(); ...; config() = before;` restores it.
class CudnnSetting {
 public:
  CudnnSetting() = default;
  CudnnSetting(const CudnnSetting& other) : value_(other) {}
  CudnnSetting& operator=(const CudnnSetting& other) { return *this = UseCudnn(other); }
  CudnnSetting& operator=(UseCudnn use);
  // true: kAuto; false: kNever.
  CudnnSetting& operator=(bool use) { return *this = use ? UseCudnn::kAuto : UseCudnn::kNever; }
  operator UseCudnn() const;

 private:
  friend Config& config();

  ProviderRules* rules_ = nullptr;  // of config(); a copy has none
  UseCudnn value_ = UseCudnn::kAuto;
};

// The settings of a process. Environment variables give their first values.
struct Config {
  // The dtype of arrays that are made without one: zeros, ones, empty, eye, tri; where it is a
  // float also of the floats of the other routines that make arrays (see default_float).
  Dtype default_dtype = Dtype::kFloat64;
  Precision matmul_precision = Precision::kFloat32;  // CATENA_MATMUL_PRECISION=float32|tf32|bf16
  bool deterministic = false;  // CATENA_DETERMINISTIC=1: no atomics, fixed algorithms
  CudnnSetting use_cudnn;      // CATENA_CUDNN=never|auto|always, or 0 for never
  // Bytes of scratch memory of one call: a convolution by cuDNN, or by our own kernels, which take
  // what one image needs at least and 1 to 256 MiB at most; copies for a product, 512 MiB at most.
  size_t max_workspace_size = size_t{1} << 30;
  // CATENA_PROVIDERS=cudnn:off,...; 'catena-run --check' lists them. Behind use_cudnn, so that
  // a Config that is copied keeps its rules to the letter.
  ProviderRules providers;
  bool type_check = true;  // CATENA_TYPE_CHECK=0 turns Function type checks off
};

// The settings of the process; change them before work starts, not while other threads compute.
Config& config();

// The dtype of floats made from nothing or from plain numbers: linspace, arange and full of
// fractions, array({0.5, 1.0}), random numbers, windows, loadtxt. config().default_dtype where that
// is a float, else float64. Typed host data (vectors, spans, files of .npy) and the promotion of
// integers in computations (sqrt, mean, /) do not ask for it.
Dtype default_float();

// Worker threads a CPU operation may use: OMP_NUM_THREADS if the user set it, else
// max(1, cores of this process / ranks on the host). Shared by our loops and BLAS.
int cpu_threads();
void set_cpu_threads(int count);

}  // namespace catena
