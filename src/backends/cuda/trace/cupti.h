// CUPTI's library, opened at run time: it comes with the toolkit and need not be installed.
#pragma once

#include "backends/cuda/trace/activities.h"

#ifdef CATENA_HAS_CUPTI
#include <cupti_result.h>

#include <string>

#include "backends/cuda/jit/compile/function_lookup.h"

namespace catena::gpu {

struct Cupti {
  jit::FunctionLookup functions;
  decltype(&cuptiGetResultString) result_string = functions("cuptiGetResultString");
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks =
      functions("cuptiActivityRegisterCallbacks");
  decltype(&cuptiActivityRegisterTimestampCallback) register_timestamp =
      functions("cuptiActivityRegisterTimestampCallback");
  decltype(&cuptiActivityEnable) enable = functions("cuptiActivityEnable");
  decltype(&cuptiActivityDisable) disable = functions("cuptiActivityDisable");
  decltype(&cuptiActivityEnableDriverApi) enable_driver_call =
      functions("cuptiActivityEnableDriverApi");
  decltype(&cuptiActivityFlushAll) flush = functions("cuptiActivityFlushAll");
  decltype(&cuptiActivityFlushPeriod) flush_period = functions("cuptiActivityFlushPeriod");
  decltype(&cuptiActivityGetNextRecord) next_record = functions("cuptiActivityGetNextRecord");
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records =
      functions("cuptiActivityGetNumDroppedRecords");
  std::string error;  // why it cannot be used, "" when it can
};

// The library of the toolkit that this build was made with: CATENA_CUPTI names a file; otherwise
// the loader's libcupti, then the one in the toolkit's folders. Opened once.
const Cupti& cupti();

}  // namespace catena::gpu
#endif
