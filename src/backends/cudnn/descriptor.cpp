#include "backends/cudnn/descriptor.h"

#include "catena/core/error.h"
#include "catena/core/log.h"

namespace catena::cudnn {

void fail_cudnn(cudnnStatus_t status, const char* call) {
  const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof detail);
  if (category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM) {
    logging::debug("cuDNN: ", call, ": ", cudnnGetErrorString(status), ": ", detail);
    throw NotSupported();
  }
  fail<DeviceError>("cuDNN call failed: ", call, ": ", cudnnGetErrorString(status),
                    detail[0] ? ": " : "", detail,
                    "; CATENA_PROVIDERS=cudnn:off computes without cuDNN");
}

}  // namespace catena::cudnn
