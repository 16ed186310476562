// Matrix products of any type and layout by 16 x 16 tiles: integers, bool, and products that
// cuBLASLt refuses.
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/matmul/matmul.h"

namespace catena::gpu {
namespace {

constexpr int kTile = 16;
constexpr __host__ __device__ int64_t tiles(int64_t count) { return (count + kTile - 1) / kTile; }

// Storage type and type of the sums. Integers wrap, so they are summed as unsigned.
template <class T>
struct Sum {
  using type = Compute<T>;
};
template <>
struct Sum<int8_t> {
  using type = uint32_t;
};
template <>
struct Sum<int16_t> {
  using type = uint32_t;
};
template <>
struct Sum<int32_t> {
  using type = uint32_t;
};
template <>
struct Sum<int64_t> {
  using type = uint64_t;
};
template <>
struct Sum<bool> {
  using type = bool;
};

template <class T>
struct Ops {
  using S = typename Sum<T>::type;
  static __device__ S load(T v) { return S(v); }
  static __device__ T store(S v) { return T(v); }
  static __device__ S add(S a, S b) { return a + b; }
  static __device__ S fma(S a, S b, S c) { return a * b + c; }
  static __device__ S relu(S v) { return T(v) > T(0) ? v : S(0); }
};

template <class T, class S>
struct FloatOps {
  static __device__ S load(T v) { return widen(v); }
  static __device__ T store(S v) { return Narrow<T>::from(v); }
  static __device__ S add(S a, S b) { return a + b; }
  static __device__ S fma(S a, S b, S c) { return ::fma(a, b, c); }
  static __device__ S relu(S v) { return v > S(0) || v != v ? v : S(0); }
};
template <>
struct Ops<float> : FloatOps<float, float> {};
template <>
struct Ops<double> : FloatOps<double, double> {};
template <>
struct Ops<__half> : FloatOps<__half, float> {};
template <>
struct Ops<__nv_bfloat16> : FloatOps<__nv_bfloat16, float> {};
template <>
struct Ops<bool> {
  static __device__ bool load(bool v) { return v; }
  static __device__ bool store(bool v) { return v; }
  static __device__ bool add(bool a, bool b) { return a || b; }
  static __device__ bool fma(bool a, bool b, bool c) { return (a && b) || c; }
  static __device__ bool relu(bool v) { return v; }
};

// R: the type of the result.
template <class T, class R>
__global__ void simple_kernel(Product p) {
  wait_for_previous_kernel();
  using O = Ops<T>;
  using Result = Ops<R>;
  using S = typename Sum<T>::type;
  __shared__ S as[kTile][kTile + 1], bs[kTile][kTile + 1];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int64_t row_tiles = tiles(p.m);
  const int64_t row = blockIdx.x % row_tiles * kTile + ty;
  const int64_t column = blockIdx.x / row_tiles * kTile + tx;
  for (int64_t batch = blockIdx.y; batch < p.batch; batch += gridDim.y) {
    const T* a = static_cast<const T*>(p.a.data) + batch * p.a.batch_step;
    const T* b = static_cast<const T*>(p.b.data) + batch * p.b.batch_step;
    R* c = static_cast<R*>(p.c.data) + batch * p.c.batch_step;
    S sum = S(0);
    for (int64_t k0 = 0; k0 < p.k; k0 += kTile) {
      as[ty][tx] = row < p.m && k0 + tx < p.k
                       ? O::load(a[row * p.a.row_step + (k0 + tx) * p.a.column_step])
                       : S(0);
      bs[ty][tx] = column < p.n && k0 + ty < p.k
                       ? O::load(b[(k0 + ty) * p.b.row_step + column * p.b.column_step])
                       : S(0);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kTile; ++k) sum = O::fma(as[ty][k], bs[k][tx], sum);
      __syncthreads();
    }
    if (row < p.m && column < p.n) {
      R* out = c + row * p.c.row_step + column * p.c.column_step;
      if (p.bias) sum = O::add(sum, O::load(static_cast<const T*>(p.bias)[column]));
      if (p.relu) sum = O::relu(sum);
      if (p.accumulate) sum = O::add(sum, Result::load(*out));
      *out = Result::store(sum);
    }
  }
}

template <class T, class R = T>
void launch_typed(const Product& p, const Launch& launch) {
  // The other dimensions of a grid end at 65535.
  const dim3 grid(unsigned(tiles(p.m) * tiles(p.n)), unsigned(p.batch < 65535 ? p.batch : 65535));
  launch_kernel<simple_kernel<T, R>>(grid, dim3(kTile, kTile), launch, p);
}

template <class T>
__global__ void bias_activation_kernel(Product p) {
  wait_for_previous_kernel();
  using O = Ops<T>;
  const int64_t count = p.m * p.n * p.batch, stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const int64_t column = i % p.n, row = i / p.n % p.m, batch = i / (p.n * p.m);
    T* out = static_cast<T*>(p.c.data) + batch * p.c.batch_step + row * p.c.row_step +
             column * p.c.column_step;
    auto value = O::load(*out);
    if (p.bias) value = O::add(value, O::load(static_cast<const T*>(p.bias)[column]));
    if (p.relu) value = O::relu(value);
    *out = O::store(value);
  }
}

}  // namespace

void launch_simple_matmul(Element type, const Product& p, const Launch& launch) {
  if (p.wide && type == Element::kFloat16) return launch_typed<__half, float>(p, launch);
  if (p.wide) return launch_typed<__nv_bfloat16, float>(p, launch);
  switch (type) {
    case Element::kFloat16: return launch_typed<__half>(p, launch);
    case Element::kBFloat16: return launch_typed<__nv_bfloat16>(p, launch);
    case Element::kFloat32: return launch_typed<float>(p, launch);
    case Element::kFloat64: return launch_typed<double>(p, launch);
    case Element::kInt8:
    case Element::kUInt8: return launch_typed<int8_t>(p, launch);
    case Element::kInt16:
    case Element::kUInt16: return launch_typed<int16_t>(p, launch);
    case Element::kInt32:
    case Element::kUInt32: return launch_typed<int32_t>(p, launch);
    case Element::kInt64:
    case Element::kUInt64: return launch_typed<int64_t>(p, launch);
    case Element::kBool: return launch_typed<bool>(p, launch);
  }
}

void launch_bias_activation(Float type, const Product& p, const Launch& launch) {
  const int64_t count = p.m * p.n * p.batch, most = int64_t(launch.multiprocessors) * 16;
  const int64_t wanted = (count + 255) / 256;
  const int blocks = int(wanted < most ? wanted : most);
  CATENA_FLOAT_SWITCH(type, (launch_kernel<bias_activation_kernel<T>>(blocks, 256, launch, p)))
}

}  // namespace catena::gpu
