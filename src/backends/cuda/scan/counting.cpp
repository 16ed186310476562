// Host glue of the nonzero_count, nonzero, bincount and histogram slots.
#include "backends/cuda/scan/counting.h"

#include <algorithm>

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/count.h"

namespace catena::gpu {
namespace {

NonzeroArgs nonzero_args(const Array& a) {
  return {a.raw_data(), static_cast<int>(a.itemsize()), is_float(a.dtype()), a.size()};
}

void nonzero_count(const NonzeroCountCall& call) {
  const auto& [a, count] = call;
  CATENA_CUDA_CHECK(launch_nonzero_count(nonzero_args(a), count.data<int64_t>(), launch_for(a)));
  check_launch("nonzero_count");
}

void nonzero(const NonzeroCall& call) {
  const auto& [a, positions] = call;
  const NonzeroArgs args = nonzero_args(a);
  const Launch launch = launch_for(a);
  const size_t scratch = nonzero_scratch_bytes(args), header = 256;
  const StoragePtr memory = allocate(a.device(), header + scratch);
  char* base = static_cast<char*>(memory->data);
  CATENA_CUDA_CHECK(launch_nonzero(args, positions.data<int64_t>(),
                                   reinterpret_cast<int64_t*>(base), base + header, scratch,
                                   launch));
  if (a.ndim() > 1) {
    UnravelArgs unravel{};
    unravel.positions = positions.data<int64_t>();
    unravel.count = positions.shape()[1];
    unravel.ndim = a.ndim();
    std::copy(a.shape().begin(), a.shape().end(), unravel.shape);
    launch_unravel(unravel, launch);
  }
  check_launch("nonzero");
}

Element count_type(Dtype dtype) {
  CATENA_CHECK(DtypeError, !is_narrow_float(dtype), "no kernel for ", dtype);
  return static_cast<Element>(dtype);
}

void bincount(const BincountCall& call) {
  const auto& [x, counts] = call;
  CATENA_CUDA_CHECK(launch_bincount(count_type(x.dtype()), x.raw_data(), x.size(),
                                    counts.data<int64_t>(), counts.size(), launch_for(x)));
  check_launch("bincount");
}

void histogram(const HistogramCall& call) {
  const HistogramArgs args{call.input->raw_data(), call.input->size(),
                           call.edges->raw_data(), call.counts->size(),
                           call.uniform,           call.counts->data<int64_t>()};
  CATENA_CUDA_CHECK(
      launch_histogram(count_type(call.input->dtype()), args, launch_for(*call.input)));
  check_launch("histogram");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, counting) {
  kernels::nonzero_count.provide<&gpu::nonzero_count>(DeviceType::kCuda, "cuda");
  kernels::nonzero.provide<&gpu::nonzero>(DeviceType::kCuda, "cuda");
  kernels::bincount.provide<&gpu::bincount>(DeviceType::kCuda, "cuda");
  kernels::histogram.provide<&gpu::histogram>(DeviceType::kCuda, "cuda");
}
