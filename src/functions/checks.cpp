#include "functions/checks.h"

namespace catena::functions {

void refuse_types(const std::string& label, const InvalidType& mismatch,
                  const std::string& advice) {
  throw InvalidType(mismatch.expect(), mismatch.actual(),
                    message("Invalid operation is performed in: ", label, " (Forward)\n\n",
                            mismatch.what(), advice.empty() ? "" : "\n", advice));
}

std::string Ndim::text(int i, int) { return message("in_types[", i, "].ndim"); }
std::string DtypeAttribute::text(int i, int) { return message("in_types[", i, "].dtype"); }
std::string Kind::text(int i, int) { return message("in_types[", i, "].dtype.kind"); }
std::string Extent::text(int i, int axis) { return message("in_types[", i, "].shape[", axis, "]"); }

void Extent::refuse_axis(int i, int ndim, int axis) {
  throw InvalidType(message(Ndim::text(i, axis), " > ", axis), message(ndim, " <= ", axis));
}

}  // namespace catena::functions
