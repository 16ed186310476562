// BucketOptions: how the gradients of data-parallel training are reduced, and which arrays of an
// optimizer are spread over the ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catena/core/dtype.h"

namespace catena::parallel {

// Which arrays of an optimizer are spread over the ranks of its communicator, each rank keeping a
// part of 1 / size (S. Rajbhandari et al., ZeRO: memory optimizations toward training trillion
// parameter models, 2020, stages 1 to 3). Each has what those before it have.
enum class Sharding : uint8_t {
  // kStates where that is measured to be faster, else kNone: between GPUs of one host whose copy
  // engines move gradients (CommunicatorInternals::moves_by_copies), for 128 MiB of parameters or
  // more, not counting float64, and a rule that updates arenas; not with slices, nor for an
  // optimizer that has a memory of its own (set_memory) or was set up before.
  // MultiNodeOptimizer::sharded() tells, and a line of the log (CATENA_LOG=info). Where it is
  // kStates, Optimizer::state() is collective if the rule has states, and so are use() and of() of
  // a MovingAverage; gradients of which another rank updates the parameters are not here after
  // their reduction. kNone keeps all.
  kAuto,
  kNone,        // every rank holds everything
  kStates,      // states and master copies
  kGradients,   // and gradients, from the reduction of their bucket on
  kParameters,  // and parameters, but for units that are in use
};
const char* name(Sharding sharding);  // "auto", "none", "states", "gradients", "parameters"

// Sizes at which buckets are closed, and what is spread over ranks. The first is small so that
// communication starts early, the last because nothing hides it. All ranks give the same.
struct BucketOptions {
  int64_t first_bytes = int64_t(1) << 20;
  int64_t bucket_bytes = int64_t(32) << 20;
  int64_t last_bytes = int64_t(1) << 20;
  Sharding sharding = Sharding::kAuto;

  // Above 0: parameters are equal bit for bit on any number of ranks; see
  // MultiNodeOptimizer::slices. A power of two that the ranks divide. Gradients stay whole and are
  // added in float32 at least: only with kAuto, which is kNone then, kNone or kStates, and not with
  // reduce_dtype.
  int slices = 0;

  // kParameters: what is gathered and freed together, by the paths of parts of the model
  // ("/body/block1"), in place of the sizes above. A parameter belongs to the longest of them that
  // it is in, else to the direct child of the model that it is in; of a child with numbered parts,
  // such as a vector of layers or a Sequence, to the part. A line of the log (CATENA_LOG) names
  // units of several layers that have more than an eighth of the model.
  std::vector<std::string> units = {};

  // kStates and kGradients: parameters are gathered on the side stream from the update on, in the
  // order of their first use, and a function waits for the bucket of its own parameters only.
  // Parameter::data() waits on the host for a value that is on its way, from one thread at a time.
  // The update's stream waits for buckets in which the program keeps an array, or a view of one,
  // over the update; of raw pointers nothing is known. Off, it waits for all of them. A step that
  // is captured after prepare_for_capture() gathers them as it begins, where they are first used;
  // without it, or over a communicator that a graph cannot record, its update gathers them as if
  // this were off. After a replay of a graph that gathers as it begins the values are not on their
  // way: reading one is a ValueError that names the parameter, unless
  // MultiNodeOptimizer::gather_parameters() was called.
  bool gather_ahead = false;

  // Float16 or bfloat16: gradients travel in 16 bits, half the bytes of float32, and are added in
  // float32. Each rank rounds its float32 gradients, weighted if they are, once; every rank gets
  // the pieces of its part from all others, adds them, and, unless it keeps the part (sharding),
  // rounds the sum once for the way back. Gradients of that very dtype are not rounded before.
  // Others are reduced as without, and so is what copy engines move between GPUs of one host
  // (CommunicatorInternals::moves_by_copies) into the part that a rank keeps: rounding would need
  // the multiprocessors, which costs more there than the bytes.
  //
  // Let u be 2^-8 for bfloat16 and 2^-11 for float16, n the number of ranks, and A the mean over
  // ranks of |gradient|, of one element. While no rounded value is below the dtype's smallest
  // normal number or overflows, the average differs from the exact one by at most
  // (2 u + u^2 + n 2^-23) A, and by (u + n 2^-23) A under sharding. Adding in 16 bits from rank to
  // rank, as reductions of a library may, is off by up to (n - 1) u A.
  std::optional<Dtype> reduce_dtype = std::nullopt;
};

}  // namespace catena::parallel
