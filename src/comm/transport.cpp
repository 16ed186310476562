// What a Call says of itself.
#include "catena/comm/transport.h"

#include "catena/core/log.h"
#include "status/call_record.h"

namespace catena::comm {

std::string Call::describe() const {
  if (kind != CallKind::kObject) return format_call(*this, sequence);
  const std::string text = message(comm::name(op), "_object #", sequence);
  return root < 0 ? text : message(text, " root ", root);
}

Reduction Call::effective_reduction() const {
  if (dtype != Dtype::kBool) return reduction;
  return reduction == Reduction::kSum       ? Reduction::kMax
         : reduction == Reduction::kProduct ? Reduction::kMin
                                            : reduction;
}

}  // namespace catena::comm
