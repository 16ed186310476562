// Registration of the CPU kernels. See register.h.
#include "backends/cpu/register.h"

#include "backends/common/composed.h"
#include "backends/cpu/kernels.h"
#include "catena/kernels/convolution.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/count.h"
#include "catena/kernels/elementwise.h"
#include "catena/kernels/index.h"
#include "catena/kernels/loss.h"
#include "catena/kernels/matmul.h"
#include "catena/kernels/normalization.h"
#include "catena/kernels/optimizer.h"
#include "catena/kernels/random.h"
#include "catena/kernels/reduce.h"
#include "catena/kernels/scan.h"
#include "catena/kernels/softmax.h"
#include "catena/kernels/sort.h"

namespace catena {

void register_cpu_kernels() {
#define CATENA_PROVIDE(slot) kernels::slot.provide<&host::slot>(DeviceType::kCpu, "cpu")
  CATENA_PROVIDE(elementwise);
  CATENA_PROVIDE(fused);
  CATENA_PROVIDE(copy);
  CATENA_PROVIDE(fill);
  CATENA_PROVIDE(arange);
  CATENA_PROVIDE(reduce);
  CATENA_PROVIDE(arg_reduce);
  CATENA_PROVIDE(matmul);
  CATENA_PROVIDE(concatenate);
  CATENA_PROVIDE(take);
  CATENA_PROVIDE(scatter_add);
  CATENA_PROVIDE(sort);
  CATENA_PROVIDE(order_statistics);
  CATENA_PROVIDE(searchsorted);
  CATENA_PROVIDE(run_starts);
  CATENA_PROVIDE(scan);
  CATENA_PROVIDE(nonzero_count);
  CATENA_PROVIDE(nonzero);
  CATENA_PROVIDE(bincount);
  CATENA_PROVIDE(histogram);
  CATENA_PROVIDE(gather);
  CATENA_PROVIDE(scatter);
  CATENA_PROVIDE(random);
  CATENA_PROVIDE(permutation);
  CATENA_PROVIDE(dropout);
  CATENA_PROVIDE(softmax);
  CATENA_PROVIDE(softmax_grad);
  CATENA_PROVIDE(softmax_cross_entropy);
  CATENA_PROVIDE(softmax_cross_entropy_grad);
  CATENA_PROVIDE(accuracy);
  CATENA_PROVIDE(patches);
  CATENA_PROVIDE(patch_sums);
  CATENA_PROVIDE(batch_normalization);
  CATENA_PROVIDE(fixed_batch_normalization);
  CATENA_PROVIDE(batch_normalization_grad);
  CATENA_PROVIDE(optimizer_update);
  CATENA_PROVIDE(find_nonfinite);
  CATENA_PROVIDE(advance_loss_scale);
#undef CATENA_PROVIDE
  register_composed_kernels(DeviceType::kCpu);
}

}  // namespace catena
