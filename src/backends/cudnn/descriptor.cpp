#include "backends/cudnn/descriptor.h"

#include "catena/core/error.h"
#include "catena/core/log.h"

namespace catena::cudnn {

bool is_lasting(cudnnStatus_t status) {
  const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
  return (category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM) &&
         status != CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING &&
         status != CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE;
}

void fail_cudnn(cudnnStatus_t status, const char* call) {
  const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof detail);
  if (category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM) {
    logging::debug("cuDNN: ", call, ": ", cudnnGetErrorString(status), ": ", detail);
    throw NotSupported{is_lasting(status)};
  }
  fail<DeviceError>("cuDNN call failed: ", call, ": ", cudnnGetErrorString(status),
                    detail[0] ? ": " : "", detail,
                    "; CATENA_PROVIDERS=cudnn:off computes without cuDNN");
}

cudnnDataType_t data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16: return CUDNN_DATA_HALF;
    case Dtype::kBFloat16: return CUDNN_DATA_BFLOAT16;
    case Dtype::kFloat32: return CUDNN_DATA_FLOAT;
    case Dtype::kFloat64: return CUDNN_DATA_DOUBLE;
    default: throw NotSupported{true};
  }
}

}  // namespace catena::cudnn
