// Body of the emulated_*.cpp files: map.cuh and tiled.cuh compiled for the host. The includer has
// defined EMULATED_NAME, CATENA_N and the rest of what map.cuh asks for.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "device/fibers.h"
#include "device/map_case.h"

#ifndef CATENA_OUTPUTS
#define CATENA_OUTPUTS 1
#define CATENA_EACH_OUTPUT(X) X(0)
#endif

namespace EMULATED_NAME {
#include "device/prelude.cuh"
namespace catena {
namespace jit {
EMULATED_TYPES
}
}  // namespace catena
#include "device/map.cuh"
#include "device/tiled.cuh"
}  // namespace EMULATED_NAME

namespace emulated {

void EMULATED_NAME(int kernel, uint64_t blocks, unsigned threads, void* arguments) {
  using namespace ::EMULATED_NAME;
  using namespace ::EMULATED_NAME::catena::jit;
  const Dim3 grid{unsigned(blocks), 1, 1};
  if (kernel == 0)
    run_grid(grid, threads, false,
             [&] { catena_flat(*static_cast<FlatArgs<CATENA_N>*>(arguments)); });
  if (kernel == 1)
    run_grid(grid, threads, false,
             [&] { catena_rows(*static_cast<RowsArgs<CATENA_N>*>(arguments)); });
  if (kernel == 2)
    run_grid(grid, threads, false,
             [&] { catena_strided(*static_cast<StridedArgs<CATENA_N>*>(arguments)); });
  if (kernel == 3)
    run_grid(grid, threads, true,
             [&] { catena_tiled(*static_cast<TiledArgs<CATENA_N>*>(arguments)); });
}

}  // namespace emulated
