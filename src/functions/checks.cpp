#include "functions/checks.h"

namespace catena::functions {

void refuse_types(const std::string& label, const InvalidType& mismatch,
                  const std::string& advice) {
  throw InvalidType(mismatch.expect(), mismatch.actual(),
                    message("Invalid operation is performed in: ", label, " (Forward)\n\n",
                            mismatch.what(), advice.empty() ? "" : "\n", advice));
}

}  // namespace catena::functions
