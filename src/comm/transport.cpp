// Members of Call: its description and reduction.
#include "catena/comm/transport.h"

#include "catena/core/log.h"
#include "status/call_record.h"

namespace catena::comm {

std::string Call::describe() const {
  std::string text = format_call(*this, sequence);
  if (kind == CallKind::kObject) {
    text = message(comm::name(op), "_object #", sequence);
    if (root >= 0) text += message(" root ", root);
    if (type) text += message(" of ", detail::readable(*type));
  }
  return purpose ? message(text, ", in ", purpose) : text;
}

Reduction Call::effective_reduction() const {
  if (dtype != Dtype::kBool) return reduction;
  return reduction == Reduction::kSum       ? Reduction::kMax
         : reduction == Reduction::kProduct ? Reduction::kMin
                                            : reduction;
}

}  // namespace catena::comm
