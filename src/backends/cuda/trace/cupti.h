// CUPTI's library, opened at run time: it comes with the toolkit and need not be installed.
#pragma once

#include "backends/cuda/trace/activities.h"

#ifdef CATENA_HAS_CUPTI
#include <cupti_result.h>

#include <string>

namespace catena::gpu {

struct Cupti {
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) register_timestamp = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityEnableDriverApi) enable_driver_call = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityFlushPeriod) flush_period = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  std::string error;  // why it cannot be used, "" when it can
};

// The library of the toolkit that this build was made with: CATENA_CUPTI names a file; otherwise
// the loader's libcupti, then the one in the toolkit's folders. Opened once.
const Cupti& cupti();

}  // namespace catena::gpu
#endif
