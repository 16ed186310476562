// Host glue of the random, permutation and dropout slots.
#include "backends/cuda/random/random.h"

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/random.h"

namespace catena::gpu {

RandomSource source_of(const RandomBits& bits) {
  return {bits.seed, bits.offset, bits.base ? bits.base->data<uint64_t>() : nullptr};
}

namespace {

void random(const RandomCall& call) {
  const Array& out = *call.output;
  RandomArgs args{};
  args.source = source_of(call.bits);
  args.output = out.raw_data();
  args.count = out.size();
  args.low = call.low;
  args.high = call.high;
  args.integer_low = call.ilow;
  args.range = call.range;
  const Launch launch = launch_for(out);
  switch (call.kind) {
    case RandomKind::kBits64: launch_random_bits(args, launch); break;
    case RandomKind::kUniform:
      launch_uniform(float_code("random uniform", out.dtype()), args, launch);
      break;
    case RandomKind::kNormal:
      launch_normal(float_code("random normal", out.dtype()), args, launch);
      break;
    case RandomKind::kBernoulli: launch_bernoulli(args, launch); break;
    case RandomKind::kIntegers:
      CATENA_CHECK(DtypeError, is_int(out.dtype()), "expected an integer dtype, got ", out.dtype());
      launch_integers(static_cast<int>(out.itemsize()), args, launch);
      break;
  }
  check_launch("random");
}

void permutation(const PermutationCall& call) {
  const auto& [bits, output] = call;
  const int64_t n = output.size();
  if (n == 0) return;
  const Launch launch = launch_for(output);
  const size_t column = static_cast<size_t>(n) * 8, scratch = permutation_scratch_bytes(n);
  // One block of memory for everything. It may be released at once, because later users of the
  // memory follow the sort in the stream.
  const StoragePtr memory = allocate(output.device(), 3 * column + 512 + scratch);
  auto* base = static_cast<char*>(memory->data);
  PermutationArgs args{};
  args.source = source_of(bits);
  args.output = output.data<int64_t>();
  args.count = n;
  args.keys = reinterpret_cast<uint64_t*>(base);
  args.sorted_keys = reinterpret_cast<uint64_t*>(base + column);
  args.values = reinterpret_cast<int64_t*>(base + 2 * column);
  args.scratch = base + (3 * column + 511) / 512 * 512;
  args.scratch_bytes = scratch;
  CATENA_CUDA_CHECK(launch_permutation(args, launch));
  check_launch("permutation");
}

void dropout(const DropoutCall& call) {
  const auto& [x, ratio, scale, bits, y] = call;
  if (x.size() == 0) return;
  DropoutArgs args{source_of(bits), x.raw_data(), y.raw_data(), x.size(), ratio, scale};
  launch_dropout(float_code("dropout", x.dtype()), args, launch_for(x));
  check_launch("dropout");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, random) {
  kernels::random.provide<&gpu::random>(DeviceType::kCuda, "cuda");
  kernels::permutation.provide<&gpu::permutation>(DeviceType::kCuda, "cuda");
  kernels::dropout.provide<&gpu::dropout>(DeviceType::kCuda, "cuda");
}
